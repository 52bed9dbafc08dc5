import { expect, test } from 'vitest'
import { riskOf } from '../../../../control/agents/proposals/proposals.ts'
import { Retention } from '../../../../control/observe/retention/retention.ts'
import { apiWith } from '../../../support/control.ts'
import { drain, openProposalRig } from '../../../support/proposal-rig.ts'
import { readColumn, readRows, runSql } from '../../../support/stored.ts'

const byText = (a: string, b: string) => a.localeCompare(b)
const refused = (status: number, code: string) => [status, code]

test('a proposal tells effect, risk and undo as a dry run does, and changes nothing', async () => {
  const rig = await openProposalRig()
  const answer = await rig.propose('set_dispatcher_state', drain)
  expect([answer.status, answer.text]).toEqual([200, answer.text])
  const dry = await rig.tool('set_dispatcher_state', { ...drain, dry_run: true })
  const { effect } = dry.data<{ effect: string }>()
  expect(answer.data()).toMatchObject({
    state: 'open',
    is_new: true,
    effect,
    risk: 'low',
    undo: 'undo_change',
    tool: 'set_dispatcher_state',
    change_id: null,
    decided_by: null,
    expires_at: '2026-01-02T00:00:00.000Z',
  })
  expect(rig.stateOfNode()).toBe('active')
  expect(await readRows(rig.store, 'SELECT * FROM change_entry')).toEqual([])
  expect(rig.engine.told).toMatchObject([
    { type: 'proposal.created', tenantId: 1, tool: 'set_dispatcher_state', state: 'open' },
  ])
})

test('approved, the change is made once, under the names of both, and can be undone', async () => {
  const rig = await openProposalRig()
  const { proposal_id: id } = await rig.proposed()
  const answer = await rig.decide('approve', id, rig.people.acme, { revision: 1, note: 'yes' })
  expect([answer.status, answer.text]).toEqual([200, answer.text])
  const approved = await rig.proposal(id)
  expect(approved).toMatchObject({
    state: 'approved',
    decided_by: 'user:acme/anna',
    decided_via: 'api',
    note: 'yes',
    proposed_by_name: 'night agent',
    change_id: expect.any(String),
    failure: null,
  })
  expect(rig.stateOfNode()).toBe('inactive')
  expect(
    await readRows(rig.store, 'SELECT change_id, actor, reason, proposal_id FROM change_entry'),
  ).toEqual([
    {
      change_id: approved.change_id,
      actor: 'user:acme/anna',
      proposal_id: id,
      reason: 'the node does not answer',
    },
  ])
  const listed = await rig.tool('list_proposals', {}, rig.agent)
  expect(listed.data()).toMatchObject({
    total: 1,
    proposals: [{ proposal_id: id, state: 'approved', note: 'yes' }],
  })
  expect(rig.engine.told.at(-1)).toMatchObject({ type: 'proposal.decided', state: 'approved' })

  for (const decision of ['approve', 'refuse'] as const) {
    const again = await rig.decide(decision, id, rig.people.admin)
    expect([again.status, again.code]).toEqual(refused(409, 'already_decided'))
  }
  const undo = { change_id: approved.change_id, reason: 'it was wrong' }
  expect((await rig.tool('undo_change', undo, rig.people.acme)).status).toBe(200)
  expect(rig.stateOfNode()).toBe('active')
})

test('refused, nothing changes, and the agent reads why', async () => {
  const rig = await openProposalRig()
  const { proposal_id: id } = await rig.proposed()
  const answer = await rig.decide('refuse', id, rig.people.operator, { note: 'our own test' })
  expect(answer.data()).toMatchObject({ state: 'refused', note: 'our own test', change_id: null })
  expect(rig.stateOfNode()).toBe('active')
  const late = await rig.decide('approve', id, rig.people.admin)
  expect([late.status, late.code]).toEqual(refused(409, 'already_decided'))
  expect(rig.stateOfNode()).toBe('active')
})

test('what would have another effect by then is not approved: the proposal shows the new effect', async () => {
  const rig = await openProposalRig()
  const { proposal_id: id, effect } = await rig.proposed('set_dispatcher_state', {
    ...drain,
    state: 'probing',
  })
  expect((await rig.tool('set_dispatcher_state', drain)).status).toBe(200)
  const early = await rig.decide('approve', id, rig.people.acme)
  expect([early.status, early.code]).toEqual(refused(409, 'changed_since'))
  expect(rig.stateOfNode()).toBe('inactive')
  const shown = await rig.proposal(id)
  expect(shown).toMatchObject({ state: 'open', revision: 2, previous_state: 'inactive' })
  expect(shown.effect).not.toBe(effect)
  // A revision that was seen before is not approved by another revision's number.
  const old = await rig.decide('approve', id, rig.people.acme, { revision: 1 })
  expect([old.status, old.code]).toEqual(refused(409, 'changed_since'))
  expect((await rig.decide('approve', id, rig.people.acme, { revision: 2 })).status).toBe(200)
  expect(rig.stateOfNode()).toBe('probing')
})

