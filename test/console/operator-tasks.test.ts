/**
 * Ten tasks of an operator's day, each walked by the mouse and by the keyboard alone, on an
 * installation that has been used for three days. A walk knows what stands on the screen, and no
 * address or id.
 */
import { readFileSync } from 'node:fs'
import type { Locator, Page } from 'playwright-core'
import { afterAll, describe, expect, test } from 'vitest'
import { row } from '../support/console-browser.ts'
import { shareLivedIn } from '../support/lived-in-console.ts'
import { DAY, type StoredRecord } from '../support/summed-calls.ts'
import { mouseEventsOf, Walk, type Walked } from '../support/walk.ts'

const { atStart, livedIn } = shareLivedIn()

const MAX_CLICKS = 6
const MAX_SECONDS = 30

interface Task {
  readonly name: string
  readonly byMouse: (walk: Walk) => Promise<void>
  readonly byKeyboard: (walk: Walk) => Promise<void>
  /** Fails unless it is on the screen, or was done. */
  readonly isDone: (page: Page, walk: Walk) => Promise<void>
}

const link = (page: Page, name: string | RegExp): Locator =>
  page.getByRole('link', { name, exact: true })
const button = (page: Page, name: string | RegExp): Locator =>
  page.getByRole('button', { name, exact: true })
const screen = (page: Page, name: string): Locator =>
  page.getByRole('navigation', { name: 'Screens' }).getByRole('link', { name, exact: true })
const heading = (page: Page, name: string | RegExp): Promise<void> =>
  page.getByRole('heading', { name, level: 1 }).waitFor()
const chip = (page: Page, text: string): Promise<void> =>
  page.getByRole('group', { name: 'Filters' }).getByRole('button', { name: text }).waitFor()
const sums = (page: Page, text: string): Promise<void> =>
  page.getByRole('status').filter({ hasText: text }).first().waitFor()
const inDialog = (page: Page) => page.locator('dialog[open]:not(.palette)')

const callsOf = (customer: string, daysAgo: number): readonly StoredRecord[] => {
  const { records, today, customers } = livedIn()
  const from = today - daysAgo * DAY
  return records.filter(
    (call) =>
      call.customer_id === customers[customer] &&
      call.start_stamp >= from &&
      call.start_stamp < from + DAY,
  )
}

const congested = (): number =>
  callsOf('acme', 1).filter(({ hangup_cause }) => hangup_cause === 'NETWORK_OUT_OF_ORDER').length

/** The midnight with which a day began, as a field of date and time has it. */
const midnight = (daysAgo: number): string =>
  new Date(livedIn().today - daysAgo * DAY).toISOString().slice(0, 16)

let exported = ''
async function keepDownload(page: Page, work: () => Promise<void>): Promise<void> {
  const [file] = await Promise.all([page.waitForEvent('download'), work()])
  exported = readFileSync(await file.path(), 'utf8')
}

