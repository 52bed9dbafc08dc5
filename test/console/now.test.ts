/** The page Now of the demo with eleven incidents: each is told, with what to do about it. */
import { expect, onTestFinished, test } from 'vitest'
import type { Page } from 'playwright-core'
import { startProgram } from '../process/program.ts'
import { openBrowser, openConsole, type ConsolePage } from '../support/console-browser.ts'
import { openDialogs } from '../support/each-dialog.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const folder = temporaryFolder()

/**
 * The finding of each incident: its title, a figure or a name in its text, and the link to the next
 * step.
 */
const told = {
  dead_node: [/PBX node office 3 .*does not answer since/, /out of service/, 'Drain office 3'],
  premium_burst: [
    /acme-main/,
    /USD on \d+ calls to 1900/,
    'Set a spend guard for acme-main on 1900',
  ],
  empty_wallet: [/globex cannot pay for its calls/, /insufficient funds/, 'Top up globex'],
  unknown_caller: [/belong to no customer/, /\+15559990/, /^Give \+15559990\d* to a customer$/],
  missing_rate: [
    /initech calls numbers that have no rate/,
    /4930/,
    /^Add a rate for 4930\d* to initech$/,
  ],
  leaked_key: [/Key ci-reporting/, /203\.0\.113\.66/, 'Suspend key ci-reporting'],
  trunk_down: [/Carrier northern does not answer/, /1 gateway/, 'Take northern out of service'],
  failing_carrier: [
    /Calls through carrier southern fail/,
    /0 % of \d+ calls/,
    'Take southern out of service',
  ],
  state_by_hand: [/PBX node support 1 .*by hand/, /set 2/, 'Take support 1 back'],
  concurrent_limit: [
    /umbrella has reached a limit/,
    /concurrent.limit/,
    /^Let umbrella have \d+ calls at once$/,
  ],
  registration_attack: [
    /password of extension 2001@office\.example/,
    /127\.0\.0\.3/,
    /^Ban these 2 addresses$/,
  ],
} as const

test('eleven incidents are told on the page Now, each with since when, evidence and the next step', async () => {
  const program = startProgram(['demo', '--incidents'], { TMPDIR: folder })
  const planted = await program.line(/^incidents: planted/)
  const ready = await program.line(/^ready /)
  const [, password = ''] = /password (\S+)/.exec(await program.line(/^created user/)) ?? []
  const apiPort = Number(/api=127\.0\.0\.1:(\d+)/.exec(ready)?.[1])
  const browser = await openBrowser()
  onTestFinished(() => browser.close())
  const opened = await openConsole(browser, { apiPort }, { path: '/' })
  const { page, signIn, inaccessible, complaints } = opened
  await signIn('admin', password)
  await page.getByRole('heading', { level: 1, name: 'Now' }).waitFor()
  const findings = page.locator('.finding')
  await findings.first().waitFor()
  for (const [incident, [title, text, step]] of Object.entries(told)) {
    const finding = findings.filter({ has: page.getByRole('heading', { name: title }) })
    await expect.poll(async () => [incident, await finding.count()]).toEqual([incident, 1])
    expect([incident, await finding.textContent()]).toEqual([incident, expect.stringMatching(text)])
    expect(await finding.getByText(/^Since \d\d:\d\d/).count()).toBe(1)
    const steps = await finding.locator('a.step').allTextContents()
    expect([incident, steps]).toEqual([incident, [expect.stringMatching(step)]])
  }
  expect(await inaccessible()).toEqual([])
  await opensFilledForms(page)
  await isMarked(opened)
  await page.goto('/console/now')
  await findings.first().waitFor()
  await findings.filter({ hasText: 'globex' }).getByRole('link', { name: 'Call 1' }).click()
  await page.getByText(/^\+15550130 called .*too little money/).waitFor()

  await page.goto('/console/charts')
  await page.getByRole('row').filter({ hasText: 'southern' }).getByText('0 %').waitFor()
  expect(await inaccessible()).toEqual([])
  await page.goto('/console/audit')
  await page
    .getByText(
      'key ci-reporting was not allowed to remove customer "harbour-main" (insufficient scope)',
    )
    .waitFor()
  // The browser tells of the refusal to open a finding again, too.
  expect(complaints).toEqual([expect.stringMatching(/503.*\/reopen\)$/)])
  await agentFinds(planted)
}, 180_000)

/** The findings whose buttons do not stand on one line. */
const parted = `[...document.querySelectorAll('.finding')]
  .filter((finding) => new Set([...finding.querySelectorAll('button')]
    .map((each) => each.getBoundingClientRect().top)).size > 1)
  .map((finding) => finding.textContent)`

