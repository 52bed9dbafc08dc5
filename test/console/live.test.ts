/** What holds on every screen, and how the platform and its customers are shown. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { openBrowser, openConsole } from '../support/console-browser.ts'
import { admin, startConsoleRig } from '../support/console-rig.ts'
import { eventually } from '../support/waiting.ts'

let browser: Browser
beforeAll(async () => {
  browser = await openBrowser()
})
afterAll(() => browser.close())

const row = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text })
/** What has the focus: its element, and its text. */
const focused = (page: Page): Promise<unknown> =>
  page.evaluate('[document.activeElement.tagName, document.activeElement.textContent.trim()]')

const sample = (index: number) => ({
  at: new Date(Date.now() - (120 - index) * 5_000).toISOString(),
  active: index,
  started: 10,
  ended: 8,
  answered: 6,
  post_dial_delay: { count: 8, sum_ms: 1_200 },
  lag_p99_ms: 1.5,
  spent: [{ currency: 'USD', amount: '0.25' }],
})

test('the charts are full when Now opens; a page that stays open keeps its session', async () => {
  const { tollgate } = await startConsoleRig(browser)
  const { page, complaints, signIn } = await openConsole(browser, tollgate)
  onTestFinished(() => page.context().close())
  await page.clock.install()
  await signIn(admin.username, admin.password)
  const samples = Array.from({ length: 120 }, (_, index) => sample(index))
  const history = { success: true, data: { interval_seconds: 5, samples } }
  await page.route('**/metrics/history', (route) => route.fulfill({ json: history }))
  await page.getByRole('link', { name: 'Now' }).click()
  for (const text of [
    'Live calls: 119 0 to 119',
    'Calls per second: 2 2 to 2',
    'Answer-seizure ratio, %: 75 75 to 75',
    'Post-dial delay, ms: 150 150 to 150',
    'Spend per minute, USD: 3 3 to 3',
    'Event-loop lag, ms (99 %): 1.5 1.5 to 1.5',
  ])
    await page.getByText(text, { exact: true }).waitFor()
  // On a busy machine its event loop may.
  await page.getByText(/\bneeds? attention/).waitFor()
  const renewal = page.waitForRequest('**/api/v1/auth/session')
  await page.clock.fastForward(600_000)
  await renewal
  expect(complaints).toEqual([])
})

test('a customer is made, found by its low balance, changed, and topped up; all by the keyboard', async () => {
  const { tollgate } = await startConsoleRig(browser)
  const options = { timezoneId: 'Asia/Tokyo' }
  const { page, complaints, signIn } = await openConsole(browser, tollgate, options)
  onTestFinished(() => page.context().close())
  await signIn(admin.username, admin.password)
  const tabTo = async (name: string): Promise<void> => {
    const wanted = page
      .locator('a, button')
      .filter({ hasText: new RegExp(`^${name}$`) })
      .first()
    await wanted.focus()
    await page.keyboard.press('Enter')
  }

  await page.reload()
  await page.getByRole('button', { name: 'Account' }).waitFor()
  await page.keyboard.press('Tab')
  expect(await focused(page)).toEqual(['A', 'Skip to content'])
  await page.keyboard.press('Enter')
  await page.keyboard.press('Tab')
  expect(await page.evaluate('document.activeElement.closest("main") !== null')).toBe(true)

  await tabTo('Customers')
  await page.getByRole('heading', { name: 'Customers' }).waitFor()
  await eventually(async () => expect(await focused(page)).toEqual(['H1', 'Customers']))
  await tabTo('New customer')
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Name').fill('new one')
  await dialog.getByLabel('Rate plan').selectOption('retail')
  await dialog.getByLabel('Numbers').fill('12025550144\n12025550145')
  await dialog.getByText('More settings').click()
  await dialog.getByLabel(/^Low balance/).fill('5')
  await dialog.getByLabel('Opening balance').fill('1.50')
  await dialog.getByLabel('Opening balance').press('Enter')
  await row(page, 'new one').getByText('low balance').waitFor()
  await expect.poll(() => focused(page)).toEqual(['BUTTON', 'New customer'])
  // The others have no money at all.
  await page.getByLabel('Show').selectOption('low')
  await page.waitForURL(/\/console\/customers\?show=low$/)
  await expect
    .poll(() => page.getByRole('table').getByRole('link').allTextContents())
    .toEqual(['broke', 'new one', 'ours', 'theirs'])

  await tabTo('new one')
  await page.getByText('low balance').waitFor()
  await tabTo('Top up')
  await dialog.getByLabel(/^Amount/).fill('10')
  await dialog.getByLabel('Reason').fill('cash')
  await dialog.getByLabel('Reason').press('Enter')
  const entry = row(page, 'cash')
  await entry.getByText('11.50').waitFor()
  await page.getByText('active', { exact: true }).waitFor()
  const shown = entry.locator('time')
  const at = new Date((await shown.getAttribute('datetime')) ?? '')
  const style = { dateStyle: 'medium', timeStyle: 'medium', timeZone: 'Asia/Tokyo' } as const
  expect(await shown.textContent()).toBe(new Intl.DateTimeFormat('en-GB', style).format(at))
  const fact = (name: string) => page.locator('.fact').filter({ hasText: name })
  await fact('Balance at the start of the month').getByText('0.00 USD').waitFor()
  await fact('Balance so far').getByText('11.50 USD').waitFor()

  await tabTo('Change')
  await dialog.getByText('More settings').click()
  await dialog.getByLabel('Calls at once').fill('3')
  await dialog.getByLabel('Calls at once').press('Escape')
  // The browser closes it, and tells the page after that: until then the page takes it for open.
  await page.locator('dialog').waitFor({ state: 'detached' })
  await expect.poll(() => focused(page)).toEqual(['BUTTON', 'Change'])
  await page.keyboard.press('Enter')
  await dialog.getByLabel('Name').fill('renamed')
  await dialog.getByLabel('Name').press('Enter')
  await page.getByRole('heading', { name: 'renamed' }).waitFor()
  await tabTo('Rates')
  await row(page, '0.60').waitFor()
  await page.getByLabel('Price of a call to').fill('18005551212')
  await page.getByLabel('Price of a call to').press('Enter')
  await page.getByText('0.60 USD per minute by prefix 1; a call of one minute').waitFor()
  await page.getByRole('main').getByRole('link', { name: 'Recent calls' }).press('Enter')
  await page.getByText('No call in this period.').waitFor()
  await page.waitForURL(/\/console\/history\?by=customer_id&for=5&days=30$/)
  expect(complaints).toEqual([])
})
