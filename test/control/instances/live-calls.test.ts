import { expect, test } from 'vitest'
import type { ActiveCall } from '../../../schema/contracts/calls.ts'
import { openControl, startOfTime } from '../../support/control.ts'
import { joinInstances, type JoinedInstance } from '../../support/joined-nodes.ts'
import { activeCall } from '../../support/engine-views.ts'
import { readColumn } from '../../support/stored.ts'

const uuidOf = (index: number): string =>
  `00000000-0000-4000-8000-${String(index).padStart(12, '0')}`

const callOf = (index: number, more: Partial<ActiveCall> = {}) =>
  activeCall({
    callUuid: uuidOf(index),
    callerNumber: '15550001111',
    calledNumber: '18005551212',
    startedAt: startOfTime - 60_000 + index,
    answeredAt: startOfTime - 30_000,
    setId: 1,
    ...more,
  })

const active = '/api/v1/pbx/calls/active'

async function three() {
  const joined = await joinInstances(['a', 'b', 'c'])
  const [a, b, c] = joined.instances as [JoinedInstance, JoinedInstance, JoinedInstance]
  a.engine.activeCalls.push(callOf(1), callOf(4))
  b.engine.activeCalls.push(callOf(2), callOf(5))
  c.engine.activeCalls.push(callOf(3))
  const token = await joined.control.key()
  // The reads of an instance at its first request take real time.
  for (const instance of joined.instances) await instance.request('/api/v1/nodes', { token })
  return { ...joined, a, b, c, token }
}

const uuidsOf = (body: unknown): string[] => (body as { uuid: string }[]).map(({ uuid }) => uuid)

test('every instance lists the live calls of all instances, oldest first, each once', async () => {
  const { instances, token } = await three()
  for (const instance of instances) {
    const { status, headers, body } = await instance.request(active, { token })
    expect(status).toBe(200)
    expect(uuidsOf(body)).toEqual([1, 2, 3, 4, 5].map(uuidOf))
    expect(headers.get('x-unreachable-nodes')).toBeNull()
  }
})

test('a tool lists as many calls of another instance as it may', async () => {
  const { a, b, token } = await three()
  b.engine.activeCalls.push(...Array.from({ length: 195 }, (_, index) => callOf(index + 6)))
  const answer = await a.request('/api/v1/mcp/tools/list_active_calls', {
    token,
    body: { limit: 200 },
  })
  const { calls, total } = answer.data<{ calls: unknown[]; total: number }>()
  expect([answer.status, calls.length, total]).toEqual([200, 200, 200])
})

test.each(['refused', 'silent'] as const)(
  'an instance whose link is %s is named within a second, and the calls of the others are listed',
  async (link) => {
    const { a, b, token, after } = await three()
    b.link = link
    const { answer, tookMs } = await after(a.request(active, { token }))
    expect(uuidsOf(answer.body)).toEqual([1, 3, 4].map(uuidOf))
    expect(answer.headers.get('x-unreachable-nodes')).toBe('b')
    expect(tookMs).toBeLessThanOrEqual(1_000)
  },
)

test('a tenant sees and ends its own calls only, on whichever instance they are', async () => {
  const { a, b, control } = await three()
  const tenantId = await control.tenant('acme')
  const other = await control.tenant('other')
  const own = await control.key({ tenant_slug: 'acme' })
  b.engine.activeCalls.push(callOf(6, { tenantId }), callOf(7, { tenantId: other }))
  const { body } = await a.request(active, { token: own })
  expect(uuidsOf(body)).toEqual([uuidOf(6)])
  const hangUp = (index: number) =>
    a.request('/api/v1/telephony/hangup', { token: own, body: { call_uuid: uuidOf(index) } })
  expect((await hangUp(7)).status).toBe(404)
  expect((await hangUp(6)).status).toBe(200)
  const status = await a.request(`/api/v1/pbx/calls/${uuidOf(7)}`, { token: own })
  expect(status.status).toBe(404)
  const trace = await a.request(`/api/v1/calls/${uuidOf(7)}/trace`, { token: own })
  expect(trace.status).toBe(404)
})

