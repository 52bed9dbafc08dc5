import { expect, test } from 'vitest'
import { allTools } from '../../../../control/agents/catalog/index.ts'
import { connectClient, eras, textOf } from '../../../support/mcp-client.ts'
import { endedCall, liveCall, openToolRig } from '../../../support/tools-rig.ts'

/** Arguments with which every tool succeeds. */
const calls: readonly [name: string, given: Record<string, unknown>][] = [
  ['list_sbc_api_keys', { search: 'root' }],
  ['revoke_sbc_api_key', { identifier: 'doomed' }],
  ['list_api_keys', {}],
  ['get_api_key_status', { name: 'phone' }],
  ['get_dispatcher_status', { setId: 1 }],
  ['list_sbc_endpoints', {}],
  [
    'set_dispatcher_state',
    { state: 'inactive', setId: 1, destination: 'sip:10.0.0.2:5060;transport=udp' },
  ],
  ['reload_dispatchers', {}],
  ['list_active_calls', {}],
  ['get_call', { call_uuid: endedCall }],
  ['summarize_calls', { start: '2026-01-01', end: '2026-01-02', group_by: 'customer' }],
  ['search_cdrs', {}],
  ['explain_call', { call_uuid: endedCall }],
  ['simulate_call', { from: '4930', to: '4940', source: '192.0.2.1' }],
  ['get_telemetry', {}],
  ['list_instances', {}],
  ['get_customer_balance', { customer: 'acme customer' }],
  ['lookup_rate', { number: '4930', customer: 1 }],
  ['find_anomalies', {}],
  ['get_node_history', { node: 1 }],
  ['list_trunks', {}],
  ['get_key_activity', { uuid: 'root' }],
  ['search_audit', {}],
  ['list_customers', {}],
  ['get_ledger', { customer: 1 }],
  [
    'set_spend_guard',
    { customer: 'acme customer', prefix: '1900', action: 'block', reason: 'too dear' },
  ],
  ['remove_spend_guard', { guard_id: liveCall, reason: 'of the last guard' }],
  ['list_spend_guards', {}],
  ['ban_address', { address: '203.0.113.9', reason: 'it guesses' }],
  ['hangup_call', { call_uuid: liveCall, dry_run: true }],
  ['describe_tool', { name: 'search_cdrs' }],
  ['suspend_api_key', { identifier: 'phone', reason: 'it may have leaked' }],
  ['resume_api_key', { identifier: 'phone', reason: 'it has not' }],
  ['undo_change', { reason: 'it has', change_id: 'of the last change' }],
  ['set_trunk_state', { carrier: 'north', state: 'inactive', reason: 'a test' }],
  ['set_customer_limits', { customer: 1, max_cps: 2, reason: 'a test' }],
  [
    'propose_change',
    { tool: 'resume_api_key', arguments: { identifier: 'phone' }, reason: 'it has not' },
  ],
  ['list_proposals', {}],
  ['list_changes', {}],
  ['get_call_ladder', { call_uuid: liveCall }],
  ['list_routes', {}],
  ['list_registrations', {}],
  ['list_bans', {}],
  ['add_rate', { customer: 1, prefix: '44', rate_per_minute: '0.10', reason: 'a test' }],
  ['add_number', { customer: 1, number: '+4930199', reason: 'a test' }],
]

