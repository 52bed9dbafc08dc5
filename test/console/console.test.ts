/** The console as operators use it: the started program, real calls, a real browser. */
import type { Page } from 'playwright-core'
import { expect, test } from 'vitest'
import { postFrom, row } from '../support/console-browser.ts'
import { admin, ofTenant, placeCall, shareConsole } from '../support/console-rig.ts'
import { eventually } from '../support/waiting.ts'

const { rig, open, signedIn } = shareConsole()

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

/** The part of the page that has the focus: its element, and its text. */
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

test('a wrong password is refused in words; signing out ends the session', async () => {
  const { page, signIn } = await open()
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

test('a sign-out that the server does not take says that the session goes on', async () => {
  const { page } = await signedIn()
  await page.route('**/api/v1/auth/session', (route) => {
    const body = { success: false, error: 'The database is busy', code: 'busy' }
    return route.request().method() === 'DELETE'
      ? route.fulfill({ status: 503, json: body })
      : route.continue()
  })
  await page.getByRole('button', { name: 'Account' }).click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await page.getByText('You are still signed in: The database is busy').waitFor()
  await page.getByRole('button', { name: 'Sign out' }).waitFor()
})

test('a server that does not say who is signed in is asked again, and nobody signs in again', async () => {
  const { page } = await signedIn()
  let isBusy = true
  await page.route('**/api/v1/auth/session', (route) => {
    const body = { success: false, error: 'The database is busy', code: 'busy' }
    return isBusy ? route.fulfill({ status: 503, json: body }) : route.continue()
  })
  await page.goto('/console/customers')
  await page.getByRole('alert').getByText('The database is busy').waitFor()
  expect(await page.getByRole('button', { name: 'Sign in' }).count()).toBe(0)
  isBusy = false
  await page.getByRole('button', { name: 'Try again' }).click()
  await page.getByRole('heading', { name: 'Customers' }).waitFor()
})

test('a node is drained and may be stopped when its last call has ended; the last node stays', async () => {
  const { page, complaints } = await signedIn()
  const caller = await placeCall(rig())
  await page.getByRole('link', { name: 'Nodes' }).click()
  const [first, second] = rig().nodes.map(({ port }) => row(page, `:${port};`))
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
  const { tollgate } = rig()
  const before = tollgate.wallet('paying').balance
  const { page, complaints } = await signedIn()
  await page.getByRole('link', { name: 'Customers' }).click()
  await page.getByRole('link', { name: 'paying' }).click()
  await page.getByRole('link', { name: 'Statement' }).click()
  await page.getByRole('button', { name: 'Top up' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel(/^Amount/).fill('5.50')
  await dialog.getByLabel('Reason').fill('bank transfer 4711')
  await dialog.getByRole('button', { name: 'Top up' }).click()
  await row(page, 'Top-up by user admin: bank transfer 4711').getByText('+5.50').waitFor()
  expect(tollgate.wallet('paying').balance).toBe(before + 5_500_000)
  expect(complaints).toEqual([])
})

test('a key is suspended, resumed and revoked; its name cannot reorder or hide text', async () => {
  const { tollgate } = rig()
  const token = await tollgate.createKey('--name', 'ci <b>\u202Egnp.exe')
  const { page, complaints } = await signedIn()
  const ask = () =>
    fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1/health`, {
      headers: { Authorization: `Bearer ${token.trim()}` },
    })
  expect((await ask()).status).toBe(200)
  await page.getByRole('link', { name: 'Keys', exact: true }).click()
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
  const user = { ...ofTenant, role: 'admin', tenant_slug: 'acme' }
  expect(await postFrom(rig().console.page, '/users', user)).toBe(201)
  const { page, signIn, complaints } = await open()
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
  const { page, signIn } = await signedIn()
  await page.getByRole('link', { name: 'Customers' }).click()
  await page.getByRole('link', { name: 'paying' }).waitFor()
  await page.context().clearCookies()
  await page.getByText('Your session has ended.').waitFor()
  await signIn(admin.username, admin.password)
  await page.getByRole('link', { name: 'paying' }).waitFor()
  await page.waitForURL(/\/console\/customers$/)
})

test('of 2,000 live calls only those in sight are in the page; search and order are in its address', async () => {
  const { page, complaints } = await signedIn()
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

test('on a phone the menu is behind a button, which keys open and close', async () => {
  const { page, complaints } = await signedIn({ width: 390 })
  const link = page.getByRole('link', { name: 'Audit' })
  expect(await link.isVisible()).toBe(false)
  const button = page.getByRole('button', { name: 'Menu' })
  await button.focus()
  await page.keyboard.press('Enter')
  await link.waitFor()
  await page.keyboard.press('Escape')
  await link.waitFor({ state: 'hidden' })
  expect(await button.evaluate('document.activeElement?.textContent')).toBe('Menu')
  await button.click()
  await link.click()
  await page.getByRole('heading', { name: 'Audit' }).waitFor()
  await link.waitFor({ state: 'hidden' })
  expect(complaints).toEqual([])
})

test('the own password is changed in the account menu; a wrong old one is told', async () => {
  const user = { username: 'pat', password: 'first password', role: 'auditor' }
  expect(await postFrom(rig().console.page, '/users', user)).toBe(201)
  const { page, signIn } = await open()
  await signIn('pat', 'first password')
  await page.getByRole('button', { name: 'Account' }).click()
  await page.getByRole('button', { name: 'Change password' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Old password').fill('wrong password')
  await dialog.getByLabel('New password').fill('second password')
  await dialog.getByRole('button', { name: 'Change password' }).click()
  await dialog.getByText('is not the password of this user').waitFor()
  await dialog.getByLabel('Old password').fill('first password')
  await dialog.getByRole('button', { name: 'Change password' }).click()
  await page.getByText('Password changed').waitFor()
  await page.reload()
  await page.getByRole('button', { name: 'Account' }).click()
  await page.getByRole('button', { name: 'Sign out' }).click()
  await signIn('pat', 'second password')
})

test('the guide is read without a session on a dark phone: contents, search, anchors', async () => {
  const { page, complaints, inaccessible } = await open({ colorScheme: 'dark', width: 390 })
  await page.getByRole('link', { name: 'Guide' }).click()
  await page.getByRole('heading', { name: 'Guide', level: 1 }).waitFor()
  expect(await inaccessible()).toEqual([])
  expect(
    await page.evaluate(
      'document.documentElement.scrollWidth > document.documentElement.clientWidth',
    ),
  ).toBe(false)
  const contents = page.getByRole('button', { name: 'Contents' })
  if (await contents.isVisible()) await contents.click()
  const menu = page.getByRole('navigation')
  await menu.getByLabel('Search').fill('dispatcher  KAMAILIO')
  await menu.getByText('1 section', { exact: true }).waitFor()
  expect(await page.getByRole('heading', { name: 'Trunks' }).isVisible()).toBe(false)
  await page.keyboard.press('Enter')
  await page.waitForURL(/\/guide#in-front-of-several-nodes$/)
  await page.getByRole('heading', { name: 'In front of several nodes' }).waitFor()
  expect(complaints).toEqual([])
})

test('the API reference has the session of the console, and asks to sign in without one', async () => {
  const { page, complaints, inaccessible } = await open({ colorScheme: 'dark' })
  await page.getByRole('link', { name: 'API reference' }).click()
  await page.getByText(/^Sign in to try/).waitFor()
  await page.getByLabel('User').fill(admin.username)
  await page.getByLabel('Password').fill('wrong')
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText('Username or password is wrong').waitFor()
  await page.getByLabel('Password').fill(admin.password)
  await page.getByRole('button', { name: 'Sign in' }).click()
  await page.getByText(`Signed in as ${admin.username}`).waitFor()
  expect(await page.getByLabel('Password').isVisible()).toBe(false)
  // Faults of Swagger UI itself: a select without a name, text outside of its main part.
  const ofSwagger = /swagger|opblock|id="servers"|class="information-container/
  expect((await inaccessible()).filter((each) => !ofSwagger.test(each))).toEqual([])
  await page.getByRole('banner').getByRole('link', { name: 'Console' }).click()
  await page.getByRole('button', { name: 'Account' }).waitFor()
  // The browser reports the refused sign-in.
  expect(complaints.filter((each) => !each.includes('401'))).toEqual([])
})

test('the charts are full when Now opens; a page that stays open keeps its session', async () => {
  const { page, complaints, signIn } = await open()
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

test('the charts of Now say that there was no call only when they know it', async () => {
  const { page } = await signedIn()
  let goOn = (): void => undefined
  const isAsked = new Promise<void>((done) => (goOn = done))
  const zero = { active: 0, started: 0, ended: 0, answered: 0, spent: [] }
  const idle = { ...sample(1), ...zero, post_dial_delay: { count: 0, sum_ms: 0 } }
  const history = { success: true, data: { interval_seconds: 5, samples: [idle] } }
  await page.route('**/metrics/history', async (route) => {
    await isAsked
    await route.fulfill({ json: history })
  })
  await page.getByRole('link', { name: 'Now' }).click()
  await page.getByText('Live calls: –', { exact: true }).waitFor()
  const empty = page.getByText('No call in these ten minutes.')
  expect(await empty.count()).toBe(0)
  goOn()
  // The event loop has its lag without calls.
  await expect.poll(() => empty.count()).toBe(5)
})

test('a customer is made, found by its low balance, changed, and topped up; all by the keyboard', async () => {
  const { page, complaints } = await signedIn({ timezoneId: 'Asia/Tokyo' })
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
  // The screen is loaded after its frame.
  await page.getByRole('searchbox', { name: 'Search' }).waitFor()
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
  await dialog
    .getByRole('textbox', { name: 'Numbers', exact: true })
    .fill('12025550144\n12025550145')
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
  await page.getByRole('heading', { name: 'new one', level: 1 }).waitFor()
  await page.getByText('low balance').waitFor()
  await tabTo('Statement')
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
  await dialog.getByText('Discard what you typed?').waitFor()
  await expect.poll(() => focused(page)).toEqual(['BUTTON', 'Go on typing'])
  await page.keyboard.press('Enter')
  expect(await dialog.getByLabel('Calls at once').inputValue()).toBe('3')
  await dialog.getByLabel('Calls at once').press('Escape')
  await dialog.getByRole('button', { name: 'Discard' }).click()
  // The browser closes it, and tells the page after that: until then the page takes it for open.
  await page.locator('dialog').waitFor({ state: 'detached' })
  await expect.poll(() => focused(page)).toEqual(['BUTTON', 'Change'])
  await page.keyboard.press('Enter')
  await dialog.getByLabel('Name').fill('renamed')
  await dialog.getByLabel('Name').press('Enter')
  await page.getByRole('heading', { name: 'renamed' }).waitFor()
  await tabTo('Prices')
  await row(page, '0.60').waitFor()
  await page.getByLabel('Price of a call to').fill('18005551212')
  await page.getByLabel('Price of a call to').press('Enter')
  await page.getByText('0.60 USD per minute by prefix 1; a call of one minute').waitFor()
  await tabTo('Overview')
  await page.getByRole('link', { name: 'All its calls' }).press('Enter')
  await page.getByText('No call in this period.').waitFor()
  await page.waitForURL(/\/console\/history\?period=7d&customer_id=5$/)
  expect(complaints).toEqual([])
})

test('instances that do not answer are named over every screen, until they answer again', async () => {
  const { page, complaints } = await signedIn()
  await page.route('**/metrics/telemetry', async (route) => {
    const response = await route.fetch()
    const headers = { ...response.headers(), 'x-unreachable-nodes': 'sbc-2, sbc-3' }
    await route.fulfill({ response, headers })
  })
  await page.getByRole('link', { name: 'Now' }).click()
  await page.getByText('No answer from sbc-2, sbc-3: what only these nodes know').waitFor()
  await page.unroute('**/metrics/telemetry')
  await page.getByText(/^No answer from/).waitFor({ state: 'hidden' })
  expect(complaints).toEqual([])
})

test('a lost server is told, and its return shows what has happened since', async () => {
  const { tollgate } = rig()
  const { page } = await signedIn()
  await page.getByText('Live', { exact: true }).waitFor()
  await tollgate.terminate()
  await page.getByText('Connection lost, trying again').waitFor()
  await tollgate.restart()
  await page.getByText('Live', { exact: true }).waitFor()
})