const tasks: readonly Task[] = [
  {
    name: "find yesterday's failed calls of a customer by cause",
    async byMouse(walk) {
      const { page } = walk
      await walk.click(screen(page, 'Calls'))
      await walk.choose(page.getByRole('combobox', { name: 'Period' }), 'Yesterday')
      await walk.click(link(page, 'acme').first())
      await chip(page, 'Customer: acme')
      await walk.click(link(page, '✕ failed').first())
      await chip(page, 'Result: failed')
      await walk.click(link(page, 'The network of the other side is out of order').first())
    },
    async byKeyboard(walk) {
      const { page } = walk
      await walk.find('failed calls of acme')
      await chip(page, 'Result: failed')
      await walk.tabToAndChoose(page.getByRole('combobox', { name: 'Period' }), 'Yesterday')
      await walk.tabToAndPress(link(page, 'The network of the other side is out of order').first())
    },
    async isDone(page) {
      await chip(page, 'Customer: acme')
      await chip(page, 'Result: failed')
      await chip(page, 'Cause: The network of the other side is out of order')
      await sums(page, `Calls ${congested()}`)
    },
  },
  {
    name: 'export a disputed day',
    async byMouse(walk) {
      const { page } = walk
      await walk.click(screen(page, 'Customers'))
      await walk.click(link(page, 'globex'))
      await walk.click(link(page, 'All its calls'))
      await walk.click(button(page, 'From … to …'))
      await dayIsTyped(walk)
      await walk.click(button(page, 'Show'))
      await sums(page, `Calls ${callsOf('globex', 2).length}`)
      await keepDownload(page, () => walk.click(link(page, 'Export CSV')))
    },
    async byKeyboard(walk) {
      const { page } = walk
      await walk.find('calls of globex')
      await chip(page, 'Customer: globex')
      await walk.tabToAndPress(button(page, 'From … to …'))
      await dayIsTyped(walk)
      await walk.press('Enter')
      await sums(page, `Calls ${callsOf('globex', 2).length}`)
      await keepDownload(page, () => walk.tabToAndPress(link(page, 'Export CSV')))
    },
    isDone() {
      const [head, ...lines] = exported.trim().split('\r\n')
      const calls = callsOf('globex', 2)
      expect(head).toMatch(/^call_uuid,caller_id_number,destination_number,.*\bcustomer_name\b/)
      expect(lines).toHaveLength(calls.length)
      expect(new Set(lines.map((line) => line.split(',')[0]))).toEqual(
        new Set(calls.map(({ call_uuid }) => call_uuid)),
      )
      expect(lines.every((line) => line.includes('globex'))).toBe(true)
      return Promise.resolve()
    },
  },
  {
    name: 'why a carrier is red',
    async byMouse(walk) {
      await walk.click(screen(walk.page, 'Carriers'))
      await walk.click(link(walk.page, 'southern'))
    },
    byKeyboard: (walk) => walk.find('southern'),
    async isDone(page) {
      await heading(page, 'southern')
      await page.getByText(/^registration failed: 403/).waitFor()
      await page
        .getByText(/^The carrier refuses this account: .*Tell it the public address/)
        .waitFor()
    },
  },
  {
    name: 'who changed this price',
    async byMouse(walk) {
      const { page } = walk
      await walk.click(screen(page, 'Rate plans'))
      await walk.click(link(page, 'retail'))
      await walk.click(link(page, 'By whom 1900 Premium was changed'))
    },
    async byKeyboard(walk) {
      const { page } = walk
      await walk.find('retail')
      await heading(page, 'retail')
      await walk.tabToAndPress(link(page, 'By whom 1900 Premium was changed'))
    },
    async isDone(page) {
      await heading(page, 'Changes')
      await page.getByText('Only those of the rate for 1900 Premium').waitFor()
      await row(page, 'price of a minute 3.10 USD, was 2.50 USD').getByText('petra').waitFor()
      expect(await page.getByRole('row').filter({ hasText: 'carrier' }).count()).toBe(0)
    },
  },
  {
    name: 'block a number',
    async byMouse(walk) {
      const { page } = walk
      await walk.click(screen(page, 'Spend guards'))
      await walk.click(button(page, 'Set a guard'))
      const dialog = inDialog(page)
      await walk.clickAndType(dialog.getByLabel('Its id or name'), 'acme')
      await walk.clickAndType(dialog.getByLabel(/^First digits/), '19005550199')
      await walk.clickAndType(dialog.getByLabel('Reason'), 'fraud')
      await walk.click(button(page, 'Set'))
    },
    async byKeyboard(walk) {
      const { page } = walk
      await walk.find('block 19005550199')
      const dialog = inDialog(page)
      await walk.tabTo(dialog.getByLabel('Its id or name'))
      await walk.type('acme')
      await walk.tabTo(dialog.getByLabel('Reason'))
      await walk.type('fraud')
      await walk.press('Enter')
    },
    async isDone(page) {
      await inDialog(page).waitFor({ state: 'detached' })
      const guard = row(page, '19005550199…').filter({ hasText: 'customer acme' })
      await guard.first().getByText('blocked').waitFor()
    },
  },
  {
    name: 'hand a number to a customer',
    async byMouse(walk) {
      const { page } = walk
      await walk.click(screen(page, 'Numbers'))
      await walk.click(button(page, 'Change +12025550177'))
      await walk.choose(inDialog(page).getByLabel('Customer'), 'initech')
      await walk.click(button(page, 'Save'))
    },
    async byKeyboard(walk) {
      const { page } = walk
      await walk.find('12025550178')
      await walk.tabToAndPress(button(page, 'Change +12025550178'))
      await walk.tabToAndChoose(inDialog(page).getByLabel('Customer'), 'initech')
      await walk.tabToAndPress(button(page, 'Save'))
    },
    async isDone(page, walk) {
      const number = walk.walked.clicks > 0 ? '+12025550177' : '+12025550178'
      await inDialog(page).waitFor({ state: 'detached' })
      await row(page, number).getByText('initech').waitFor()
    },
  },
  {
    name: 'snooze a finding',
    async byMouse(walk) {
      const { page } = walk
      await walk.click(button(page, /^Snooze: /).first())
      await walk.clickAndType(inDialog(page).getByLabel('Reason'), 'the carrier is told')
      await walk.click(inDialog(page).getByRole('button', { name: 'Snooze' }))
    },
    async byKeyboard(walk) {
      const { page } = walk
      await walk.tabToAndPress(button(page, /^Snooze: /).first())
      await walk.tabTo(inDialog(page).getByLabel('Reason'))
      await walk.type('the carrier is told')
      await walk.press('Enter')
    },
    async isDone(page) {
      await page.getByText(/\d findings? (?:is|are) snoozed/).waitFor()
    },
  },
  {
    name: 'see the day of one extension',
    async byMouse(walk) {
      const { page } = walk
      await walk.click(screen(page, 'Phones'))
      await walk.click(row(page, 'office.example').getByRole('link', { name: '101' }))
      await heading(page, '101 Reception')
    },
    byKeyboard: (walk) => walk.find('reception'),
    async isDone(page) {
      await heading(page, '101 Reception')
      await page.getByRole('heading', { name: 'The last 24 hours' }).waitFor()
      await page.getByText('Calls per hour: ').waitFor()
      await page.getByText('office.example', { exact: true }).waitFor()
    },
  },
  {
    name: "compare two carriers' ASR",
    async byMouse(walk) {
      await walk.click(screen(walk.page, 'Carriers'))
      await walk.choose(walk.page.getByRole('combobox', { name: 'Calls of the last' }), 'day')
    },
    async byKeyboard(walk) {
      await walk.press('g')
      await walk.press('r')
      await walk.tabToAndChoose(
        walk.page.getByRole('combobox', { name: 'Calls of the last' }),
        'day',
      )
    },
    async isDone(page) {
      await asrIs(page, 'northern')
      await asrIs(page, 'southern')
    },
  },
  {
    name: 'find a setting',
    async byMouse(walk) {
      const { page } = walk
      await walk.click(screen(page, 'Settings'))
      await walk.clickAndType(page.getByRole('searchbox', { name: 'Search' }), 'drain')
    },
    byKeyboard: (walk) => walk.find('drain_seconds'),
    async isDone(page) {
      await heading(page, 'Settings')
      await row(page, 'DRAIN_SECONDS').getByText('environment').waitFor()
    },
  },
]