test('a call is hung up by the instance that has it, and the audit log has one entry with what changed', async () => {
  const { a, b, control, token } = await three()
  const ended: unknown[] = []
  b.engine.calls.hangUp = (...given) => {
    ended.push(given)
    return 'ending'
  }
  const body = { call_uuid: uuidOf(2), cause: 21 }
  const headers = { 'X-Correlation-ID': 'over-there' }
  const options = { token, body, headers, from: '198.51.100.7' }
  const answer = await a.request('/api/v1/telephony/hangup', options)
  expect(answer.body).toEqual({ success: true, data: { call_uuid: uuidOf(2), status: 'ending' } })
  expect(answer.headers.get('x-tollgate-node')).toBeNull()
  expect(answer.headers.get('x-tollgate-change')).toBeNull()
  expect(ended).toEqual([[uuidOf(2), 21]])
  const listed = await a.request('/api/v1/audit', { token })
  const entries = listed.data<Record<string, unknown>[]>()
  expect(entries).toHaveLength(1)
  expect(entries[0]).toMatchObject({
    address: '198.51.100.7',
    correlation_id: 'over-there',
    status: 200,
    outcome: 'success',
    before_digest: expect.stringMatching(/^[\w-]{43}$/) as string,
    after_digest: null,
  })
  expect(control.logged).toEqual([])
})

test('a call that no instance has is not found; with a silent instance that is not known, and said within a second', async () => {
  const { a, c, token, after } = await three()
  const body = { call_uuid: uuidOf(99) }
  const gone = await a.request('/api/v1/telephony/hangup', { token, body })
  expect([gone.status, gone.code]).toEqual([404, 'not_found'])
  c.link = 'silent'
  for (const asked of [
    a.request('/api/v1/telephony/hangup', { token, body }),
    a.request(`/api/v1/pbx/calls/${uuidOf(99)}`, { token }),
    a.request(`/api/v1/calls/${uuidOf(99)}/trace`, { token }),
  ]) {
    const { answer, tookMs } = await after(asked)
    expect([answer.status, answer.code]).toEqual([503, 'node_unreachable'])
    expect(answer.headers.get('x-unreachable-nodes')).toBe('c')
    expect(tookMs).toBeLessThanOrEqual(1_000)
  }
})

test('a call that an instance answers for is found at once, however slow another instance is', async () => {
  const { a, b, token } = await three()
  b.link = 'silent'
  // Time stands still.
  const answer = await a.request(`/api/v1/pbx/calls/${uuidOf(3)}`, { token })
  expect(answer.data<{ status: string }>().status).toBe('answered')
})

test('transfer, recording and supervision reach the instance of the call', async () => {
  const { a, b, control, token } = await three()
  b.engine.transfer = ({ callUuid, destination }) =>
    Promise.resolve({ kind: 'transferring', callUuid: `${callUuid} ${destination}` })
  b.engine.recordings.control = () => Promise.resolve({ kind: 'recording' })
  const body = { destination: '100' }
  const transfer = await a.request(`/api/v1/pbx/calls/${uuidOf(2)}/transfer`, { token, body })
  expect(transfer.status).toBe(202)
  expect(transfer.headers.get('location')).toBe(`/api/v1/pbx/calls/${uuidOf(2)} 100`)
  const record = await a.request('/api/v1/telephony/recording', {
    token,
    body: { call_uuid: uuidOf(2), action: 'start' },
  })
  expect(record.data()).toEqual({ call_uuid: uuidOf(2), status: 'recording' })
  const spy = await a.request('/api/v1/telephony/spy', {
    token,
    body: { call_uuid: uuidOf(2), supervisor_extension: '100', mode: 'barge' },
  })
  expect([spy.status, spy.code]).toEqual([501, 'spy_mode_unavailable'])
  const weak = await control.key({ scopes: ['calls:control'] })
  const refused = await a.request('/api/v1/telephony/transfer', {
    token: weak,
    body: { call_uuid: uuidOf(2), destination: '100' },
  })
  expect([refused.status, refused.code]).toEqual([403, 'insufficient_scope'])
})

