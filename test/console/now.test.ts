/** The page Now of the demo with eleven incidents: each is told, with what to do about it. */
import { expect, onTestFinished, test } from 'vitest'
import { startProgram } from '../process/program.ts'
import { openBrowser, openConsole } from '../support/console-browser.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const folder = temporaryFolder()

/**
 * The finding of each incident: its title, a figure or a name in its text, and the link to the next
 * step.
 */
const told = {
  dead_node: [/PBX node office 3 .*does not answer since/, /out of service/, 'See the node'],
  premium_burst: [/acme-main/, /USD on \d+ calls to 1900/, 'Set a spend guard'],
  empty_wallet: [/globex cannot pay for its calls/, /insufficient funds/, 'Top up the wallet'],
  unknown_caller: [/belong to no customer/, /\+15559990/, 'Give the number to a customer'],
  missing_rate: [/initech calls numbers that have no rate/, /4930/, 'Add the rate'],
  leaked_key: [/Key ci-reporting/, /203\.0\.113\.66/, 'Suspend the key'],
  trunk_down: [/Carrier northern does not answer/, /1 gateway/, 'See the carrier'],
  failing_carrier: [/Calls through carrier southern fail/, /0 % of \d+ calls/, 'See the carrier'],
  state_by_hand: [/PBX node support 1 .*by hand/, /set 2/, 'See the node'],
  concurrent_limit: [/umbrella has reached a limit/, /concurrent.limit/, 'Change its limits'],
  registration_attack: [
    /password of extension 2001@office\.example/,
    /127\.0\.0\.3/,
    'Ban the addresses',
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
  const { page, signIn, inaccessible, complaints } = await openConsole(
    browser,
    { apiPort },
    { path: '/' },
  )
  await signIn('admin', password)
  await page.getByRole('heading', { level: 1, name: 'Now' }).waitFor()
  const findings = page.locator('.finding')
  await findings.first().waitFor()
  for (const [incident, [title, text, step]] of Object.entries(told)) {
    const finding = findings.filter({ has: page.getByRole('heading', { name: title }) })
    expect([incident, await finding.count()]).toEqual([incident, 1])
    expect([incident, await finding.textContent()]).toEqual([incident, expect.stringMatching(text)])
    expect(await finding.getByText(/^Since \d\d:\d\d/).count()).toBe(1)
    expect(await finding.getByRole('link', { name: step }).count()).toBe(1)
  }
  expect(await inaccessible()).toEqual([])
  await findings.filter({ hasText: 'globex' }).getByRole('link', { name: 'Call 1' }).click()
  await page.getByText(/^\+15550130 called .*too little money/).waitFor()

  await page.goto('/console/charts')
  await page.getByRole('row').filter({ hasText: 'southern' }).getByText('0 %').waitFor()
  expect(await inaccessible()).toEqual([])
  await page.goto('/console/audit')
  await page
    .getByText('ci-reporting was not allowed to remove customer 1 (insufficient scope)')
    .waitFor()
  expect(complaints).toEqual([])
  await agentFinds(planted)
}, 120_000)

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
