/** Many rows of a list are chosen, and changed, deleted, exported and put back at once. */
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { formsOf, postFrom, row } from '../support/console-browser.ts'
import { admin, shareConsole } from '../support/console-rig.ts'

const { signedIn } = shareConsole()

const box = (page: Page, name: string) => page.getByRole('checkbox', { name: `Select ${name}` })
const bar = (page: Page) => page.getByRole('group', { name: 'Selected customers' })
const pressed = (page: Page, name: string) =>
  bar(page).getByRole('button', { name, exact: true }).click()

async function made(page: Page, ...names: readonly string[]): Promise<void> {
  for (const name of names) expect(await postFrom(page, '/customers', { name })).toBe(201)
  await page.getByRole('link', { name: 'Customers', exact: true }).click()
  for (const name of names) await row(page, name).waitFor()
}

/** Points at what was done, once it is told: it stays for so long. */
async function told(page: Page, text: string): Promise<void> {
  await page.locator('.toast').filter({ hasText: text }).hover()
}
const undone = async (page: Page) => {
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('It is undone.').waitFor()
}

const topOf = async (page: Page, name: string) => (await row(page, name).boundingBox())?.y

test('a range of customers is deleted after a question that names them, and nothing moves', async () => {
  const { page, complaints, inaccessible } = await signedIn()
  const { dialog, confirm } = formsOf(page)
  await made(page, 'many one', 'many three', 'many two')
  const top = await topOf(page, 'many two')
  await box(page, 'many one').click()
  await box(page, 'many two').click({ modifiers: ['Shift'] })
  await bar(page).getByText('3 selected').waitFor()
  expect(await topOf(page, 'many two')).toBe(top)
  expect(await inaccessible()).toEqual([])

  await pressed(page, 'Delete')
  await dialog.getByText('Delete 3 customers?').waitFor()
  await dialog.getByText('many one, many three, many two').waitFor()
  await dialog.getByText('It cannot be undone.').waitFor()
  expect(await inaccessible()).toEqual([])
  await confirm('Delete')
  await page.getByText('3 customers are deleted.').waitFor()
  await expect.poll(() => row(page, 'many').count()).toBe(0)
  expect(complaints).toEqual([])
})

test('what something refers to stays, a refused row says why, and is tried again', async () => {
  const { page } = await signedIn()
  const { dialog, confirm } = formsOf(page)
  const used = { name: 'lot used', tenant: 'acme' }
  expect(await postFrom(page, '/customers', used)).toBe(201)
  await made(page, 'lot refused', 'lot free')
  const extension = {
    extension: '177',
    tenant: 'acme',
    display_name: 'Desk',
    password: 'long enough',
    customer: 'lot used',
  }
  expect(await postFrom(page, '/pbx/extensions', extension)).toBe(201)
  await page.getByLabel('Search').fill('lot')
  await expect.poll(() => row(page, 'lot').count()).toBe(3)
  await page.getByRole('checkbox', { name: 'Select all of Customers' }).click()

  let isRefused = true
  let deleted = 0
  await page.route('**/api/v1/customers/*', (route) => {
    if (route.request().method() !== 'DELETE') return route.continue()
    deleted += 1
    const body = { success: false, error: 'It has calls', code: 'in_use' }
    // The second one that is sent.
    return isRefused && deleted === 2
      ? route.fulfill({ status: 409, json: body })
      : route.continue()
  })
  await pressed(page, 'Delete')
  await dialog.getByText('Delete 2 customers?').waitFor()
  await dialog.getByText('1 customer stays as it is').waitFor()
  await dialog.getByText('lot used: 1 extension uses it (177)').waitFor()
  await confirm('Cancel')
  await bar(page).getByText('3 selected').waitFor()
  await pressed(page, 'Delete')
  await confirm('Delete')
  await dialog.getByText('1 customer is deleted. 1 customer is not:').waitFor()
  await dialog.getByText('lot refused: It has calls').waitFor()
  expect(deleted).toBe(2)
  isRefused = false
  await confirm('Try again')
  await page.getByText('2 customers are deleted.').waitFor()
  await expect.poll(() => row(page, 'lot').count()).toBe(1)
})

