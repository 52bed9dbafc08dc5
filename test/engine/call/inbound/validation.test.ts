import { expect, test } from 'vitest'
import { rejectionFor } from '../../../../engine/call/inbound/admission.ts'
import type { Headers } from '../../../../engine/call/signalling.ts'

const contact = { contact: '<sip:1@10.0.0.1>' }

const inviteWith = (headers: Headers, hasUsableContact = true) => ({ headers, hasUsableContact })

const fine = {
  origin: { kind: 'trusted' },
  calledNumber: '2',
  hopsLeft: 69,
  isEmergency: false,
} as const

const deps = (size = 0) => ({
  calls: { size, isDraining: false, unserved: undefined, isCalling: () => false },
  retryAfterSeconds: 5,
})

test('an ordinary call is not rejected', () => {
  expect(rejectionFor(inviteWith(contact), fine, deps())).toBeUndefined()
})

test('above the limit of live calls there is only room for emergencies', () => {
  const crowded = deps(20_001)
  expect(rejectionFor(inviteWith(contact), fine, crowded)).toMatchObject({
    status: 503,
    code: 'overload',
    headers: { 'Retry-After': '5' },
  })
  const emergency = { ...fine, isEmergency: true }
  expect(rejectionFor(inviteWith(contact), emergency, crowded)).toBeUndefined()
})

test('an instance that is fenced takes no call, and says why', () => {
  const { calls, ...rest } = deps()
  const fenced = { ...rest, calls: { ...calls, unserved: 'node_fenced' as const } }
  expect(rejectionFor(inviteWith(contact), fine, fenced)).toMatchObject({
    status: 503,
    code: 'node_fenced',
    headers: { 'Retry-After': '5', Reason: 'Q.850;cause=41;text="Node Fenced"' },
  })
})

test('without a usable Contact there could be no dialog', () => {
  const invite = inviteWith(contact, false)
  expect(rejectionFor(invite, fine, deps())).toMatchObject({ status: 400 })
})

test('a call without number is incomplete', () => {
  const nowhere = { ...fine, calledNumber: '' }
  expect(rejectionFor(inviteWith(contact), nowhere, deps())).toMatchObject({ status: 484 })
})

test('what is no number is refused: 484, or 404 for a name that our own side calls and nobody has; INVITE with Replaces needs no number', () => {
  const malformed = { ...fine, calledNumber: '1+900', irregular: 'malformed' } as const
  const origin = { kind: 'node', nodeId: 1, setId: 1 } as const
  const name = { ...fine, origin, calledNumber: 'alice', irregular: 'name' } as const
  expect(rejectionFor(inviteWith(contact), malformed, deps())).toMatchObject({
    status: 484,
    reason: 'Address Incomplete',
    code: 'malformed_number',
  })
  expect(rejectionFor(inviteWith(contact), name, deps())).toMatchObject({
    status: 404,
    reason: 'Not Found',
    code: 'unknown_name',
  })
  const trunk = { ...name, origin: { kind: 'trusted' } } as const
  for (const called of [trunk, { ...name, isRouted: true }])
    expect(rejectionFor(inviteWith(contact), called, deps())).toBeUndefined()
  const replacing = inviteWith({ ...contact, replaces: 'a;to-tag=1;from-tag=2' })
  for (const called of [malformed, name])
    expect(rejectionFor(replacing, called, deps())).toBeUndefined()
})
