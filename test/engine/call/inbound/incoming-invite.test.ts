import { expect, test } from 'vitest'
import { readInvite } from '../../../../engine/call/inbound/incoming-invite.ts'
import type { Headers } from '../../../../engine/call/signalling.ts'
import { carrierOrigin } from '../steps.ts'

/** A carrier calls `uri`; we have registered there as `acme@north`. */
function called(uri: string, headers: Headers, registeredUser: string | undefined = 'acme@north') {
  const request = {
    method: 'INVITE',
    uri,
    body: '',
    headers,
    protocol: 'udp',
    sourceAddress: '192.0.2.1',
    sourcePort: 5_060,
  }
  const routing = {
    inboundNumber: (_origin: unknown, number: string) => number.replace(/^00/, '+'),
    dialledNumber: (number: string) => number,
    registeredUser: () => registeredUser,
    headerRulesOf: () => undefined,
  }
  const origin = carrierOrigin({ customerId: null, tenantId: null })
  const { calledNumber, calledUser, domain, irregular } = readInvite(
    request,
    'uuid',
    origin,
    routing,
  )
  return { calledNumber, calledUser, domain, irregular }
}

const contact = 'sip:acme%40north@198.51.100.1:5060'
const to = '"Office" <sip:0015550100@north.example>;tag=1'

// Kamailio's lookup("location"), for one, leaves the number in To.
test('a call to our registered Contact is for the number in To', () => {
  expect(called(contact, { to })).toEqual({
    calledNumber: '+15550100',
    calledUser: '+15550100',
    domain: '198.51.100.1',
  })
  expect(called(contact, { to: '<tel:+1-555-0100>' }).calledUser).toBe('+15550100')
})

test('P-Called-Party-ID counts before To, under any spelling', () => {
  const asked = { 'P-Called-Party-ID': '<sip:+15550101@north.example>' }
  expect(called(contact, { to, ...asked }).calledNumber).toBe('+15550101')
})

test.each([
  ['a number is called, not our Contact', 'sip:15550102@198.51.100.1', { to }],
  ['To says nothing', contact, { to: '<sip:north.example>' }],
  ['there is no To that can be read', contact, {}],
])('the Request-URI names the callee when %s', (_, uri, headers) => {
  const user = uri === contact ? 'acme%40north' : '15550102'
  expect(called(uri, headers).calledUser).toBe(user)
})

test.each([{ Diversion: '<sip:1@h>' }, { 'History-Info': '<sip:1@h>;index=1' }])(
  'To of a diverted call is the number of who diverted it, and only better than none: %o',
  (diverted) => {
    const headers = { to, ...diverted }
    expect(called('sip:15550102@198.51.100.1', headers, '15550102').calledNumber).toBe('15550102')
    expect(called(contact, headers).calledNumber).toBe('+15550100')
  },
)

test('the Request-URI of a carrier that we do not register with is trusted', () => {
  const name = { calledNumber: 'acme', irregular: 'name' }
  expect(called('sip:acme@198.51.100.1', { to }, undefined)).toMatchObject(name)
})

test('the name under which we are registered is known, also where To repeats it', () => {
  for (const headers of [{}, { to: '<sip:acme%40north@north.example>' }])
    expect(called(contact, headers).irregular).toBeUndefined()
  expect(called(contact, { to: '<sip:alice@north.example>' }).irregular).toBe('name')
})

test("a carrier's rule reads the normal form, and what it makes is read again", () => {
  expect(called('sip:0-0-1.555@h', {}, undefined)).toMatchObject({
    calledNumber: '+1555',
    calledUser: '+1555',
    irregular: undefined,
  })
  expect(called('sip:00+1555@h', {}, undefined).irregular).toBe('malformed')
})
