/** Attempts to have a change made that no person with the right to it has approved. */
import { expect, test } from 'vitest'
import { endedCall, liveCall } from '../../../support/tools-rig.ts'
import { drain, openProposalRig } from '../../../support/proposal-rig.ts'
import { readRows, runSql } from '../../../support/stored.ts'

test('no key of an agent decides, whatever else it holds, and no credential on its own proposal', async () => {
  const rig = await openProposalRig()
  const { proposal_id: id } = await rig.proposed()
  const ofAcme = { tenant_scope: 'tenant', tenant_slug: 'acme' }
  const write = ['proposals:*', 'dispatcher:*']
  const tokens = [
    rig.root,
    await rig.key({ scopes: ['*'], ...ofAcme }),
    await rig.key({ scopes: ['mcp:read', ...write] }),
    await rig.key({ scopes: ['mcp:propose', ...write] }),
    await rig.key({ scopes: ['mcp:*', ...write], ...ofAcme }),
    await rig.key({ scopes: ['*:read', ...write], ...ofAcme }),
  ]
  for (const token of tokens)
    for (const decision of ['approve', 'refuse'] as const) {
      const answer = await rig.decide(decision, id, token)
      expect([answer.status, answer.code]).toEqual([403, 'person_required'])
    }
  const own = await rig.decide('approve', id, rig.agent)
  expect([own.status, own.code]).toEqual([403, 'insufficient_scope'])
  expect(await rig.proposal(id)).toMatchObject({ state: 'open', decided_by: null })
  expect(rig.stateOfNode()).toBe('active')
  const program = await rig.key({ scopes: write, ...ofAcme })
  expect((await rig.decide('approve', id, program)).status).toBe(200)

  const byPerson = await rig.proposed(
    'set_dispatcher_state',
    { ...drain, state: 'active' },
    rig.people.admin,
  )
  const self = await rig.decide('approve', byPerson.proposal_id, rig.people.admin)
  expect([self.status, self.code]).toEqual([403, 'own_proposal'])
})

test('a person who approves holds the scopes of the tool, and acts in the tenant of the proposal', async () => {
  const rig = await openProposalRig()
  await rig.key({ name: 'dialler', tenant_scope: 'tenant', tenant_slug: 'acme' })
  const { proposal_id: id } = await rig.proposed('revoke_sbc_api_key', { identifier: 'dialler' })
  const poor = await rig.decide('approve', id, rig.people.operator)
  expect([poor.status, poor.text]).toEqual([403, expect.stringContaining('keys:write')])
  const key = await rig.key({ scopes: ['proposals:write', 'dispatcher:write'] })
  expect((await rig.decide('approve', id, key)).status).toBe(403)
  for (const path of ['', '/approve', '/refuse']) {
    const body = path === '/approve' ? { revision: 1 } : {}
    const foreign = await rig.request(`/api/v1/proposals/${id}${path}`, {
      token: rig.people.other,
      ...(path !== '' && { body }),
    })
    expect([foreign.status, foreign.code]).toEqual([404, 'not_found'])
  }
  const headers = { 'X-Tenant-Slug': 'other' }
  const aside = await rig.request(`/api/v1/proposals/${id}/approve`, {
    token: rig.people.admin,
    headers,
    body: { revision: 1 },
  })
  expect(aside.status).toBe(404)
  const list = await rig.request('/api/v1/proposals', { token: rig.people.other })
  expect([list.status, list.data()]).toEqual([200, []])
  expect((await rig.tool('list_proposals', {}, rig.people.other)).data()).toMatchObject({
    total: 0,
  })
  expect(await rig.proposal(id)).toMatchObject({ state: 'open', revision: 1 })
})

test('a name means in the approval what it meant to the agent: another tenant has one of the same name', async () => {
  const rig = await openProposalRig()
  for (const tenant_slug of ['acme', 'other'])
    await rig.key({ name: 'dialler', tenant_scope: 'tenant', tenant_slug })
  const { proposal_id: id } = await rig.proposed('revoke_sbc_api_key', { identifier: 'dialler' })
  const answer = await rig.decide('approve', id, rig.people.admin)
  expect([answer.status, answer.text]).toEqual([200, answer.text])
  const keys = `SELECT tenant.slug, revoked_at IS NULL AS is_valid FROM application_key
    JOIN tenant ON tenant.id = application_key.tenant_id WHERE application_key.name = 'dialler' ORDER BY slug`
  const rows = await readRows(rig.store, keys)
  expect(rows.map(({ is_valid }) => Boolean(is_valid))).toEqual([false, true])
})

