import { expect, test } from 'vitest'
import { Invite } from '../../../../engine/call/legs/invite.ts'
import { objectionTo } from '../../../../engine/call/inbound/validation.ts'
import type { Headers } from '../../../../engine/call/srf/drachtio.ts'

const contact = { contact: '<sip:1@10.0.0.1>' }

/** An INVITE with these headers, as far as an objection looks at it. */
function inviteWith(headers: Headers, parse: () => unknown = () => [{}]): Invite {
  const request = {
    ...{ method: 'INVITE', uri: 'sip:2@h', body: '', headers, source: 'network' as const },
    ...{
      protocol: 'udp',
      source_address: '10.0.0.1',
      source_port: 5_060,
      stackDialogId: undefined,
    },
    ...{ getParsedHeader: parse, on: () => undefined, cancel: () => undefined },
  }
  const answer = { finalResponseSent: false, send: () => undefined }
  return new Invite(request, answer, () => undefined)
}

const fine = {
  origin: { kind: 'trusted' },
  calledNumber: '2',
  hopsLeft: 69,
  isEmergency: false,
} as const

const deps = (size = 0) => ({
  calls: { size, isDraining: false, canStore: true, isCalling: () => false },
  retryAfterSeconds: 5,
  routing: {
    admitCarrierCall: () => true,
  },
})

test('nothing speaks against an ordinary call', () => {
  expect(objectionTo(inviteWith(contact), fine, deps())).toBeUndefined()
})

test('above the limit of live calls there is only room for emergencies', () => {
  const crowded = deps(20_001)
  expect(objectionTo(inviteWith(contact), fine, crowded)).toMatchObject({
    status: 503,
    code: 'overload',
    headers: { 'Retry-After': '5' },
  })
  const emergency = { ...fine, isEmergency: true }
  expect(objectionTo(inviteWith(contact), emergency, crowded)).toBeUndefined()
})

test('without a Contact that can be read there could be no dialog', () => {
  const unreadable = () => {
    throw new TypeError('cannot read')
  }
  for (const invite of [inviteWith({}), inviteWith(contact, unreadable)])
    expect(objectionTo(invite, fine, deps())).toMatchObject({ status: 400 })
})

test('a call to nobody is incomplete', () => {
  const nobody = { ...fine, calledNumber: '' }
  expect(objectionTo(inviteWith(contact), nobody, deps())).toMatchObject({ status: 484 })
})

test('what is no number is refused: 484, or 404 for a name; INVITE with Replaces needs no number', () => {
  const malformed = { ...fine, calledNumber: '1+900', irregular: 'malformed' } as const
  const name = { ...fine, calledNumber: 'alice', irregular: 'name' } as const
  expect(objectionTo(inviteWith(contact), malformed, deps())).toMatchObject({
    ...{ status: 484, reason: 'Address Incomplete', code: 'malformed_number' },
  })
  expect(objectionTo(inviteWith(contact), name, deps())).toMatchObject({
    ...{ status: 404, reason: 'Not Found', code: 'unknown_name' },
  })
  const replacing = inviteWith({ ...contact, replaces: 'a;to-tag=1;from-tag=2' })
  for (const called of [malformed, name])
    expect(objectionTo(replacing, called, deps())).toBeUndefined()
})
