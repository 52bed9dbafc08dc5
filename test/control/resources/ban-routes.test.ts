import { expect, test } from 'vitest'
import { FloodGuard } from '../../../engine/flood-guard/flood-guard.ts'
import { openControl } from '../../support/control.ts'

const path = '/api/v1/guard/bans'
const flooder = { protocol: 'udp', address: '203.0.113.9', port: 5_060 }
const packet = 'OPTIONS sip:x SIP/2.0\r\n\r\n'

async function open() {
  const control = await openControl()
  const guard = new FloodGuard({ now: control.now, isExempt: () => false, log: () => undefined })
  Object.assign(control.engine.guard, {
    bans: () => guard.bans(),
    locks: () => guard.locks(),
    ban: (address: string, durationMs: number) => guard.ban(address, durationMs),
    unban: (source: string) => guard.unban(source),
    endOperatorBan: (source: string) => guard.endOperatorBan(source),
  })
  const token = await control.key({ scopes: ['guard:read', 'guard:write'] })
  const call = (method: string, item = '', body?: unknown) =>
    control.request(`${path}${item}`, { token, method, body })
  return { ...control, guard, call }
}

test('an operator bans an address, sees what it still sends, and lets it in again', async () => {
  const { guard, call } = await open()
  const body = { address: flooder.address, duration_seconds: 60 }
  const banned = await call('POST', '', body)
  expect(banned.status).toBe(201)
  expect(guard.admit(flooder, packet)).toBe(false)
  expect((await call('GET')).data()).toEqual([
    {
      source: flooder.address,
      account: null,
      reason: 'operator',
      since: '2026-01-01T00:00:00.000Z',
      until: '2026-01-01T00:01:00.000Z',
      dropped_packets: 1,
    },
  ])
  expect((await call('DELETE', `/${flooder.address}`)).status).toBe(200)
  expect(guard.admit(flooder, packet)).toBe(true)
  expect((await call('DELETE', `/${flooder.address}`)).status).toBe(404)
})

test('an account that is locked at an address is listed beside the bans, and unlocked like one', async () => {
  const { guard, call } = await open()
  for (let guess = 0; guess < 10; guess++) guard.authFailed(flooder, '101@acme.example')
  const lock = { source: flooder.address, account: '101@acme.example', reason: 'wrong_passwords' }
  expect((await call('GET')).data()).toMatchObject([lock])
  expect((await call('DELETE', `/${flooder.address}`)).status).toBe(200)
  expect((await call('GET')).data()).toEqual([])
  expect(guard.isLockedOut(flooder, '101@acme.example')).toBe(false)
})

test('a ban and its end are entered as changes, and a ban is undone', async () => {
  const { guard, call, request, key } = await open()
  const token = await key()
  const ban = await call('POST', '?reason=it+guesses', { address: flooder.address })
  const undo = `/api/v1/changes/${ban.headers.get('x-change-id') ?? ''}/undo`
  const undone = await request(undo, { token, body: { reason: 'our own test' } })
  expect([undone.status, guard.admit(flooder, packet)]).toEqual([200, true])
  await call('POST', '', { address: flooder.address })
  // Longer, and no other state.
  expect(
    (await call('POST', '', { address: flooder.address })).headers.get('x-change-id'),
  ).toBeNull()
  await call('DELETE', `/${flooder.address}`)
  const listed = (await request('/api/v1/changes', { token })).data<object[]>()
  expect(listed).toMatchObject([
    { tool: 'DELETE /api/v1/guard/bans/:source', before: 'banned', is_reversible: false },
    { tool: 'POST /api/v1/guard/bans', state: 'made' },
    { tool: 'POST /api/v1/guard/bans', state: 'undone', reason: 'it guesses' },
  ])
})

const reason = 'it guesses passwords'

async function openTools() {
  const control = await open()
  const token = await control.key()
  const ban = (given: object) =>
    control.request('/api/v1/mcp/tools/ban_address', { token, body: { reason, ...given } })
  return { ...control, ban }
}

test('what is undone of a ban is the ban alone: one that the guard has found itself goes on', async () => {
  const { guard, ban, changes, tick } = await openTools()
  const caller = { ...flooder, protocol: 'tcp' }
  for (let call = 0; call < 30; call += 1) guard.unknownSource(caller)
  expect((await ban({ address: flooder.address, duration: 60 })).status).toBe(200)
  expect(guard.bans()).toHaveLength(2)
  tick(60_000)
  await changes.poll()
  expect(guard.bans()).toMatchObject([{ source: flooder.address, reason: 'unknown_calls' }])
  expect(guard.admit(caller, packet)).toBe(false)
})

test('a ban that lasts longer than another one of the same address is made, and the end of the shorter one lifts it not', async () => {
  const { guard, call, ban, changes, tick } = await openTools()
  const { address } = flooder
  const changed = async (duration: number) =>
    (await ban({ address, duration })).data<{ changed: boolean }>().changed
  expect(await changed(60)).toBe(true)
  const longer = await call('POST', '', { address, duration_seconds: 3_600 })
  expect(longer.headers.get('x-change-id')).not.toBeNull()
  tick(200_000)
  await changes.poll()
  expect(guard.admit(flooder, packet)).toBe(false)
  expect(await changed(60)).toBe(false)
  expect(await changed(7_200)).toBe(true)
  tick(4_000_000)
  await changes.poll()
  expect(guard.admit(flooder, packet)).toBe(false)
  tick(4_000_000)
  await changes.poll()
  expect(guard.admit(flooder, packet)).toBe(true)
})

test.each([
  ['2001:0DB8:0:0::9', '2001:db8::7', '2001:DB8::/64'],
  ['2001:DB8:0:0::/64', '2001:db8::7', '2001:0db8::1'],
  ['::ffff:203.0.113.9', '203.0.113.9', '::FFFF:203.0.113.9'],
])('%s is banned in every spelling, and let in again in any', async (given, address, other) => {
  const { guard, call, ban } = await openTools()
  const hears = () => guard.admit({ ...flooder, address }, packet)
  expect((await ban({ address: given })).data<object>()).toMatchObject({ changed: true })
  expect(hears()).toBe(false)
  const heard = await call('DELETE', `/${encodeURIComponent(other)}`)
  expect([heard.status, heard.headers.get('x-change-id'), hears()]).toEqual([
    200,
    expect.any(String),
    true,
  ])
  await call('POST', '', { address: given.replace('/64', '') })
  expect(hears()).toBe(false)
})
