/**
 * The list of ended calls: filters, order, pages, views, export and live tail. The tests share one
 * program with the calls that `beforeAll` reports.
 */
import { readFileSync } from 'node:fs'
import type { Page } from 'playwright-core'
import { beforeAll, expect, test } from 'vitest'
import { row } from '../support/console-browser.ts'
import { admin, placeCall, shareConsole } from '../support/console-rig.ts'
import { eventually } from '../support/waiting.ts'

const { rig, open, signedIn } = shareConsole()

const MINUTE_MS = 60_000
const DAY_MS = 86_400_000

/** Calls of the last hours: more than a page has. */
const CALLS = 130

interface Reported {
  readonly agoMs: number
  readonly callee?: string
  readonly billsec?: number
  readonly disposition?: string
  readonly sip_code?: number
  readonly hangup_cause?: string
}

const busy = { disposition: 'BUSY', billsec: 0, sip_code: 486, hangup_cause: 'USER_BUSY' }
const failed = { disposition: 'FAILED', billsec: 0, sip_code: 503 }

/** The newest is a minute old; every tenth failed, every thirteenth was busy. */
const reported: readonly Reported[] = [
  ...Array.from({ length: CALLS }, (_, index) => ({
    agoMs: (index + 1) * MINUTE_MS,
    callee: `1800555${String(index).padStart(4, '0')}`,
    billsec: 1 + (index % 4),
    ...(index % 13 === 5 && busy),
    ...(index % 10 === 3 && { ...failed, hangup_cause: 'NETWORK_OUT_OF_ORDER' }),
  })),
  { agoMs: 3 * DAY_MS, callee: '18007770001', billsec: 1 },
  { agoMs: 40 * DAY_MS, callee: '18007770002', billsec: 1 },
]
const lately = reported.filter(({ agoMs }) => agoMs < DAY_MS)
const failures = lately.filter(({ disposition }) => disposition === 'FAILED')

/** When the newest of them started. */
let newestAt = 0