test.each([
  ['revoked', 'revoked_at = 1, is_active = 0'],
  ['inactive', 'is_active = 0'],
  ['expired', 'expires_at = 1'],
  ['without mcp:propose', `scopes = '["*:read"]'`],
])('what a key has proposed that is %s by now is not approved', async (_, change) => {
  const rig = await openProposalRig()
  const { proposal_id: id } = await rig.proposed()
  await runSql(rig.store, `UPDATE application_key SET ${change} WHERE name = 'night agent'`)
  const answer = await rig.decide('approve', id, rig.people.acme)
  expect([answer.status, answer.code]).toEqual([409, 'proposer_not_valid'])
  expect(rig.stateOfNode()).toBe('active')
  expect((await rig.decide('refuse', id, rig.people.acme)).status).toBe(200)
})

test('an agent that may propose is taught to, changes nothing by itself, and sees nothing that it may not read', async () => {
  const rig = await openProposalRig()
  for (const [tool, given] of [
    ['set_dispatcher_state', drain],
    ['revoke_sbc_api_key', { identifier: 'root' }],
    ['hangup_call', { call_uuid: liveCall }],
    ['reload_dispatchers', {}],
  ] as const) {
    const answer = await rig.tool(tool, given, rig.agent)
    expect([answer.status, answer.text]).toEqual([403, expect.stringContaining('propose_change')])
    expect(answer.text).toContain(`\\"${tool}\\"`)
  }
  const reader = await rig.key({ scopes: ['*:read'] })
  const untaught = await rig.tool('set_dispatcher_state', drain, reader)
  expect(untaught.text).not.toContain('propose_change')
  const noRight = await rig.propose('set_dispatcher_state', drain, reader)
  expect([noRight.status, noRight.code]).toEqual([403, 'insufficient_scope'])
  const blind = await rig.key({ scopes: ['mcp:read', 'mcp:propose', 'calls:read'] })
  const unseen = await rig.propose('set_dispatcher_state', drain, blind)
  expect([unseen.status, unseen.text]).toEqual([403, expect.stringContaining('dispatcher:read')])
  const foreign = await rig.key({ scopes: ['*:read', 'mcp:propose'], tenant_slug: 'other' })
  for (const [tool, given] of [
    ['set_dispatcher_state', drain],
    ['hangup_call', { call_uuid: liveCall }],
    ['hangup_call', { call_uuid: endedCall }],
  ] as const) {
    const answer = await rig.propose(tool, given, foreign)
    expect([answer.status, answer.text]).toEqual([404, expect.not.stringMatching(/acme|10\.0\.0/)])
  }
  expect(await readRows(rig.store, 'SELECT uuid FROM change_proposal')).toEqual([])
  expect(rig.stateOfNode()).toBe('active')
})

test("another site's form decides nothing with the session of a person", async () => {
  const rig = await openProposalRig()
  const { proposal_id: id } = await rig.proposed()
  const cookie = `tollgate_session=${rig.people.acme}`
  const path = `/api/v1/proposals/${id}/approve`
  const origins = [
    { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' },
    { 'sec-fetch-site': 'same-site', origin: 'http://other.localhost' },
    { origin: 'https://evil.example' },
    { origin: 'null' },
    {},
  ]
  for (const origin of origins)
    for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded']) {
      const headers = { cookie, host: 'localhost', 'content-type': type, ...origin }
      const answer = await rig.request(path, { headers, body: '{"revision":1}' })
      expect([answer.status, answer.code]).toEqual([401, 'unauthorized'])
    }
  const own = { cookie, host: 'localhost', origin: 'http://localhost' }
  const form = { ...own, 'content-type': 'application/x-www-form-urlencoded' }
  expect((await rig.request(path, { headers: form, body: 'revision=1' })).status).toBe(415)
  expect(rig.stateOfNode()).toBe('active')
  expect((await rig.request(path, { headers: own, body: { revision: 1 } })).status).toBe(200)
})
