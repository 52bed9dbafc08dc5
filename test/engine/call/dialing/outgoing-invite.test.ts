import { expect, test } from 'vitest'
import {
  type OutgoingCall,
  type Callee,
  inviteFor,
  withheld,
  withheldByVersion,
} from '../../../../engine/call/dialing/outgoing-invite.ts'
import { HeaderFilter, partyOf } from '../../../../engine/call/sip-headers.ts'
import { candidate } from '../../../support/call-rig.ts'
import { gateway } from '../../../support/gateway.ts'
import { sdp } from '../../../support/sip-peer.ts'

const filter = new HeaderFilter({ passX: new Set(), ownHost: () => 'us' })

const announced = (from = '"Alice" <sip:100@inner>;tag=1', parts: Partial<OutgoingCall> = {}) => ({
  callUuid: 'u',
  headers: { 'p-asserted-identity': '<sip:+1800@inner>' },
  body: 'v=0',
  from: partyOf(from),
  calledUser: '%2B1555',
  hopsLeft: 69,
  ...parts,
})

test('a node gets the called number at its address, the caller at ours, and our mark', () => {
  const { uri, headers, credentials } = inviteFor(candidate(1, 5_070), announced(), filter)
  expect(uri).toBe('sip:%2B1555@127.0.0.1:5070;transport=udp')
  expect(credentials).toBeUndefined()
  expect(headers).toEqual({
    From: '"Alice" <sip:100@localhost>',
    To: '<sip:%2B1555@127.0.0.1:5070>',
    'Max-Forwards': '69',
    'X-Call-UUID': 'u',
    'p-asserted-identity': '<sip:+1800@us>',
    supported: 'replaces',
  })
})

test('an anonymous caller stays anonymous', () => {
  const from = '"Anonymous" <sip:anonymous@anonymous.invalid>;tag=1'
  const { headers } = inviteFor(candidate(1, 5_070), announced(from), filter)
  expect(headers['From']).toBe('"Anonymous" <sip:anonymous@anonymous.invalid>')
  const nameless = inviteFor(candidate(1, 5_070), announced('<sip:inner>;tag=1'), filter)
  expect(nameless.headers['From']).toBe('<sip:localhost>')
})

test('a gateway gets its own form of the number, and no mark of ours', () => {
  const { uri, headers } = inviteFor(gateway({ number: '001555#1' }), announced(), filter)
  expect(uri).toBe('sip:001555%231@192.0.2.1:5060;transport=udp')
  expect(headers['X-Call-UUID']).toBeUndefined()
  expect(headers['From']).toBe('"Alice" <sip:100@localhost>')
})

test('a carrier gets the caller in the way that it is configured for', () => {
  const fixed = gateway({ callerId: { mode: 'fixed', value: '+1900' } })
  expect(inviteFor(fixed, announced(), filter).headers).toMatchObject({
    From: '<sip:+1900@localhost>',
  })
  expect(inviteFor(fixed, announced(), filter).headers['p-asserted-identity']).toBeUndefined()

  const asserted = gateway({ callerId: { mode: 'pai', value: '+1900' } })
  expect(inviteFor(asserted, announced(), filter).headers).toMatchObject({
    From: '"Alice" <sip:100@localhost>',
    'p-asserted-identity': '<sip:+1900@localhost>',
  })
})

const anonymous = '"Anonymous" <sip:anonymous@Anonymous.invalid>;tag=1'
const claims = {
  'p-asserted-identity': '"Bob" <sip:+1800@inner>',
  'remote-party-id': '<sip:+1800@inner>;party=calling',
}

test('a carrier that wants an asserted number gets the asserted identity', () => {
  const asserted = gateway({ callerId: { mode: 'pai', value: null } })
  const identityOf = (from: string, headers = {}) =>
    inviteFor(asserted, announced(from, { headers }), filter).headers['p-asserted-identity']
  expect(identityOf('<sip:100@inner>;tag=1')).toBe('<sip:100@localhost>')
  expect(identityOf('<sip:100@inner>;tag=1', claims)).toBe('<sip:+1800@localhost>')
  expect(identityOf(anonymous, claims)).toBe('<sip:+1800@localhost>')
  expect(identityOf(anonymous)).toBeUndefined()
})