test('a change that is refused when it is approved stays unmade, and its proposal open', async () => {
  const rig = await openProposalRig()
  const { proposal_id: id } = await rig.proposed()
  const other = { ...drain, destination: 'sip:10.0.0.1:5060;transport=udp' }
  expect((await rig.tool('set_dispatcher_state', other)).status).toBe(200)
  const answer = await rig.decide('approve', id, rig.people.acme)
  expect([answer.status, answer.code]).toEqual(refused(409, 'last_active_node'))
  expect(await rig.proposal(id)).toMatchObject({ state: 'open' })
  expect(rig.stateOfNode()).toBe('active')
})

test('of people who approve and refuse at once, on two instances, one decides', async () => {
  const rig = await openProposalRig()
  const instance = apiWith(rig.deps)
  for (let round = 1; round <= 3; round += 1) {
    const { proposal_id: id } = await rig.proposed()
    const decide = (decision: string, token: string, body: object, app = rig.app) =>
      rig.request(`/api/v1/proposals/${id}/${decision}`, { token, body, app })
    const answers = await Promise.all([
      decide('approve', rig.people.acme, { revision: 1 }),
      decide('approve', rig.people.admin, { revision: 1 }, instance),
      decide('refuse', rig.people.operator, {}, instance),
    ])
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
    for (const { status, code } of answers.filter((each) => each.status !== 200))
      expect([409, code]).toEqual([status, expect.stringMatching(/already_decided|changed_since/)])
    const made = await readRows(
      rig.store,
      `SELECT change_id FROM change_entry WHERE proposal_id = '${id}'`,
    )
    const { state } = await rig.proposal(id)
    expect(made).toHaveLength(state === 'approved' ? 1 : 0)
    expect(rig.stateOfNode()).toBe(state === 'approved' ? 'inactive' : 'active')
    await rig.tool('set_dispatcher_state', { ...drain, state: 'active' })
  }
})

test('an open proposal of the same change is the same one, as things are now', async () => {
  const rig = await openProposalRig()
  const first = await rig.proposed()
  const { setId, ...rest } = drain
  const again = await rig.propose('set_dispatcher_state', {
    ...rest,
    setId,
    reason: 'x',
    dry_run: true,
  })
  expect(again.data()).toMatchObject({ proposal_id: first.proposal_id, is_new: false })
  const both = await Promise.all([1, 2].map(() => rig.propose('set_dispatcher_state', drain)))
  for (const answer of both)
    expect(answer.data()).toMatchObject({ proposal_id: first.proposal_id, is_new: false })
  await rig.tool('set_dispatcher_state', { ...drain, state: 'probing' })
  expect((await rig.propose('set_dispatcher_state', drain)).data()).toMatchObject({
    proposal_id: first.proposal_id,
    effect: expect.stringContaining('probing'),
  })
  await rig.decide('refuse', first.proposal_id, rig.people.acme)
  const next = await rig.propose('set_dispatcher_state', drain)
  expect(next.data()).toMatchObject({ is_new: true })
})

test('a proposal expires, and cannot be approved from then on', async () => {
  const rig = await openProposalRig()
  const { proposal_id: id } = await rig.proposed()
  rig.tick(86_400_000 - 1)
  expect((await rig.proposal(id)).state).toBe('open')
  rig.tick(1)
  expect((await rig.proposal(id)).state).toBe('expired')
  const key = await rig.key({ scopes: ['proposals:write', 'dispatcher:write'] })
  const late = await rig.decide('approve', id, key)
  expect([late.status, late.code]).toEqual(refused(409, 'already_decided'))
  await rig.proposals.tick()
  await rig.proposals.tick()
  expect(rig.engine.told).toHaveLength(2)
  expect(rig.engine.told).toMatchObject([
    { type: 'proposal.created', state: 'open' },
    { type: 'proposal.decided', state: 'expired' },
  ])
})

test('an agent and a tenant have a bounded number of open proposals', async () => {
  const rig = await openProposalRig()
  const state = async (round: number) => {
    const given = { ...drain, expected_state: 'active', duration: 60 + round }
    return rig.propose('set_dispatcher_state', given)
  }
  for (let round = 1; round <= 20; round += 1) expect((await state(round)).status).toBe(200)
  const more = await state(21)
  expect([more.status, more.code]).toEqual(refused(429, 'too_many_proposals'))
})