/** What the form of each finding begins with; it does nothing by itself. */
async function opensFilledForms(page: Page): Promise<void> {
  const forms = [
    ['Set a spend guard for acme-main on 1900', { prefix: '1900', action: 'block', hours: '24' }],
    [/^Ban /, { minutes: '60' }],
    [/^Give \+15559990\d* to a customer$/, {}],
    ['Suspend key ci-reporting', { reason: 'unusual use of the key' }],
    [/^Let umbrella have \d+ calls at once$/, {}],
    ['Take northern out of service', {}],
    ['Top up globex', {}],
    ['Take support 1 back', {}],
    [/^Add a rate for 4930\d* to initech$/, {}],
  ] as const
  for (const [name, fields] of forms) {
    await page.goto('/console/now')
    await page.locator('.finding').first().waitFor()
    await page.getByRole('link', { name }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.waitFor()
    for (const [field, value] of Object.entries(fields))
      expect([String(name), field, await dialog.locator(`[name=${field}]`).inputValue()]).toEqual([
        String(name),
        field,
        value,
      ])
  }
}

/** A finding is acknowledged, another one snoozed for a reason; the history has both. */
async function isMarked({ page, inaccessible, tooPale }: ConsolePage): Promise<void> {
  const usableByAll = async (): Promise<void> =>
    expect([await inaccessible(openDialogs), await tooPale(openDialogs)]).toEqual([[], []])
  const findings = page.locator('.finding')
  const of = (text: string) => findings.filter({ hasText: text })
  await page.goto('/console/now')
  await of('globex').getByRole('button', { name: 'Snooze' }).waitFor()
  await page.setViewportSize({ width: 390, height: 800 })
  expect(await page.evaluate(parted)).toEqual([])
  await page.setViewportSize({ width: 1_280, height: 800 })
  await of('globex').getByRole('button', { name: 'Acknowledge' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Note').fill('I call them')
  await usableByAll()
  await dialog.getByRole('button', { name: 'Acknowledge' }).click()
  await of('globex')
    .getByText(/^Acknowledged by user admin at .*: I call them\.$/)
    .waitFor()
  await of('umbrella').getByRole('button', { name: 'Snooze' }).click()
  await dialog.getByLabel('For').selectOption('4 hours')
  await dialog.getByLabel('Reason').fill('It moves tonight')
  await usableByAll()
  await dialog.getByRole('button', { name: 'Snooze' }).click()
  await page.getByText('1 finding is snoozed').click()
  await of('umbrella')
    .getByText(/^Snoozed by user admin until .*: It moves tonight\.$/)
    .waitFor()
  await page.getByRole('link', { name: 'History of findings' }).click()
  const row = (text: string) => page.getByRole('row').filter({ hasText: text })
  await row('umbrella has reached a limit').getByText('snoozed', { exact: true }).waitFor()
  await row('globex cannot pay').getByText('Acknowledged by user admin').waitFor()
  await page.getByRole('link', { name: 'What is wrong now' }).click()
  await page.route('**/findings/*/reopen', (route) => {
    const body = { success: false, error: 'The database is busy', code: 'busy' }
    return route.fulfill({ status: 503, json: body })
  })
  await of('globex').getByRole('button', { name: 'Reopen' }).click()
  await page.getByText('It is not open again: The database is busy').waitFor()
  await page.unroute('**/findings/*/reopen')
  await of('globex').getByRole('button', { name: 'Reopen' }).click()
  await of('globex').getByRole('button', { name: 'Acknowledge' }).waitFor()
}

interface Finding {
  readonly evidence: readonly string[]
  readonly first_step: object | null
}

/**
 * A client of MCP is told of them by one question, in few bytes, with calls or keys as evidence.
 */
async function agentFinds(planted: string): Promise<void> {
  const [, url = '', key = ''] = /MCP (\S+)\/mcp key (\S+)$/.exec(planted) ?? []
  const answer = await fetch(`${url}/api/v1/mcp/tools/find_anomalies`, {
    method: 'POST',
    headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
    body: '{}',
  })
  const text = await answer.text()
  expect([answer.status, text.length < 40_000]).toEqual([200, true])
  const { data } = JSON.parse(text) as { data: { findings: readonly Finding[] } }
  const helpful = data.findings.filter(
    (each) => each.evidence.length > 0 && each.first_step !== null,
  )
  expect(helpful.length).toBeGreaterThan(4)
}