// RFC 3325 §7.
test.each([
  ['<sip:100@inner>;tag=1', undefined, true],
  ['<sip:100@inner>;tag=1', 'none', true],
  ['<sip:100@inner>;tag=1', 'critical;id', false],
  [anonymous, undefined, false],
])('a phone called by %s with Privacy %s sees the caller: %s', (from, privacy, isTold) => {
  const phone: Callee = {
    uri: 'sip:101@192.0.2.5',
    routes: [],
    nextHop: undefined,
    kind: 'phone',
    extension: '101',
    domain: 'acme.example',
    tenantId: 3,
  }
  const headers = privacy === undefined ? claims : { ...claims, privacy }
  const sent = inviteFor(phone, announced(from, { headers }), filter).headers
  expect([sent['p-asserted-identity'], sent['remote-party-id']].map(Boolean)).toEqual([
    isTold,
    isTold,
  ])
})

test('a carrier with credentials gets its user and domain in From, and the digest on demand', () => {
  const digest = gateway({
    auth: {
      type: 'digest',
      username: 'me',
      password: 'secret',
      realm: 'north',
      fromUser: 'trunk',
      fromDomain: 'carrier.example',
      expiresSeconds: null,
    },
  })
  const { headers, credentials } = inviteFor(digest, announced(), filter)
  expect(headers['From']).toBe('"Alice" <sip:trunk@carrier.example>')
  expect(credentials).toEqual({ username: 'me', password: 'secret', realm: 'north' })
})

test('an agent gets the URI that it has, and the mark of the call', () => {
  const uri = 'sip:bot@192.0.2.9:5070;transport=tcp'
  const agent = { kind: 'agent', agentId: 1, name: 'bot', tenantId: null, uri } as const
  expect(inviteFor(agent, announced(), filter)).toMatchObject({
    uri,
    nextHop: uri,
    headers: { To: '<sip:bot@192.0.2.9:5070>', 'X-Call-UUID': 'u' },
    credentials: undefined,
  })
})

test('headers that a carrier or an agent is not to see are left out', () => {
  const stripHeaders = ['p-asserted-identity', 'x-call-uuid', 'diversion']
  const headers = { 'p-asserted-identity': '<sip:1@x>', diversion: '<sip:2@x>', subject: 'hello' }
  const agent = { kind: 'agent', agentId: 1, name: 'bot', tenantId: null, uri: 'sip:b@x' } as const
  for (const callee of [{ ...agent, stripHeaders }, gateway({ stripHeaders })]) {
    const invite = inviteFor(callee, announced(undefined, { headers }), filter)
    expect(Object.keys(invite.headers).toSorted()).toEqual(
      ['From', 'Max-Forwards', 'To', 'subject', 'supported'].toSorted(),
    )
  }
})

test('without an offer 100rel is not offered: PRACK would have to carry the answer', () => {
  const supporting = (supported: string) => {
    const parts = { body: undefined, headers: { supported } }
    return inviteFor(candidate(1, 5_070), announced(undefined, parts), filter).headers['supported']
  }
  expect(supporting('100rel, uui')).toBe('uui, replaces')
  expect(supporting('100rel')).toBe('replaces')
  expect(supporting('replaces')).toBe('replaces')
})

test('another instance is asked with the called user as it is written, whatever it means elsewhere', () => {
  const otherInstance: Callee = {
    kind: 'other-node',
    uri: 'sip:192.0.2.9:5070',
    holder: 'b',
    token: 't',
    replaces: 'c;to-tag=t;from-tag=f',
  }
  const calledUser = "$'1$&$$"
  const { uri, headers } = inviteFor(otherInstance, announced(undefined, { calledUser }), filter)
  expect(uri).toBe("sip:$'1$&$$@192.0.2.9:5070")
  expect(headers['To']).toBe("<sip:$'1$&$$@192.0.2.9:5070>")
})