test.each(eras)('the official client runs a whole %s session', { timeout: 30_000 }, async (era) => {
  const rig = await openToolRig()
  await rig.key({ name: 'doomed' })
  await rig.key({ name: 'phone', kind: 'pbx' })
  const carrier = { name: 'north', gateways: [{ host: '10.0.0.9' }] }
  await rig.request('/api/v1/routing/carriers', { token: rig.root, body: carrier })
  rig.engine.trace = () =>
    Promise.resolve({
      tenantId: 1,
      legs: ['a84b4c76e66710'],
      peers: [{ role: 'caller', name: '4930100', address: '192.0.2.1:5060' }],
      isComplete: true,
      entries: [{ kind: 'decision', at: rig.now(), what: 'admitted', detail: { customerId: 1 } }],
    })
  const client = await connectClient(rig.app, await rig.key({ name: 'agent' }), era)
  expect(client.getServerVersion()).toMatchObject({ name: 'tollgate', version: '0.0.0-test' })
  expect(client.getInstructions()).toContain('never instructions')

  const { tools } = await client.listTools()
  expect(tools.map(({ name }) => name)).toEqual(calls.map(([name]) => name))
  for (const { name, annotations, outputSchema } of tools) {
    const { effect } = allTools.find((tool) => tool.name === name) ?? {}
    const isReading = effect === 'reads'
    expect([name, annotations?.readOnlyHint ?? false]).toEqual([name, isReading])
    expect(outputSchema).toMatchObject({ type: 'object' })
  }
  const changing = tools.filter(({ annotations }) => annotations?.readOnlyHint !== true)

  // The client itself holds each structured content against the output schema.
  let changeId: unknown
  let guardId: unknown
  for (const [name, given] of calls) {
    const asked = {
      ...given,
      ...('change_id' in given && { change_id: changeId }),
      ...('guard_id' in given && { guard_id: guardId }),
    }
    const result = await client.callTool({ name, arguments: asked })
    const { data } = result.structuredContent as {
      data: { change_id?: unknown; guard?: { guard_id: unknown } }
    }
    changeId = data.change_id ?? changeId
    guardId = data.guard?.guard_id ?? guardId
    // A change cannot be asked for again by a client that sees text only.
    const isChange = changing.some((tool) => tool.name === name)
    expect([name, result.isError ?? false, textOf(result)]).toEqual([
      name,
      false,
      isChange
        ? JSON.stringify(result.structuredContent)
        : expect.stringMatching(
            new RegExp(`^${name}(: .*)?\\. The answer is in structuredContent;`),
          ),
    ])
    expect(result.structuredContent).toMatchObject({ success: true })
  }

  const { resources } = await client.listResources()
  for (const { uri } of resources) {
    const { contents } = await client.readResource({ uri })
    expect(JSON.parse((contents[0] as { text: string }).text)).toBeTypeOf('object')
  }
  expect(resources.map(({ uri }) => uri)).toContain('tollgate://dispatcher/sets')
  await expect(client.readResource({ uri: 'tollgate://nothing' })).rejects.toThrow(
    /not found|nothing/i,
  )

  const { prompts } = await client.listPrompts()
  for (const prompt of prompts) {
    const given = (prompt.arguments ?? []).map(({ name }) => [name, `the ${name}`])
    const { messages } = await client.getPrompt({
      name: prompt.name,
      arguments: Object.fromEntries(given) as Record<string, string>,
    })
    for (const [, value = ''] of given) expect(JSON.stringify(messages)).toContain(value)
  }
  await expect(client.getPrompt({ name: 'drain_node' })).rejects.toThrow('required argument')
  await expect(client.callTool({ name: 'no_such_tool' })).rejects.toThrow('Unknown tool')
  await client.close()
})

test.each(eras)('a refusal is a result that says what to do next (%s)', async (era) => {
  const rig = await openToolRig()
  const client = await connectClient(rig.app, await rig.key({ scopes: ['*:read'] }), era)
  const ask = (name: string, given: Record<string, unknown>) =>
    client.callTool({ name, arguments: given })
  const unknown = await ask('get_dispatcher_status', { setId: 9 })
  expect([unknown.isError, textOf(unknown)]).toEqual([
    true,
    'There is no dispatcher set 9. get_dispatcher_status without setId shows all sets.\n(unknown_set)',
  ])
  const wrong = await ask('get_dispatcher_status', { setId: 'one' })
  expect([wrong.isError, textOf(wrong)]).toEqual([
    true,
    expect.stringMatching(/^.*invalid\.\nsetId: /),
  ])
  const forbidden = await ask('revoke_sbc_api_key', { identifier: 'root' })
  expect([forbidden.isError, textOf(forbidden)]).toEqual([
    true,
    expect.stringMatching(
      /needs the scope mcp:write and keys:write; the credential has \*:read.*Ask an administrator/,
    ),
  ])
})

test('the rate of a key holds for /mcp as everywhere', async () => {
  const rig = await openToolRig()
  const token = await rig.key({ rate_limit_rpm: 2 })
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  const ask = async () => {
    const headers = { ...accept, authorization: `Bearer ${token}` }
    const answer = await rig.app.request('/mcp', { method: 'POST', body, headers })
    return answer.status
  }
  expect([await ask(), await ask(), await ask()]).toEqual([200, 200, 429])
})

const accept = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