/** The box has the focus in From. */
async function dayIsTyped(walk: Walk): Promise<void> {
  const box = walk.page.getByRole('dialog')
  await walk.enter(box.getByLabel('From', { exact: true }), midnight(2))
  await walk.enter(box.getByLabel('To', { exact: true }), midnight(1))
}

/** The ratio of the last day, as the records have it. */
async function asrIs(page: Page, carrier: string): Promise<void> {
  const shown = row(page, carrier).getByText(/^\d+(?:\.\d)? %$/)
  const since = Date.now() - DAY
  const calls = livedIn().records.filter(
    (call) => call.carrier === carrier && call.start_stamp >= since,
  )
  const answered = calls.filter(({ disposition }) => disposition === 'ANSWERED')
  const expected = (answered.length / calls.length) * 100
  // At first it may be that of the period before.
  await expect
    .poll(async () => Math.abs(Number.parseFloat((await shown.textContent()) ?? '') - expected))
    .toBeLessThan(1)
}

const walks: (Walked & { readonly task: string; readonly by: string })[] = []

afterAll(() => {
  for (const { seconds, ...walk } of walks)
    process.stdout.write(`${JSON.stringify({ ...walk, seconds: Number(seconds.toFixed(1)) })}\n`)
})

async function walkBy(task: Task, by: 'mouse' | 'keyboard'): Promise<Walked> {
  const { page, complaints } = await atStart()
  const mouseEvents = await mouseEventsOf(page)
  await heading(page, 'Now')
  const walk = new Walk(page)
  await (by === 'mouse' ? task.byMouse(walk) : task.byKeyboard(walk))
  await task.isDone(page, walk)
  const { walked } = walk
  walks.push({ task: task.name, by, ...walked })
  if (process.env['WALKED'] !== undefined)
    await page.screenshot({ path: `${process.env['WALKED']}/${walks.length}-${by}.png` })
  if (by === 'keyboard') expect(await mouseEvents()).toBe(0)
  expect(complaints).toEqual([])
  return walked
}

describe.each(tasks)('$name', (task) => {
  test(`by the mouse in at most ${MAX_CLICKS} clicks and ${MAX_SECONDS} s`, async () => {
    const { clicks, seconds } = await walkBy(task, 'mouse')
    expect(clicks).toBeLessThanOrEqual(MAX_CLICKS)
    expect(seconds).toBeLessThanOrEqual(MAX_SECONDS)
  })

  test(`by the keyboard alone in at most ${MAX_SECONDS} s`, async () => {
    const { clicks, seconds } = await walkBy(task, 'keyboard')
    expect(clicks).toBe(0)
    expect(seconds).toBeLessThanOrEqual(MAX_SECONDS)
  })
})
