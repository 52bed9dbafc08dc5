/** The console as operators use it: the started program, real calls, a real browser. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { openBrowser, openConsole, type ConsolePage } from '../support/console-browser.ts'
import {
  admin,
  ofTenant,
  placeCall,
  startConsoleRig,
  type ConsoleRig,
} from '../support/console-rig.ts'
import { eventually } from '../support/waiting.ts'

let browser: Browser
/** Of the tests without calls; each has a page of its own. */
let shared: ConsoleRig
/** It takes some seconds until the page asks again, in which the other tests run. */
let endedSession: Promise<void>

beforeAll(async () => {
  browser = await openBrowser()
  shared = await startConsoleRig(browser, (work) => atEnd.push(work))
  endedSession = endSession(shared.console)
  // Its test waits for it, and fails with it.
  endedSession.catch(() => undefined)
})

const atEnd: (() => void | Promise<void>)[] = []
afterAll(async () => {
  for (const work of atEnd.toReversed()) await work()
  await browser.close()
})

/** A page on which the administrator has signed in. */
async function openShared(): Promise<ConsoleRig> {
  const console = await openConsole(browser, shared.tollgate)
  onTestFinished(() => console.page.context().close())
  await console.signIn(admin.username, admin.password)
  return { ...shared, console }
}

/** The session ends, and the user signs in again. */
async function endSession({ page, signIn }: ConsolePage): Promise<void> {
  await page.getByRole('link', { name: 'Customers' }).click()
  await page.getByRole('link', { name: 'paying' }).waitFor()
  await page.context().clearCookies()
  await page.getByText('Your session has ended.').waitFor()
  await signIn(admin.username, admin.password)
  await page.getByRole('link', { name: 'paying' }).waitFor()
  await page.waitForURL(/\/console\/customers$/)
}

/** As the API shows it. */
const activeCall = (index: number) => ({
  uuid: `call-${index}`,
  call_uuid: `call-${index}`,
  state: 'ACTIVE',
  direction: 'outbound',
  caller_id_number: `4930${index}`,
  destination_number: '18005551212',
  duration_seconds: index,
  start_stamp: '2026-01-01T00:00:00.000Z',
  answer_stamp: null,
  node: 'sip:10.0.0.1',
  cost: index,
  cost_exact: `${index}.00`,
  currency: 'USD',
  carrier: null,
  customer_id: null,
  transfer: null,
  price: null,
})

const row = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text })

