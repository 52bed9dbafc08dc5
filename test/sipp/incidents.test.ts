/**
 * Eleven incidents, planted by `tollgate demo --incidents` over SIP and HTTP, with further calls by SIPp; an agent that knows
 * only MCP finds each cause, with evidence, and takes a first step that it takes back again.
 */
import { readdirSync } from 'node:fs'
import { isIP } from 'node:net'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { expect, onTestFinished, test } from 'vitest'
import { expectedCauses } from '../support/expected-causes.ts'
import { startProgram } from '../process/program.ts'
import { newClient } from '../support/mcp-client.ts'
import { type Data, type Diagnosis, OnCallAgent } from '../support/on-call-agent.ts'
import { callWith } from '../support/sipp.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const folder = temporaryFolder()
const MAX_CALLS = 6
const MAX_BYTES = 40_000
const reason = 'on call, found by the agent'
const hour = { duration: 3_600, reason }

/** By incident: from the symptom to the cause. */
const investigations: Readonly<Record<string, (agent: OnCallAgent) => Promise<Diagnosis>>> = {
  async dead_node(agent) {
    const { next, first_step: step } = await agent.finding(['node'])
    const history = await agent.ask<{ node: Data; down_since: string }>(next.tool, next.arguments)
    agent.note(history)
    const destination = String(next.arguments['node'])
    agent.note((await agent.nodes()).find((node) => node.destination === destination))
    const since = Date.parse(history.down_since)
    const around = await agent.records({
      start: new Date(since - 10_000).toISOString(),
      end: new Date(since).toISOString(),
      fields: ['call_uuid', 'attempts'],
      // The call that found it out began before many others did.
      limit: 80,
    })
    const met = around.filter(({ attempts }) =>
      attempts.some((each) => each.destination === destination),
    )
    return agent.done(
      met.map(({ call_uuid }) => call_uuid),
      step,
    )
  },
  async premium_burst(agent) {
    const { evidence, first_step: step } = await agent.finding(['spend', 'destination'])
    await agent.explain(evidence[0] ?? '')
    return agent.done(evidence, step)
  },
  async empty_wallet(agent) {
    const { evidence, next } = await agent.finding(['wallet'], 'globex')
    agent.note(await agent.ask(next.tool, next.arguments))
    await agent.explain(evidence[0] ?? '')
    const given = { customer: next.arguments['customer'], credit_limit: '5.00', ...hour }
    return agent.done(evidence, { tool: 'set_customer_limits', arguments: given })
  },
  async unknown_caller(agent) {
    const { evidence, first_step: step } = await agent.finding(['unknown_callers'])
    await agent.explain(evidence[0] ?? '')
    return agent.done(evidence, step)
  },
  async missing_rate(agent) {
    const { evidence, next, first_step: step } = await agent.finding(['rate'], 'initech')
    await agent.ask(next.tool, next.arguments)
    await agent.explain(evidence[0] ?? '')
    return agent.done(evidence, step)
  },
  async leaked_key(agent) {
    const { evidence, next, first_step: step } = await agent.finding(['key_use'])
    agent.note(await agent.ask(next.tool, next.arguments))
    return agent.done(evidence, step)
  },
  async trunk_down(agent) {
    const { next } = await agent.finding(['trunk'], 'out of service')
    agent.note(await agent.ask(next.tool, next.arguments))
    const failed = await agent.records({ number: '4420', disposition: 'CONGESTION' })
    await agent.explain(failed[0]?.call_uuid ?? '')
    const carrier = next.arguments['search']
    return agent.done(
      failed.map(({ call_uuid }) => call_uuid),
      {
        tool: 'set_trunk_state',
        arguments: { carrier, state: 'inactive', ...hour },
      },
    )
  },
  async failing_carrier(agent) {
    const { first_step: step } = await agent.finding(['trunk'], 'were answered')
    const failed = await agent.records({ number: '3315', disposition: 'CONGESTION' })
    await agent.explain(failed[0]?.call_uuid ?? '')
    return agent.done(
      failed.map(({ call_uuid }) => call_uuid),
      step,
    )
  },
  async state_by_hand(agent) {
    const failed = await agent.records({ number: '1555030', disposition: 'CONGESTION' })
    await agent.explain(failed[0]?.call_uuid ?? '')
    const out = (await agent.nodes()).find(({ state }) => state === 'inactive')
    if (out === undefined) throw new Error('no node is out of service')
    agent.note(out)
    const { changes } = await agent.ask<{ changes: readonly { readonly by: string | null }[] }>(
      'get_node_history',
      { node: out.destination },
    )
    const by = changes.find((change) => change.by !== null)?.by ?? ''
    agent.note(await agent.ask('search_audit', { actor: by, changes_only: true, limit: 3 }))
    return agent.done(
      failed.map(({ call_uuid }) => call_uuid),
      {
        tool: 'set_dispatcher_state',
        arguments: { setId: out.setId, destination: out.destination, state: 'active', ...hour },
      },
    )
  },
  async concurrent_limit(agent) {
    const { customers } = await agent.ask<{
      customers: readonly {
        readonly id: number
        readonly name: string
        readonly numbers: readonly string[]
      }[]
    }>('list_customers', { search: 'umbrella' })
    const [customer] = customers
    agent.note(customer?.name)
    const failed = await agent.records({
      number: customer?.numbers[0] ?? '',
      disposition: 'FAILED',
    })
    await agent.explain(failed[0]?.call_uuid ?? '')
    return agent.done(
      failed.map(({ call_uuid }) => call_uuid),
      {
        tool: 'set_customer_limits',
        arguments: { customer: customer?.id, max_concurrent_calls: 4, ...hour },
      },
    )
  },
  async registration_attack(agent) {
    const { evidence, next, first_step: step } = await agent.finding(['registration'], 'wrong')
    // Whether it was guessed: no calls were made with it.
    agent.note(await agent.ask(next.tool, next.arguments))
    return agent.done(evidence, step)
  },
}