test('chosen customers are switched off, exported and moved to a plan, and one undo takes all back', async () => {
  const { page, complaints } = await signedIn()
  const { dialog, confirm } = formsOf(page)
  expect(await postFrom(page, '/rate-plans', { name: 'bulk plan', currency: 'USD' })).toBe(201)
  await made(page, 'key a', 'key b', '=key c')
  await page.getByLabel('Search').fill('key')
  await expect.poll(() => row(page, 'key').count()).toBe(3)
  await box(page, '=key c').focus()
  await page.keyboard.press('Space')
  await page.keyboard.press('Shift+ArrowDown')
  await bar(page).getByText('2 selected').waitFor()
  await page.keyboard.press('Control+a')
  await bar(page).getByText('3 selected').waitFor()
  await page.keyboard.press('Escape')
  await expect.poll(() => page.getByRole('checkbox', { checked: true }).count()).toBe(0)
  await page.keyboard.press('Control+a')

  const [download] = await Promise.all([page.waitForEvent('download'), pressed(page, 'Export')])
  expect(download.suggestedFilename()).toBe('customers.csv')
  const [head = '', first, ...others] = readFileSync(await download.path(), 'utf8').split('\r\n')
  const at = head.split(',').indexOf('name')
  expect(first?.split(',')[at]).toBe("'=key c")
  expect(others.filter(Boolean)).toHaveLength(2)

  await pressed(page, 'Move to plan')
  await dialog.getByLabel('Rate plan').selectOption({ label: 'bulk plan (USD)' })
  await confirm('Move to plan')
  await told(page, '3 customers are moved.')
  await expect.poll(() => row(page, 'bulk plan').count()).toBe(3)
  await undone(page)
  await expect.poll(() => row(page, 'bulk plan').count()).toBe(0)

  await page.setViewportSize({ width: 390, height: 800 })
  await page.getByRole('checkbox', { name: 'Select all of Customers' }).click()
  const place = await bar(page).boundingBox()
  expect(place?.width).toBeLessThanOrEqual(390)
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(390)
  await pressed(page, 'Disable')
  await dialog.getByText('“May call” is switched off.').waitFor()
  await confirm('Disable')
  await page.getByText('3 customers are disabled.').waitFor()
  await expect.poll(() => row(page, 'inactive').count()).toBe(3)
  expect(complaints).toEqual([])
})

const barOf = (page: Page, many: string) => page.getByRole('group', { name: `Selected ${many}` })
const chosen = async (page: Page, many: string, action: string, ...names: readonly string[]) => {
  for (const name of names) await box(page, name).click()
  await barOf(page, many).getByRole('button', { name: action, exact: true }).click()
}
test('several keys are suspended, put back by one undo, and revoked for good', async () => {
  const { page, complaints, inaccessible } = await signedIn()
  const { dialog, confirm } = formsOf(page)
  for (const name of ['lot key a', 'lot key b'])
    expect(await postFrom(page, '/application-keys', { name })).toBe(201)
  await page.getByRole('link', { name: 'Keys', exact: true }).click()
  await chosen(page, 'keys', 'Suspend', 'lot key a', 'lot key b')
  await dialog.getByText('Suspend 2 keys?').waitFor()
  await dialog.getByText('their requests are rejected from now on').waitFor()
  await dialog.getByLabel('Reason').fill('they have leaked')
  await confirm('Suspend')
  await told(page, '2 keys are suspended.')
  await expect.poll(() => row(page, 'suspended').count()).toBe(2)
  await undone(page)
  await expect.poll(() => row(page, 'suspended').count()).toBe(0)

  await chosen(page, 'keys', 'Revoke', 'lot key a', 'lot key b')
  await dialog.getByText('It cannot be undone').waitFor()
  expect(await inaccessible()).toEqual([])
  await confirm('Revoke')
  await page.getByText('2 keys are revoked.').waitFor()
  await expect.poll(() => row(page, 'revoked').count()).toBe(2)
  expect(await page.getByRole('button', { name: 'Undo' }).count()).toBe(0)
  await chosen(page, 'keys', 'Revoke', 'lot key a')
  await dialog.getByText('Nothing to revoke').waitFor()
  await dialog.getByText('lot key a: it is revoked').waitFor()
  expect(complaints).toEqual([])
})

test('several bans are lifted, and several spend guards removed and set again by one undo', async () => {
  const { page, complaints } = await signedIn()
  const { dialog, confirm } = formsOf(page)
  for (const address of ['203.0.113.21', '203.0.113.22'])
    expect(await postFrom(page, '/guard/bans', { address })).toBe(201)
  await page.getByRole('link', { name: 'Bans', exact: true }).click()
  await chosen(page, 'bans', 'Lift', '203.0.113.21', '203.0.113.22')
  await dialog.getByText('Lift 2 bans?').waitFor()
  await dialog.getByText('packets of these sources are read again').waitFor()
  await confirm('Lift')
  await page.getByText('2 bans are lifted.').waitFor()
  await expect.poll(() => row(page, '203.0.113.2').count()).toBe(0)

  for (const prefix of ['1901', '1902']) {
    const guard = { customer: 'paying', prefix, action: 'block', reason: 'fraud' }
    expect(await postFrom(page, '/spend-guards', guard)).toBe(201)
  }
  await page.getByRole('link', { name: 'Spend guards', exact: true }).click()
  await chosen(
    page,
    'spend guards',
    'Remove',
    'customer paying to 1901…',
    'customer paying to 1902…',
  )
  await dialog.getByLabel('Reason').fill('it is over')
  await confirm('Remove')
  await told(page, '2 spend guards are removed.')
  await expect.poll(() => row(page, '190').count()).toBe(0)
  await undone(page)
  await expect.poll(() => row(page, '190').count()).toBe(2)
  expect(complaints).toEqual([])
})