test('a proposal too many is made by its repetition with the same key, once there is room', async () => {
  const rig = await openProposalRig()
  const state = (round: number) => ({
    tool: 'set_dispatcher_state',
    arguments: { ...drain, expected_state: 'active', duration: 60 + round },
    reason: 'the node does not answer',
  })
  const send = (round: number) =>
    rig.request('/api/v1/mcp/tools/propose_change', {
      token: rig.agent,
      body: state(round),
      headers: { 'Idempotency-Key': `round-${round}` },
    })
  const first = await send(1)
  for (let round = 2; round <= 20; round += 1) expect((await send(round)).status).toBe(200)
  expect((await send(21)).status).toBe(429)
  const { proposal_id: id } = first.data<{ proposal_id: string }>()
  expect((await rig.decide('refuse', id, rig.people.acme)).status).toBe(200)
  expect((await send(21)).status).toBe(200)
  expect((await send(21)).headers.get('idempotency-replayed')).toBe('true')
})

test('what is so already, or cannot be done, is not proposed', async () => {
  const rig = await openProposalRig()
  const said = async (tool: string, given: object) => {
    const { status, code } = await rig.propose(tool, given)
    return [status, code]
  }
  const active = { ...drain, state: 'active' }
  expect(await said('set_dispatcher_state', active)).toEqual([409, 'nothing_to_change'])
  expect(await said('set_dispatcher_state', { ...drain, setId: 9 })).toEqual([404, 'unknown_set'])
  expect(await said('set_dispatcher_state', { stat: 'x' })).toEqual([400, 'validation_failed'])
  expect(await said('get_telemetry', {})).toEqual([404, 'unknown_tool'])
  expect(await said('propose_change', {})).toEqual([404, 'unknown_tool'])
  const near = await rig.propose('set_dispatcher_stat', drain)
  expect(near.text).toContain('did you mean set_dispatcher_state')
  const token = await rig.key()
  expect(await said('revoke_sbc_api_key', { identifier: token })).toEqual([
    400,
    'validation_failed',
  ])
  expect(await said('revoke_sbc_api_key', { identifier: 'a\u202eb' })).toEqual([
    400,
    'validation_failed',
  ])
  expect(await readRows(rig.store, 'SELECT * FROM change_proposal')).toEqual([])
})

test('an approval whose process ended is completed from the log of changes, or has failed', async () => {
  const rig = await openProposalRig()
  const { proposal_id: made } = await rig.proposed()
  await rig.decide('approve', made, rig.people.acme)
  const lost = await rig.proposed('set_dispatcher_state', { ...drain, state: 'probing' })
  const unsettle = `UPDATE change_proposal SET state = 'approved', settled_at = NULL, change_id = NULL, decided_at = ${rig.now()}`
  await runSql(rig.store, unsettle)
  rig.tick(119_000)
  await rig.proposals.tick()
  expect((await rig.proposal(made)).change_id).toBeNull()
  rig.tick(2_000)
  await rig.proposals.tick()
  expect(await rig.proposal(made)).toMatchObject({
    state: 'approved',
    change_id: expect.any(String),
    failure: null,
  })
  expect(await rig.proposal(lost.proposal_id)).toMatchObject({
    state: 'failed',
    change_id: null,
    failure: expect.stringContaining('no change is entered'),
  })
})

test('proposals are kept as long as the audit log, and open ones longer', async () => {
  const rig = await openProposalRig()
  const { proposal_id: done } = await rig.proposed()
  await rig.decide('refuse', done, rig.people.acme)
  const { proposal_id: open } = await rig.proposed()
  const left = async () =>
    (await readColumn<string>(rig.store, 'SELECT uuid FROM change_proposal')).toSorted(byText)
  const step = (auditDays: number) =>
    new Retention(rig.deps, { callRecordDays: 0, auditDays }).step()
  rig.tick(86_400_000)
  await step(0)
  await step(1)
  expect(await left()).toEqual([done, open].toSorted(byText))
  rig.tick(1)
  await step(1)
  expect(await left()).toEqual([open])
})

test.each([
  ['low', true, {}],
  ['low', true, { live_calls: 0, active_nodes_then: 3, live_calls_of_set: 900 }],
  ['medium', true, { live_calls: 1 }],
  ['medium', true, { requests_per_hour: 100 }],
  ['high', true, { requests_per_hour: 101, live_calls: 1 }],
  ['high', false, {}],
] as const)(
  'the risk is %s when it can be undone (%s) and affects %j',
  (risk, canUndo, affected) => {
    expect(riskOf(canUndo, affected)).toBe(risk)
  },
)
