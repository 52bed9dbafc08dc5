/** Whose clock the reports and statements of the console have. */
import { expect, test } from 'vitest'
import { formsOf, row } from '../support/console-browser.ts'
import { shareConsole } from '../support/console-rig.ts'

const { signedIn } = shareConsole()

test('a statement has the months and times of the customer, wherever it is read', async () => {
  const { page, complaints } = await signedIn({ timezoneId: 'America/New_York' })
  const { dialog, field, confirm, open } = formsOf(page)
  await open('Customers', 'New customer')
  await field('Name').fill('of Auckland')
  await dialog.getByText('More settings').click()
  await field('Time zone').fill('pacific/auckland')
  await field('Opening balance').fill('2.00')
  await confirm('Create')
  await page.getByRole('link', { name: 'of Auckland', exact: true }).click()
  await page.getByRole('link', { name: 'Statement' }).click()
  const fact = (name: string) => page.locator('.fact').filter({ hasText: name })
  await fact('Months and times of').getByText('Pacific/Auckland').waitFor()
  const entry = row(page, 'opening balance')
  const shown = entry.locator('time')
  const at = new Date((await shown.getAttribute('datetime')) ?? '')
  const style = { dateStyle: 'medium', timeStyle: 'medium', timeZone: 'Pacific/Auckland' } as const
  expect(await shown.textContent()).toBe(new Intl.DateTimeFormat('en-GB', style).format(at))
  await fact('Balance so far').getByText('2.00 USD').waitFor()
  // The month of the customer may be the next one already.
  const month = page.getByLabel('Month')
  const present = new Intl.DateTimeFormat('sv-SE', { timeZone: 'Pacific/Auckland' }).format(at)
  expect(await month.inputValue()).toBe(present.slice(0, 7))

  // Without a zone of its own it has that of the viewer.
  await page.getByRole('button', { name: 'Change', exact: true }).click()
  await dialog.getByText('More settings').click()
  await field('Time zone').fill('')
  await confirm('Save')
  await fact('Months and times of').getByText('America/New_York').waitFor()
  expect(complaints).toEqual([])
})

test('margins and charts have the clock that is chosen, and say so', async () => {
  const { page, complaints, inaccessible } = await signedIn({ timezoneId: 'Asia/Tokyo' })
  const asked: string[] = []
  page.on('request', (request) => {
    const { pathname, searchParams } = new URL(request.url())
    if (/\/reports\/(?:calls|margins)$/.test(pathname))
      asked.push(`${searchParams.get('time_zone')}`)
  })
  await page.goto('/console/margins')
  await page.getByText('Days are those of UTC.').waitFor()
  await page.getByLabel('Time zone').selectOption('Yours (Asia/Tokyo)')
  await page.getByText('Days are those of Asia/Tokyo.').waitFor()
  await page.waitForURL(/zone=viewer/)
  await page.getByLabel('Time zone').selectOption('UTC')
  await page.getByText('Days are those of UTC.').waitFor()
  await expect.poll(() => [...new Set(asked)]).toEqual(['null', 'Asia/Tokyo', 'UTC'])
  expect(await inaccessible()).toEqual([])

  asked.length = 0
  await page.goto('/console/charts')
  await expect.poll(() => [...new Set(asked)]).toEqual(['Asia/Tokyo'])
  await page.getByLabel('Time zone').selectOption('UTC')
  await expect.poll(() => asked.at(-1)).toBe('UTC')
  await page.getByText('Calls per hour').waitFor()
  expect(await inaccessible()).toEqual([])
  expect(complaints).toEqual([])
})
