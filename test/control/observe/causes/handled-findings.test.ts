/**
 * Findings of what was done by hand and of limits, and findings that a change in force deals with,
 * over REST.
 */
import { expect, test } from 'vitest'
import type { AnomaliesView } from '../../../../control/observe/causes/find-anomalies.ts'
import { runSql } from '../../../support/stored.ts'
import { noteChange, openToolRig, storeRecord } from '../../../support/tools-rig.ts'

const first = 'sip:10.0.0.1:5060;transport=udp'
const reason = 'for the test'

async function openFindings() {
  const rig = await openToolRig()
  await runSql(rig.store, 'DELETE FROM cdr')
  const find = async (query = '', token = rig.root) =>
    (await rig.request(`/api/v1/anomalies${query}`, { token })).data<AnomaliesView>()
  const refusals = async (denial_code: string, more: object = {}) => {
    for (let index = 0; index < 4; index += 1)
      await storeRecord(rig, 1, `${denial_code} ${index}`, {
        disposition: 'FAILED',
        sip_code: 503,
        billsec: 0,
        cost_micros: 0,
        answer_stamp: null,
        denial_code,
        start_stamp: rig.now() - 600_000 + index * 1_000,
        ...more,
      })
  }
  const change = async (name: string, given: object) => {
    const answer = await rig.tool(name, { reason, ...given })
    expect([answer.status, answer.text]).toEqual([200, answer.text])
    return answer.data<{ change_id: string }>().change_id
  }
  return { ...rig, find, refusals, change }
}

test('a node taken out by hand is a finding: by which change, and how it comes back', async () => {
  const rig = await openFindings()
  const drained = { setId: 1, destination: first, state: 'inactive' }
  const changeId = await rig.change('set_dispatcher_state', drained)
  const { findings } = await rig.find('?kinds=node')
  expect(findings).toMatchObject([
    {
      kind: 'node',
      what: expect.stringMatching(
        `^node ${first} "10.0.0.1" of set 1 was taken out of service by hand at .* by change ${changeId}; 1 other node of the set is active.$`,
      ),
      caused_by: { change_id: changeId, tool: 'set_dispatcher_state', by: 'root', reason },
      handled_by: null,
      first_step: { tool: 'set_dispatcher_state', arguments: { destination: first } },
    },
  ])
  const unnamed = await rig.key({ scopes: ['cdrs:read', 'dispatcher:read'] })
  expect((await rig.find('?kinds=node', unnamed)).findings).toMatchObject([
    { caused_by: { change_id: changeId, by: null } },
  ])
  const step = findings[0]?.first_step
  await rig.change(step?.tool ?? '', step?.arguments ?? {})
  expect((await rig.find('?kinds=node')).findings).toEqual([])
})

test('a node that does not answer and was then taken out is marked as handled by that change', async () => {
  const rig = await openFindings()
  await rig.engine.dispatcher.setState(1, first, 'probing')
  await noteChange(rig, { at: rig.now() - 60_000 })
  const [found] = (await rig.find('?kinds=node')).findings
  expect(found).toMatchObject({ severity: 'high', handled_by: null })
  const changeId = await rig.change(
    found?.first_step?.tool ?? '',
    found?.first_step?.arguments ?? {},
  )
  expect(await rig.find('?kinds=node')).toMatchObject({
    total: 1,
    handled: 1,
    findings: [
      {
        what: expect.stringContaining('"no answer", and was then taken out by hand'),
        handled_by: { change_id: changeId, seen_since: false, expires_at: expect.any(String) },
        first_step: null,
      },
    ],
  })
  await rig.tool('undo_change', { change_id: changeId, reason })
  expect((await rig.find('?kinds=node')).findings).toMatchObject([{ handled_by: null }])
})

test('limits that refuse calls are findings of the kind capacity, with a step that fits the limit', async () => {
  const rig = await openFindings()
  await rig.request('/api/v1/customers/1', {
    method: 'PATCH',
    token: rig.root,
    body: { max_concurrent_calls: 2 },
  })
  await rig.change('set_dispatcher_state', { setId: 1, destination: first, state: 'inactive' })
  await rig.refusals('concurrent_limit')
  await rig.refusals('node_limit', { set_id: 1 })
  const { findings } = await rig.find('?kinds=capacity')
  const about = (code: string) => findings.find(({ what }) => what.includes(code))
  expect(about('concurrent_limit')).toMatchObject({
    what: expect.stringMatching(
      /^customer 1 "acme customer": 4 calls refused with concurrent_limit since .*: the customer may have 2 calls at once\.$/,
    ),
    figures: { refused_calls: 4, limit: 2 },
    evidence: expect.arrayContaining(['concurrent_limit 0']),
    next: { tool: 'get_customer_balance', arguments: { customer: 1 } },
    first_step: {
      tool: 'set_customer_limits',
      arguments: { customer: 1, max_concurrent_calls: 4, duration: 3_600 },
    },
  })
  expect(about('node_limit')).toMatchObject({
    what: expect.stringContaining(
      'every active node of set 1 had as many calls as its max_calls allows; 1 of 2 nodes active',
    ),
    next: { tool: 'get_dispatcher_status', arguments: { setId: 1 } },
    first_step: {
      tool: 'set_dispatcher_state',
      arguments: { destination: first, state: 'active' },
    },
  })
})

test('a finding that a change deals with is marked and comes last, and no other finding is', async () => {
  const rig = await openFindings()
  await rig.refusals('concurrent_limit')
  await rig.refusals('insufficient_funds')
  await rig.refusals('no_rate', { rate_prefix: null, destination_number: '+447911' })
  rig.tick(120_000)
  const given = { customer: 1, max_concurrent_calls: 9 }
  const changeId = await rig.change('set_customer_limits', given)
  const kinds = async () =>
    (await rig.find()).findings.map(({ kind, handled_by: by }) => [kind, by?.change_id ?? null])
  expect(await kinds()).toEqual([
    ['rate', null],
    // There is money again.
    ['wallet', null],
    ['capacity', changeId],
  ])
  await rig.request('/api/v1/rates', {
    token: rig.root,
    body: { rate_plan: 'acme plan', prefix: '44', rate_per_minute: '0.10' },
  })
  expect((await kinds()).filter(([, by]) => by === null)).toEqual([['wallet', null]])
  await rig.tool('undo_change', { change_id: changeId, reason })
  expect((await kinds()).filter(([, by]) => by === null).map(([kind]) => kind)).toEqual([
    'capacity',
    'wallet',
  ])
})