beforeAll(async () => {
  const { tollgate } = rig()
  const token = await tollgate.createKey('--name', 'node', '--kind', 'billing', '--scopes', 'ocs')
  const present = Date.now()
  newestAt = present - MINUTE_MS
  for (const [index, { agoMs, ...call }] of reported.entries()) {
    const started = present - agoMs
    const stamps = {
      start_stamp: new Date(started).toISOString(),
      end_stamp: new Date(started + (call.billsec ?? 0) * 1_000).toISOString(),
    }
    const body = { call_uuid: `call-${index}`, caller: '12025550100', ...call, ...stamps }
    const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/ocs/cdr`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    expect([index, answer.status]).toEqual([index, 200])
  }
})

const at = async (query: string, options: Parameters<typeof signedIn>[0] = {}): Promise<Page> =>
  (await signedIn({ ...options, path: `/console/history${query}` })).page

const table = (page: Page) => page.getByRole('region', { name: 'Ended calls' })
const chip = (page: Page, text: string) =>
  page.getByRole('group', { name: 'Filters' }).getByRole('button', { name: text })
const sum = (page: Page, text: string) => page.locator('.sums').getByText(text)

/** The texts of a column, of the rows that exist. */
const cells = (page: Page, column: number): Promise<string[]> =>
  page
    .locator(`[aria-label="Ended calls"] tbody tr:not(.space) td:nth-child(${column})`)
    .allTextContents()

const rows = async (page: Page): Promise<number> =>
  Number(await table(page).locator('table').getAttribute('aria-rowcount')) - 1

/** The field of this name has the focus. */
const isFocused = (page: Page, name: string): Promise<void> =>
  eventually(async () => expect(await page.evaluate('document.activeElement?.name')).toBe(name))

async function download(page: Page, link: string): Promise<string> {
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: link }).click(),
  ])
  return readFileSync(await file.path(), 'utf8')
}

test('filters are added, changed and removed by the keyboard, and the address alone shows the same again', async () => {
  const page = await at('')
  await sum(page, `Calls ${lately.length}`).waitFor()
  await page.getByRole('button', { name: 'Add a filter' }).focus()
  await page.keyboard.press('Enter')
  const box = page.getByRole('dialog', { name: 'Add a filter' })
  await isFocused(page, 'filter')
  await page.keyboard.type('Result')
  await box.getByRole('checkbox', { name: 'failed' }).waitFor()
  await page.keyboard.press('Tab')
  for (let tabs = 0; tabs < 4; tabs += 1) await page.keyboard.press('Tab')
  await page.keyboard.press('Space')
  await page.keyboard.press('Enter')
  await chip(page, 'Result: failed').waitFor()
  await sum(page, `Calls ${failures.length}`).waitFor()
  const focused = `document.activeElement.getAttribute('aria-label')`
  expect(await page.evaluate(focused)).toBe('Add a filter')

  await page.keyboard.press('Enter')
  await isFocused(page, 'filter')
  await page.keyboard.type('To')
  await box.getByRole('textbox', { name: 'To' }).waitFor()
  await page.keyboard.press('Tab')
  await page.keyboard.type('18005550*')
  await page.keyboard.press('Enter')
  await chip(page, 'To: 18005550*').waitFor()
  await page.waitForURL(/\?disposition=FAILED&called=18005550\*$/)
  await sum(page, `Calls ${failures.length}`).waitFor()

  const other = await at(new URL(page.url()).search)
  await chip(other, 'Result: failed').waitFor()
  await chip(other, 'To: 18005550*').waitFor()
  await sum(other, `Calls ${failures.length}`).waitFor()

  await chip(page, 'To: 18005550*').press('Enter')
  await page.getByRole('textbox', { name: 'To' }).fill('18005550003')
  await page.keyboard.press('Enter')
  await sum(page, 'Calls 1').waitFor()
  await row(page, '18005550003').getByText('✕ failed').waitFor()
  await page.getByRole('button', { name: 'Remove the filter To' }).press('Enter')
  await page.waitForURL(/\?disposition=FAILED$/)
  await page.getByRole('button', { name: 'Remove the filter Result' }).press('Enter')
  await sum(page, `Calls ${lately.length}`).waitFor()
})

test('the server orders by a heading, and further pages are loaded until all are there', async () => {
  const page = await at('')
  await sum(page, `Calls ${lately.length}`).waitFor()
  expect(await rows(page)).toBe(100)
  await page.getByText(`100 of ${lately.length}`).waitFor()
  await page.getByRole('button', { name: 'Load more' }).press('Enter')
  await eventually(async () => expect(await rows(page)).toBe(lately.length))
  expect(await page.getByRole('button', { name: 'Load more' }).count()).toBe(0)

  const heading = page.getByRole('columnheader', { name: 'Cost' })
  await heading.getByRole('button').click()
  await page.waitForURL(/sort=-cost/)
  await eventually(async () => expect((await cells(page, 7))[0]).toBe('0.04 USD'))
  expect(await heading.getAttribute('aria-sort')).toBe('descending')
  await heading.getByRole('button').click()
  await page.waitForURL(/sort=cost/)
  await eventually(async () => expect((await cells(page, 7))[0]).toBe('0.00 USD'))
  expect(await page.getByRole('columnheader', { name: 'From' }).getByRole('button').count()).toBe(0)
})

test('a period is that of the chosen zone, an own one is kept in the address as a moment', async () => {
  const page = await at('?period=30d', { timezoneId: 'Asia/Tokyo' })
  await sum(page, `Calls ${lately.length + 1}`).waitFor()
  const showsClockOf = (timeZone: string): Promise<void> => {
    const clock = new Intl.DateTimeFormat('en-GB', { timeZone, timeStyle: 'medium' })
    return eventually(async () =>
      expect((await cells(page, 1))[0]).toContain(clock.format(newestAt)),
    )
  }
  await showsClockOf('Asia/Tokyo')
  const times = page.getByRole('combobox', { name: 'Times' })
  await times.selectOption({ label: 'UTC' })
  await page.waitForURL(/zone=utc/)
  await showsClockOf('UTC')
  await page.route('**/api/v1/customers/1', async (route) => {
    const answer = (await (await route.fetch()).json()) as { data: object }
    await route.fulfill({
      json: { ...answer, data: { ...answer.data, time_zone: 'Asia/Kolkata' } },
    })
  })
  await row(page, '18005550000').getByRole('link', { name: 'paying' }).click()
  await times.selectOption({ label: "the customer's (Asia/Kolkata)" })
  await page.waitForURL(/zone=customer/)
  await showsClockOf('Asia/Kolkata')
  await times.selectOption({ label: 'UTC' })
  await page.getByRole('button', { name: 'From … to …' }).click()
  const day = new Date(Date.now() - 40 * DAY_MS).toISOString().slice(0, 10)
  await page.getByLabel('From', { exact: true }).fill(`${day}T00:00`)
  await page.getByLabel('To', { exact: true }).fill(`${day}T23:59`)
  await page.getByRole('button', { name: 'Show' }).click()
  await row(page, '18007770002').waitFor()
  await sum(page, 'Calls 1').waitFor()
  expect(new URL(page.url()).searchParams.get('from')).toBe(`${day}T00:00:00.000Z`)
})

test('a saved view is there after another sign-in, shows filters, order and columns, and is deleted and brought back', async () => {
  const page = await at('?disposition=FAILED&sort=-duration')
  await sum(page, `Calls ${failures.length}`).waitFor()
  await page.getByRole('button', { name: 'Columns' }).click()
  await page.getByRole('checkbox', { name: 'SIP code' }).check()
  await page.keyboard.press('Escape')
  await page.getByRole('button', { name: 'Views' }).click()
  await page.getByLabel('Save this view as').fill('Failed, with codes')
  await page.keyboard.press('Enter')
  await page.getByRole('link', { name: 'Failed, with codes' }).waitFor()

  const { page: other, signIn, complaints, inaccessible } = await open({ path: '/console/history' })
  await signIn(admin.username, admin.password)
  await sum(other, `Calls ${lately.length}`).waitFor()
  expect(await other.getByRole('columnheader', { name: 'SIP code' }).count()).toBe(0)
  await other.getByRole('button', { name: 'Views' }).click()
  await other.getByRole('link', { name: 'Failed, with codes' }).waitFor()
  expect(await inaccessible()).toEqual([])
  await other.getByRole('link', { name: 'Failed, with codes' }).press('Enter')
  await chip(other, 'Result: failed').waitFor()
  await other.getByRole('columnheader', { name: 'SIP code' }).waitFor()
  await sum(other, `Calls ${failures.length}`).waitFor()
  await other.waitForURL(/sort=-duration/)
  await other.getByRole('button', { name: 'Views' }).click()
  await other.getByRole('button', { name: 'Delete the view Failed, with codes' }).click()
  await other.getByText('No view is saved.').waitFor()
  await other.getByRole('button', { name: 'Undo' }).click()
  await other.getByRole('link', { name: 'Failed, with codes' }).waitFor()
  expect(complaints).toEqual([])
})

test('columns that were chosen are there when the page is loaded again', async () => {
  const page = await at('')
  await page.getByRole('button', { name: 'Columns' }).click()
  await page.getByRole('checkbox', { name: 'Post-dial delay' }).check()
  await page.getByRole('checkbox', { name: 'Talk' }).uncheck()
  await page.getByRole('columnheader', { name: 'Post-dial delay' }).waitFor()
  await page.reload()
  await page.getByRole('columnheader', { name: 'Post-dial delay' }).waitFor()
  expect(await page.getByRole('columnheader', { name: 'Talk' }).count()).toBe(0)
  await page.getByRole('button', { name: 'Columns' }).click()
  await page.getByRole('button', { name: 'As usual' }).click()
  await page.getByRole('columnheader', { name: 'Talk' }).waitFor()
})

test('an export has all calls of the filter, and no other', async () => {
  const page = await at('?disposition=FAILED&period=24h')
  await sum(page, `Calls ${failures.length}`).waitFor()
  const csv = (await download(page, 'Export CSV')).trim().split('\r\n')
  expect(csv[0]).toMatch(/^call_uuid,caller_id_number,destination_number,.*\bcustomer_name\b/)
  expect(csv).toHaveLength(failures.length + 1)
  expect(csv.slice(1).every((line) => line.includes(',FAILED,') && line.includes('paying'))).toBe(
    true,
  )
  const lines = (await download(page, 'NDJSON')).trim().split('\n')
  const uuids = lines.map((line) => (JSON.parse(line) as { call_uuid: string }).call_uuid)
  expect(uuids).toHaveLength(failures.length)
  expect(csv[1]).toContain(String(uuids[0]))
})

test('a cell shows only the calls of its customer; with Ctrl it opens the page of the customer', async () => {
  const page = await at('?disposition=FAILED')
  const cell = row(page, '18005550003').getByRole('link', { name: 'paying' })
  const [opened] = await Promise.all([
    page.context().waitForEvent('page'),
    cell.click({ modifiers: ['ControlOrMeta'] }),
  ])
  await opened.waitForURL(/\/console\/customers\/\d+$/)
  await opened.close()
  await cell.click()
  await chip(page, 'Customer: paying').waitFor()
  await page.waitForURL(/customer_id=\d+/)
  await page.getByRole('button', { name: 'Clear filters' }).click()
  await sum(page, `Calls ${lately.length}`).waitFor()
  await page.getByRole('button', { name: 'Add a filter' }).click()
  const named = page.getByRole('combobox', { name: 'Customer' })
  await named.fill('nobody at all')
  await named.press('Enter')
  await page.getByText('There is no customer "nobody at all"').waitFor()
  await named.fill('BROKE')
  await named.press('Enter')
  await chip(page, 'Customer: broke').waitFor()
  await page.getByText('No call in this period.').waitFor()
})

test('a call that ends appears on top while the tail is on, and only where it matches', async () => {
  const page = await at('')
  const other = await at('?disposition=FAILED&tail=1')
  await page.getByRole('button', { name: 'Live tail' }).click()
  await page.waitForURL(/tail=1/)
  await sum(page, 'Calls').waitFor()
  await page.getByText('Live', { exact: true }).waitFor()
  const caller = await placeCall(rig())
  const { page: calls } = rig().console
  await calls.goto('/console/calls')
  await row(calls, '18005551212')
    .getByRole('button', { name: /^Hang up/ })
    .click()
  await calls.getByRole('dialog').getByRole('button', { name: 'Hang up' }).click()
  caller.reply(await caller.next('BYE'), 200)
  await page.getByRole('button', { name: 'Live tail: 1 new' }).waitFor()
  expect((await cells(page, 3))[0]).toBe('18005551212')
  await page.getByRole('img', { name: 'new' }).waitFor()
  expect(await row(other, '18005551212').count()).toBe(0)
  await page.getByRole('button', { name: 'Refresh' }).click()
  await page.getByRole('img', { name: 'new' }).waitFor({ state: 'hidden' })
  await eventually(async () => expect((await cells(page, 3))[0]).toBe('18005551212'))
})

/** The heights of rows: those out of sight are taken for as high as the others. */
const heights = `[...new Set([...document.querySelectorAll('[aria-label="Ended calls"] tbody tr')]
  .filter((each) => !each.matches('.space'))
  .map((each) => Math.round(each.getBoundingClientRect().height)))]`

const cutTexts = `[...document.querySelectorAll('main :is(button, .short, td)')]
  .filter((each) => each.clientWidth > 0 && each.scrollWidth > each.clientWidth + 1)
  .map((each) => each.textContent)`

test('no text is cut at 1,280 px, nothing is wider than a phone, and axe finds nothing in the boxes', async () => {
  for (const [colorScheme, width] of [
    ['light', 1_280],
    ['dark', 390],
  ] as const) {
    const options = { colorScheme, width, path: '/console/history?cost_from=0&mos_to=5' }
    const { page, inaccessible } = await signedIn(options)
    await page.getByText('No call in this period.').waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).click()
    await sum(page, 'Calls').waitFor()
    if (width > 1_000) expect(await page.evaluate(cutTexts)).toEqual([])
    await row(page, 'busy').first().waitFor()
    expect(await page.evaluate(heights)).toEqual([50])
    const wide = 'document.documentElement.scrollWidth > document.documentElement.clientWidth'
    expect(await page.evaluate(wide)).toBe(false)
    for (const name of ['Add a filter', 'Columns', 'From … to …', 'Views']) {
      await page.getByRole('button', { name }).click()
      await page.getByRole('dialog').waitFor()
      expect([name, await inaccessible()]).toEqual([name, []])
      expect([name, await page.evaluate(wide)]).toEqual([name, false])
      await page.keyboard.press('Escape')
    }
  }
})