test('of several nodes all but the last one are drained, and taken back by one undo', async () => {
  const { page } = await signedIn()
  const { dialog, confirm } = formsOf(page)
  await page.getByRole('link', { name: 'PBX nodes' }).click()
  await expect.poll(() => row(page, 'in service').count()).toBe(2)
  await page.getByRole('checkbox', { name: 'Select all of Nodes' }).click()
  await barOf(page, 'nodes').getByRole('button', { name: 'Drain', exact: true }).click()
  await dialog.getByText('they get no new calls, and their live calls continue').waitFor()
  await confirm('Drain')
  await dialog.getByText('1 node is drained. 1 node is not:').waitFor()
  await dialog.getByText('the last node in service of its set').waitFor()
  await confirm('Cancel')
  await page.getByText('1 node is drained.', { exact: true }).waitFor()
  await undone(page)
  await expect.poll(() => row(page, 'in service').count()).toBe(2)
})

test('while the API takes no more, the walk waits as long as it says, and goes on', async () => {
  const { page } = await signedIn()
  const { dialog, confirm } = formsOf(page)
  await made(page, 'slow a', 'slow b', 'slow c')
  await page.getByLabel('Search').fill('slow')
  await expect.poll(() => row(page, 'slow').count()).toBe(3)
  await page.getByRole('checkbox', { name: 'Select all of Customers' }).click()
  let refused = 0
  await page.route('**/api/v1/customers/*', (route) => {
    if (route.request().method() !== 'PATCH' || refused === 2) return route.continue()
    refused += 1
    const body = { success: false, error: 'Too many requests', code: 'rate_limited' }
    return route.fulfill({ status: 429, json: body, headers: { 'Retry-After': '1' } })
  })
  await pressed(page, 'Disable')
  await confirm('Disable')
  await dialog.getByText('0 of 3; the server takes no more for now, it goes on in 1 s').waitFor()
  await page.getByText('3 customers are disabled.').waitFor()
  expect(refused).toBe(2)
  await expect.poll(() => row(page, 'inactive').count()).toBeGreaterThanOrEqual(3)
})

/** All customers with this word in their names are chosen, and are to be disabled. */
async function chosenToDisable(page: Page, word: string, count: number): Promise<void> {
  await page.getByLabel('Search').fill(word)
  await expect.poll(() => row(page, word).count()).toBe(count)
  await page.getByRole('checkbox', { name: 'Select all of Customers' }).click()
  await pressed(page, 'Disable')
  await formsOf(page).confirm('Disable')
}

test('whoever leaves the page ends what goes on there, and is told what was done', async () => {
  const { page } = await signedIn()
  await made(page, 'left a', 'left b', 'left c')
  let sent = 0
  let goOn = (): void => undefined
  const isLeft = new Promise<void>((done) => (goOn = done))
  await page.route('**/api/v1/customers/*', async (route) => {
    if (route.request().method() === 'PATCH') sent += 1
    if (sent === 2) await isLeft
    await route.continue()
  })
  await chosenToDisable(page, 'left', 3)
  await formsOf(page).dialog.getByText('1 of 3').waitFor()
  await expect.poll(() => sent).toBe(2)
  await page.goBack()
  await page.getByRole('heading', { name: 'Live calls', level: 1 }).waitFor()
  goOn()
  await told(page, '2 customers are disabled.')
  await undone(page)
  expect(sent).toBe(2)
})

test('an undoing that ends with the session is not there for who signs in next', async () => {
  const { page, signIn } = await signedIn()
  await made(page, 'over a', 'over b')
  await chosenToDisable(page, 'over', 2)
  await told(page, '2 customers are disabled.')
  await page.route('**/api/v1/changes/*/undo', (route) => {
    const body = { success: false, error: 'No session', code: 'unauthorized' }
    return route.fulfill({ status: 401, json: body })
  })
  await page.getByRole('button', { name: 'Undo' }).click()
  await page.getByText('Your session has ended').waitFor()
  await signIn(admin.username, admin.password)
  expect(await page.locator('.toast').count()).toBe(0)
})