const atGateway = 'sip:1900@192.0.2.66'
const atNode = { kind: 'spy', setId: 1, nodeId: 1, node: 'sip:192.0.2.9', tenantId: 3 } as const
const phoneAt = { kind: 'phone', extension: '101', domain: 'a.example', tenantId: 3 } as const

test.each<[string, Callee, boolean]>([
  ['a node', { ...candidate(1, 5_070), uri: atGateway }, true],
  ['an agent', { kind: 'agent', agentId: 1, name: 'bot', tenantId: 3, uri: atGateway }, true],
  ['voicemail', { ...phoneAt, kind: 'voicemail', uri: atGateway }, true],
  ['a spy URI', { ...atNode, uri: atGateway, nextHop: 'sip:192.0.2.9' }, true],
  ['a foreign domain', { kind: 'domain', uri: atGateway, tenantId: 3 }, true],
  ['a Contact', { ...phoneAt, uri: atGateway, routes: [], nextHop: undefined }, true],
  [
    'a Contact behind a proxy',
    { ...phoneAt, uri: atGateway, routes: ['<sip:192.0.2.1;lr>'], nextHop: undefined },
    true,
  ],
  [
    'the last proxy of a Path',
    {
      ...phoneAt,
      uri: 'sip:1@192.0.2.2',
      routes: ['<sip:192.0.2.1;lr>', '<sip:192.0.2.66;lr>'],
      nextHop: undefined,
    },
    true,
  ],
  [
    'a Contact that is passed over, for where its REGISTER came from',
    { ...phoneAt, uri: atGateway, routes: [], nextHop: 'sip:192.0.2.9' },
    false,
  ],
  ['a priced route', gateway({ uri: atGateway }), false],
])("%s that leads to a carrier's gateway without a price: 403 %s", (_what, callee, isRefused) => {
  const behind = (uri: string) => (uri.includes('192.0.2.66') ? 'north' : undefined)
  const call = announced()
  const reason = withheld(callee, inviteFor(callee, call, filter), call, behind)
  const end = expect.objectContaining({ status: 403, code: 'unpriced_gateway' }) as unknown
  expect(reason).toEqual(isRefused ? { why: "leads to a carrier's gateway", end } : undefined)
})

const four = sdp('offer')
const six = four.replaceAll(/IN IP4 \S+/g, 'IN IP6 2001:db8::9')

const registered = { kind: 'phone', routes: [], nextHop: undefined } as const
const phone = (uri: string, parts: object = {}): Callee => ({
  ...registered,
  uri,
  extension: '102',
  domain: 'acme.example',
  tenantId: 3,
  ...parts,
})

test.each<readonly [string, Callee, string | undefined, boolean]>([
  ['a node with IPv4, IPv6', candidate(1, 5_070), six, true],
  ['a node with IPv4, IPv4', candidate(1, 5_070), four, false],
  ['a node with IPv4, no offer', candidate(1, 5_070), undefined, false],
  ['a gateway with IPv6, IPv4', gateway({ uri: 'sip:[2001:db8::1]:5060' }), four, false],
  ['a gateway with IPv6, IPv6', gateway({ uri: 'sip:[2001:db8::1]:5060' }), six, false],
  ['a gateway with a name', gateway({ uri: 'sip:192.0.2.1.example' }), six, false],
  ['a phone with IPv4', phone('sip:102@192.0.2.7:5060'), six, true],
  ['a phone with a flow of IPv6', phone('sip:1@x', { nextHop: 'sip:[::1]:5060' }), four, false],
  ['a phone behind a proxy', phone('sip:1@192.0.2.7', { routes: ['<sip:p>'] }), six, false],
  ['a browser', phone('sip:1@192.0.2.7', { isOnWebSocket: true }), six, false],
  ['a domain', { kind: 'domain', uri: 'sip:192.0.2.1', tenantId: 3 }, six, false],
])('without relays nobody is offered what it cannot reach: %s', (_who, callee, body, isApart) => {
  expect(withheldByVersion(callee, { body })?.end.code).toBe(
    isApart ? 'no_common_ip_version' : undefined,
  )
})