test('a wrong password is refused in words; signing out ends the session', async () => {
  const { page, signIn } = await openConsole(browser, shared.tollgate)
  onTestFinished(() => page.context().close())
  await page.getByLabel('User').fill('admin')
  await page.getByLabel('Password').fill('wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByRole('alert').getByText('Username or password is wrong').waitFor()
  await signIn(admin.username, admin.password)
  expect(await page.evaluate('document.cookie')).toBe('')
  await page.getByRole('button', { name: 'Account' }).click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
  await page.goto('/console/keys')
  await page.getByRole('button', { name: 'Sign in' }).waitFor()
})

test('a live call is seen, costs more each second, and is hung up', async () => {
  const rig = await startConsoleRig(browser)
  const { page, complaints } = rig.console
  await page.getByText('Live', { exact: true }).waitFor()
  const caller = await placeCall(rig)
  const call = row(page, '18005551212')
  await call.getByText('active').waitFor()
  const cost = () => call.getByText(/USD$/).textContent()
  const before = await cost()
  await eventually(async () => expect(await cost()).not.toBe(before))
  await call.getByRole('button', { name: /^Hang up/ }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Hang up' }).click()
  caller.reply(await caller.next('BYE'), 200)
  await page.getByText('No call is in progress.').waitFor()
  const [stored] = await rig.tollgate.waitForCalls(1)
  expect(stored).toMatchObject({ disposition: 'ANSWERED', hangup_by: 'api' })

  await page.getByRole('link', { name: 'Recent calls' }).click()
  await row(page, '18005551212').getByRole('link').first().click()
  await page.getByText(/Ended by an operator or a program, by the API/).waitFor()
  await page.getByText(/Caller to Tollgate: INVITE/).waitFor()
  expect(complaints).toEqual([])
})

test('a node is drained and may be stopped when its last call has ended; the last node stays', async () => {
  const rig = await startConsoleRig(browser)
  const { page, complaints } = rig.console
  const caller = await placeCall(rig)
  await page.getByRole('link', { name: 'Nodes' }).click()
  const [first, second] = rig.nodes.map(({ port }) => row(page, `:${port};`))
  if (first === undefined || second === undefined) throw new Error('there are two nodes')
  await first.getByText('in service').waitFor()
  await second.getByText('in service').waitFor()
  await first.getByRole('button', { name: /^Drain/ }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click()
  await first.getByText('draining: 1 call left').waitFor()
  await second.getByRole('button', { name: /^Drain/ }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Drain' }).click()
  await page.getByText(/the last node in service of its set/).waitFor()
  await page.keyboard.press('Escape')
  await page.getByRole('link', { name: 'Live calls' }).click()
  await row(page, '18005551212')
    .getByRole('button', { name: /^Hang up/ })
    .click()
  await page.getByRole('dialog').getByRole('button', { name: 'Hang up' }).click()
  caller.reply(await caller.next('BYE'), 200)
  await page.getByRole('link', { name: 'Nodes' }).click()
  await first.getByText('drained: it may be stopped').waitFor()
  await first.getByRole('button', { name: /^Take back/ }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Take back' }).click()
  await first.getByText('in service').waitFor()
  // The refusal of the last node is the one answer that browsers report.
  expect(complaints).toEqual([expect.stringContaining('409')])
})

test('a wallet is topped up, and the ledger shows it', async () => {
  const { tollgate, console: opened } = await openShared()
  const { page, complaints } = opened
  await page.getByRole('link', { name: 'Customers' }).click()
  await page.getByRole('link', { name: 'paying' }).click()
  await page.getByRole('button', { name: 'Top up' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel(/^Amount/).fill('5.50')
  await dialog.getByLabel('Reason').fill('bank transfer 4711')
  await dialog.getByRole('button', { name: 'Top up' }).click()
  await row(page, 'Top-up by admin: bank transfer 4711').getByText('15.50').waitFor()
  await row(page, 'bank transfer 4711').getByText('+5.50').waitFor()
  expect(tollgate.wallet('paying').balance).toBe(15_500_000)
  expect(complaints).toEqual([])
})

test('a key is suspended, resumed and revoked; its name cannot reorder or hide text', async () => {
  const { tollgate, console: opened } = await openShared()
  const token = await tollgate.createKey('--name', 'ci <b>\u202Egnp.exe')
  const { page, complaints } = opened
  const ask = () =>
    fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1/health`, {
      headers: { Authorization: `Bearer ${token.trim()}` },
    })
  expect((await ask()).status).toBe(200)
  await page.getByRole('link', { name: 'Keys' }).click()
  const key = row(page, 'ci <b><U+202E>gnp.exe')
  for (const [action, state, status] of [
    ['Suspend', 'suspended', 401],
    ['Resume', 'active', 200],
  ] as const) {
    await key.getByRole('button', { name: new RegExp(`^${action}`) }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Reason').fill('an alert of the night')
    await dialog.getByRole('button', { name: action }).click()
    await key.getByText(state).waitFor()
    expect((await ask()).status).toBe(status)
  }
  await key.getByRole('button', { name: /^Revoke/ }).click()
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
  await key.getByText('revoked').waitFor()
  expect((await ask()).status).toBe(401)
  expect(complaints).toEqual([])
})

test('the user of a tenant sees the tenant only', async () => {
  const { tollgate, console: opened } = await openShared()
  const made = await opened.page.evaluate(
    `fetch('/api/v1/users', { method: 'POST', headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ username: '${ofTenant.username}', password: '${ofTenant.password}',
        role: 'admin', tenant_slug: 'acme' }) }).then(({ status }) => status)`,
  )
  expect(made).toBe(201)
  const { page, signIn, complaints } = await openConsole(browser, tollgate)
  onTestFinished(() => page.context().close())
  await signIn(ofTenant.username, ofTenant.password)
  await page.getByRole('link', { name: 'Customers' }).click()
  await page.getByRole('link', { name: 'ours' }).waitFor()
  expect(await page.getByRole('link', { name: 'theirs' }).count()).toBe(0)
  expect(await page.getByRole('link', { name: 'Now' }).count()).toBe(0)
  await page.goto('/console/customers/3')
  await page
    .getByRole('alert')
    .getByText(/not found/i)
    .first()
    .waitFor()
  // Browsers report each request for the other tenant's customer.
  expect(complaints.filter((each) => !each.includes('404'))).toEqual([])
})

test('an ended session asks to sign in, and goes on at the same address', async () => {
  await endedSession
})

test('of 2,000 live calls only those in sight are in the page; search and order are in its address', async () => {
  const { console: opened } = await openShared()
  const { page, complaints } = opened
  const calls = Array.from({ length: 2_000 }, (_, index) => activeCall(index))
  await page.route('**/pbx/calls/active', (route) => route.fulfill({ json: calls }))
  await page.goto('/console/calls?sort=-cost')
  await page.getByText('2,000', { exact: true }).waitFor()
  const rows = page.getByRole('table').getByRole('row')
  expect(await rows.count()).toBeLessThan(60)
  await rows.nth(1).getByText('1999.00 USD').waitFor()
  await page.getByRole('group', { name: 'Live calls, table' }).press('End')
  await row(page, '0.00 USD').first().waitFor()
  expect(await rows.count()).toBeLessThan(60)
  await page.getByLabel('Search').fill('493012 active')
  await page.getByText('111 of 2,000').waitFor()
  await page.getByRole('button', { name: 'From' }).click()
  await page.waitForURL(/\/console\/calls\?sort=from&q=493012\+active$/)
  expect(complaints).toEqual([])
})

test('a lost server is told, and its return shows what has happened since', async () => {
  // Of the page whose session has ended, too, it would be lost.
  await endedSession
  const { tollgate, console: opened } = await openShared()
  const { page } = opened
  await page.getByText('Live', { exact: true }).waitFor()
  await tollgate.terminate()
  await page.getByText('Connection lost, trying again').waitFor()
  await tollgate.restart()
  await page.getByText('Live', { exact: true }).waitFor()
})