/** The demo, with all eleven planted, and further calls of two of them by SIPp. */
async function startDemo() {
  const program = startProgram(['demo', '--incidents'], { TMPDIR: folder })
  const planted = await program.line(/^incidents: planted/)
  const [, url = '', key = ''] = /MCP (\S+) key (\S+)$/.exec(planted) ?? []
  const ready = await program.line(/^ready /)
  const sipPort = Number(/sip=udp\/127\.0\.0\.1:(\d+)/.exec(ready)?.[1])
  const call = (scenario: string, service: string, caller: string, calls: number) =>
    callWith(`inbound/${scenario}.xml`, sipPort, { service, calls, keys: { caller } })
  const clean = { exitCode: 0, errors: '' }
  expect(await call('answered', '19005550123', '+15550120', 3)).toEqual(clean)
  expect(await call('no-funds', '15550202', '+15550130', 2)).toEqual(clean)
  return { url, key, program }
}

test('the cause of each of eleven incidents is found in six calls and 40 kB, with evidence and a first step that is taken back; SIGTERM leaves nothing', async () => {
  expect(Object.keys(investigations)).toEqual(expectedCauses.map(({ incident }) => incident))
  expect(expectedCauses).toHaveLength(11)
  const { url, key, program } = await startDemo()
  const headers = { Authorization: `Bearer ${key}` }
  const client = newClient('modern')
  onTestFinished(() => client.close())
  await client.connect(
    new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }),
  )
  for (const { incident, names, firstStep } of expectedCauses) {
    const agent = new OnCallAgent(client)
    const found = await investigations[incident]?.(agent)
    const { said = '', evidence = [], firstStep: step = null } = found ?? {}
    expect({
      incident,
      isDear: agent.calls > MAX_CALLS || agent.bytes > MAX_BYTES,
      missing: names.filter((name) => !said.includes(name)),
      hasEvidence:
        evidence.length > 0 && evidence.every((each) => uuidForm.test(each) || isIP(each) !== 0),
      firstStep: step?.tool ?? null,
      said,
    }).toEqual({ incident, isDear: false, missing: [], hasEvidence: true, firstStep, said })
    if (step !== null) await tryMakeAndUndo(agent, step)
  }
  await client.close()
  program.child.kill('SIGTERM')
  expect([await program.ended, readdirSync(folder)]).toEqual([0, []])
})

const uuidForm = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/

interface Made {
  readonly changed: boolean
  readonly change_id: string | null
  readonly effect: string
  readonly previous_state: unknown
}

/** A dry run changes nothing; what the real call changes, undo_change restores. */
async function tryMakeAndUndo(
  agent: OnCallAgent,
  { tool, arguments: given }: NonNullable<Diagnosis['firstStep']>,
): Promise<void> {
  const dry = await agent.ask<Made>(tool, { ...given, dry_run: true })
  expect(dry).toMatchObject({ changed: true, change_id: null })
  const made = await agent.ask<Made>(tool, given)
  expect(made).toMatchObject({ changed: true, change_id: expect.any(String) })
  const undone = await agent.ask<Made>('undo_change', { change_id: made.change_id, reason })
  expect(undone).toMatchObject({ changed: true })
  // As before: the same step would change the same again.
  const again = await agent.ask<Made>(tool, { ...given, dry_run: true })
  expect(again).toMatchObject({ changed: true, previous_state: dry.previous_state })
}