test('the trace of a call is read from the instance that keeps it', async () => {
  const { a, b, token } = await three()
  b.engine.trace = (uuid) =>
    Promise.resolve(
      uuid === uuidOf(2)
        ? { tenantId: null, legs: [], peers: [], entries: [], isComplete: true }
        : undefined,
    )
  const path = `/api/v1/calls/${uuidOf(2)}/trace`
  const { body } = await a.request(path, { token })
  expect(body).toMatchObject({ data: { call_uuid: uuidOf(2), is_complete: true } })
  const capture = await a.request(`${path}.pcap`, { token })
  expect(capture.headers.get('content-type')).toBe('application/vnd.tcpdump.pcap')
  expect(capture.headers.get('content-disposition')).toContain(uuidOf(2))
})

test.each(['session', 'link'])(
  'an agent proposes to end a call of another instance, and a person who approves it at a third one ends it there: by %s',
  async (way) => {
    const control = await openControl({ publicUrl: 'https://sbc.example' })
    const joined = await joinInstances(['a', 'b', 'c'], { control })
    const [a, b, c] = joined.instances as [JoinedInstance, JoinedInstance, JoinedInstance]
    const tenantId = await control.tenant('acme')
    b.engine.activeCalls.push(callOf(6, { tenantId }), callOf(7))
    const ended: unknown[] = []
    b.engine.calls.hangUp = (...given) => {
      ended.push(given)
      return 'ending'
    }
    const agent = await control.key({
      tenant_slug: 'acme',
      name: 'agent',
      scopes: ['*:read', 'mcp:propose'],
    })
    const propose = (index: number) =>
      a.request('/api/v1/mcp/tools/propose_change', {
        token: agent,
        body: {
          tool: 'hangup_call',
          reason: 'it costs 3 a minute',
          arguments: { call_uuid: uuidOf(index) },
        },
      })
    expect((await propose(7)).code).toBe('not_found')
    const proposed = await propose(6)
    expect(proposed.data()).toMatchObject({ risk: 'high', affected: { live_calls: 1 } })
    expect(ended).toEqual([])
    const { proposal_id: id } = proposed.data<{ proposal_id: string }>()
    await control.user('anna', 'admin', tenantId)
    const login = { username: 'anna', password: 'correct horse' }
    const session = await c.request('/api/v1/auth/login', { body: login })
    const person = { token: session.data<{ token: string }>().token }
    const linkOf = async (proposal_id: string) => {
      const hook = {
        url: 'https://chat.example/',
        events: ['proposal.created'],
        approval_links: true,
      }
      const made = await c.request('/api/v1/webhooks', { ...person, body: hook })
      const endpoint = { id: made.data<{ id: number }>().id, approver_id: 1 }
      const event = { type: 'proposal.created', data: { proposal_id } }
      const sent = await control.access.links.complete(endpoint, JSON.stringify(event))
      const { data } = JSON.parse(sent) as { data: { approve_url: string } }
      return data.approve_url.replace('https://sbc.example', '')
    }
    const decided =
      way === 'session'
        ? await c.request(`/api/v1/proposals/${id}/approve`, { ...person, body: { revision: 1 } })
        : await c.request(await linkOf(id), {
            headers: { 'content-type': 'application/x-www-form-urlencoded' },
            body: 'revision=1&decision=approve',
          })
    expect([decided.status, decided.text]).toEqual([200, decided.text])
    expect(ended).toEqual([[uuidOf(6), 16]])
    const token = await control.key()
    const { change_id: changeId } = (await a.request(`/api/v1/proposals/${id}`, { token })).data<{
      change_id: string
    }>()
    const change = await a.request(`/api/v1/changes/${changeId}`, { token })
    expect(change.data()).toMatchObject({
      tool: 'hangup_call',
      state: 'made',
      target_id: uuidOf(6),
      actor: 'user:acme/anna',
    })
  },
)

test('a call whose instance does not say what became of it is neither told as ended nor as going on', async () => {
  const { a, b, control, token, after } = await three()
  b.engine.calls.hangUp = () => {
    throw new Error('the process ends here')
  }
  const { answer } = await after(
    a.request('/api/v1/mcp/tools/hangup_call', { token, body: { call_uuid: uuidOf(2) } }),
  )
  expect([answer.status, answer.code]).toEqual([503, 'node_unreachable'])
  expect(await readColumn(control.store, 'SELECT state FROM change_entry')).toEqual(['pending'])
})
