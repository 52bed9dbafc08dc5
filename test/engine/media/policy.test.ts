import { expect, test } from 'vitest'
import {
  mediaDecision,
  type RuleSources,
  rulesOf,
  inRecordedCodecs,
  offeredCodecs,
} from '../../../engine/media/policy.ts'
import type { MediaPolicy, MediaRules } from '../../../schema/contracts/field-values.ts'
import {
  baresipOffer,
  chromiumOffer,
  party,
  srtpOffer,
  withoutEvents,
  noRules,
} from '../../support/media-party.ts'
import { candidate } from '../../support/call-rig.ts'
import { gateway } from '../../support/gateway.ts'
import { natAddressOf, Parties } from '../../../engine/media/parties.ts'
import { readDescription } from '../../../engine/media/description.ts'
import { noMediaRules } from '../../../schema/rules/media.ts'
import type { MediaParty } from '../../../engine/media/call-media.ts'

const wishes = { policy: 'bypass', isRecorded: false, mustBeRecorded: false } as const
const bypass = { kind: 'bypass' }
const automatic = (why: string) => ({ kind: 'relay', isRequired: false, why })
const anchored = { kind: 'relay', isRequired: true, why: 'anchored' }

test.each<[MediaPolicy | null, MediaPolicy | null, MediaPolicy, unknown]>([
  [null, null, 'bypass', bypass],
  [null, null, 'prefer', automatic('preferred')],
  [null, null, 'anchor', anchored],
  ['bypass', null, 'bypass', bypass],
  ['bypass', 'bypass', 'anchor', bypass],
  ['bypass', null, 'anchor', anchored],
  ['bypass', 'prefer', 'bypass', automatic('preferred')],
  ['prefer', 'anchor', 'bypass', anchored],
  ['anchor', 'bypass', 'bypass', anchored],
])('policies %s and %s, with %s for those that have none', (one, other, policy, decision) => {
  const decide = (a: MediaPolicy | null, b: MediaPolicy | null) =>
    mediaDecision(
      party(baresipOffer, { rules: { policy: a } }),
      party(undefined, { rules: { policy: b } }),
      { ...wishes, policy },
    )
  expect(decide(one, other)).toEqual(decision)
  expect(decide(other, one)).toEqual(decision)
})

const phone = party(baresipOffer)
const silentPhone = party(withoutEvents(baresipOffer))
const browser = party(chromiumOffer)
const page = party(undefined, { isOnWebSocket: true })
const natted = { natAddress: '198.51.100.7' }
const ruled = (rules: Partial<MediaRules>) => party(undefined, { rules })

test.each([
  ['an RTP phone and a carrier', phone, party(), bypass],
  ['a browser and another browser', browser, page, bypass],
  ['a browser and a carrier', browser, party(), automatic('profile')],
  ['an RTP phone and a browser', phone, page, automatic('profile')],
  ['an SRTP phone and an unknown one', party(srtpOffer), party(), bypass],
  [
    'an SRTP phone and an RTP trunk',
    party(srtpOffer),
    ruled({ profile: 'rtp' }),
    automatic('profile'),
  ],
  ['an RTP phone and an SRTP trunk', phone, ruled({ profile: 'srtp' }), automatic('profile')],
  ['a browser and a node that speaks DTLS-SRTP', browser, ruled({ profile: 'webrtc' }), bypass],
  ['one behind NAT', party(baresipOffer, natted), party(), automatic('nat')],
  ['a phone behind NAT that is called', phone, party(undefined, natted), automatic('nat')],
  [
    'codecs that are all there, in the wanted order',
    phone,
    ruled({ codecs: ['PCMA', 'pcmu'] }),
    bypass,
  ],
  ['another order', phone, ruled({ codecs: ['PCMU', 'PCMA'] }), automatic('codecs')],
  ['a codec that is not there', phone, ruled({ codecs: ['opus'] }), automatic('codecs')],
  ['digits for one that takes INFO', phone, ruled({ dtmf: 'info' }), automatic('dtmf')],
  [
    'an INFO phone to an RFC 4733 trunk',
    silentPhone,
    ruled({ dtmf: 'rfc4733' }),
    automatic('dtmf'),
  ],
  ['two that have RFC 4733', phone, ruled({ dtmf: 'rfc4733' }), bypass],
])('%s', (_, one, other, decision) => {
  expect(mediaDecision(one, other, wishes)).toEqual(decision)
})

test('two that take INFO need no relay', () => {
  const info = party(withoutEvents(baresipOffer), { rules: { dtmf: 'info' } })
  expect(mediaDecision(info, ruled({ dtmf: 'info' }), wishes)).toEqual(bypass)
})

test('a call that is to be recorded goes through a relay; one that must be is not made without', () => {
  const recorded = { ...wishes, isRecorded: true }
  expect(mediaDecision(phone, party(), recorded)).toEqual(automatic('recording'))
  const must = mediaDecision(phone, ruled({ policy: 'prefer' }), {
    ...recorded,
    mustBeRecorded: true,
  })
  expect(must).toEqual({ kind: 'relay', isRequired: true, why: 'recording' })
})

const named = (codec: string): MediaRules => ({ ...noRules, codecs: [codec] })
const sources: RuleSources = {
  routing: {
    mediaOf: (party) =>
      named('agentId' in party ? `agent ${party.agentId}` : `carrier ${party.carrierId}`),
  },
  dispatcher: { setRecord: (setId) => ({ media: named(`set ${setId}`) }) },
  registrar: {
    extensionAt: (domain, extension) =>
      extension === '101' ? { media: named(`101@${domain}`) } : undefined,
  },
}
const boundPhone = {
  uri: 'sip:x',
  routes: [],
  nextHop: undefined,
  domain: 'a.example',
  tenantId: 1,
}

test.each([
  [gateway({ carrierId: 7 }), 'carrier 7'],
  [
    { kind: 'agent', agentId: 3, name: 'bot', tenantId: null, uri: 'sip:bot@x' } as const,
    'agent 3',
  ],
  [candidate(1, 5_070), 'set 1'],
  [{ kind: 'node', nodeId: 1, setId: 2 } as const, 'set 2'],
  [{ kind: 'phone', ...boundPhone, extension: '101' } as const, '101@a.example'],
])('%o', (party, codec) => {
  expect(rulesOf(party, sources).codecs).toEqual([codec])
})

test('what a supervisor hears is known to relays only', () => {
  const listened = { callUuid: 'x', side: 'both' } as const
  const rules = rulesOf({ kind: 'listener', uri: 'relay:x', listened }, sources)
  expect(rules).toEqual({ ...noRules, policy: 'anchor', profile: 'rtp' })
})

test('a party about which nothing was said has no rules', () => {
  expect(rulesOf({ kind: 'unknown' }, sources)).toEqual(noRules)
  expect(rulesOf({ kind: 'trusted' }, sources)).toEqual(noRules)
  expect(rulesOf({ kind: 'phone', ...boundPhone, extension: '102' }, sources)).toEqual(noRules)
})

const describedAt = (address: string) =>
  readDescription(
    baresipOffer.replace(
      'c=IN IP4 127.0.0.1',
      `c=IN IP${address.includes(':') ? 6 : 4} ${address}`,
    ),
  )

test.each<[string, string | undefined, string | undefined]>([
  // The address in the description, that of the INVITE, and the one where media goes instead.
  ['192.168.1.7', '198.51.100.7', '198.51.100.7'],
  ['10.1.2.3', '198.51.100.7', '198.51.100.7'],
  ['172.31.0.9', '198.51.100.7', '198.51.100.7'],
  ['100.64.0.9', '198.51.100.7', '198.51.100.7'],
  ['fd00::9', '2001:db8::7', '2001:db8::7'],
  ['192.168.1.7', '10.0.0.1', '10.0.0.1'],
  ['127.0.0.1', '198.51.100.7', '198.51.100.7'],
  ['192.168.1.7', '192.168.1.7', undefined],
  // A media server beside the signalling, or STUN.
  ['203.0.113.9', '198.51.100.7', undefined],
  ['172.32.0.9', '198.51.100.7', undefined],
  ['127.0.0.2', '127.0.0.1', undefined],
  // Hold, the old way.
  ['0.0.0.0', '198.51.100.7', undefined],
  ['media.example.com', '198.51.100.7', undefined],
  // Behind a proxy.
  ['192.168.1.7', undefined, undefined],
])('c=%s from %s: %s', (address, source, expected) => {
  const from = { address: source, boundBehindNat: undefined }
  expect(natAddressOf(from, describedAt(address))).toBe(expected)
})

test('before a phone has described itself, its REGISTER tells', () => {
  const from = { address: '198.51.100.7', boundBehindNat: '198.51.100.7' }
  expect(natAddressOf(from, undefined)).toBe('198.51.100.7')
  expect(natAddressOf({ ...from, boundBehindNat: undefined }, undefined)).toBeUndefined()
  // It has found its public address by STUN.
  expect(natAddressOf(from, describedAt('198.51.100.8'))).toBeUndefined()
})

test('a browser finds its way by ICE', () => {
  const from = { address: '198.51.100.7', boundBehindNat: '198.51.100.7' }
  expect(natAddressOf(from, readDescription(chromiumOffer))).toBeUndefined()
})

const parties = new Parties({
  rules: {
    routing: { mediaOf: () => undefined },
    dispatcher: { setRecord: () => undefined },
    registrar: { extensionAt: () => undefined },
  },
  calls: { call: () => undefined },
  policy: 'bypass',
  isRecorded: () => false,
  mustBeRecorded: () => false,
})
const invite = { protocol: 'udp', sourceAddress: '192.0.2.1' }

test('the rules of a caller are looked up when it is known; one that has proved to be another instance has none', () => {
  expect(parties.caller({ ...invite, headers: {} }).rules).toBeUndefined()
  expect(parties.caller({ ...invite, headers: {} }, true).rules).toBe(noMediaRules)
})

test('a header by which instances prove who they are frees no caller from its rules', () => {
  const headers = { 'X-Tollgate-Transfer': 'token' }
  expect(parties.caller({ ...invite, headers }).rules).toBeUndefined()
})

const recordedParty = (
  codecs: readonly string[] | null,
  offered: readonly string[] = [],
): MediaParty =>
  inRecordedCodecs({
    rules: { policy: null, profile: 'auto', codecs, dtmf: 'auto' },
    isOnWebSocket: false,
    natAddress: undefined,
    families: [],
    description: {
      profile: 'rtp',
      address: '',
      codecs: offered,
      otherCodecs: [],
      hasTelephoneEvents: false,
      families: [],
    },
  })

test.each([
  [null, ['PCMA', 'PCMU']],
  [
    ['PCMU', 'opus', 'PCMA'],
    ['PCMU', 'PCMA'],
  ],
  [['pcmu'], ['pcmu']],
  [['opus'], ['PCMA', 'PCMU']],
])('of the codecs %j a recorded party may use %j', (codecs, expected) => {
  expect(recordedParty(codecs).rules.codecs).toEqual(expected)
})

test('an offer loses what cannot be decoded; one that has nothing else is transcoded', () => {
  expect(
    offeredCodecs(recordedParty(null, ['opus', 'G722', 'PCMU', 'PCMA']), recordedParty(null)),
  ).toEqual({
    kind: 'filtered',
    codecs: ['PCMA', 'PCMU'],
  })
  expect(offeredCodecs(recordedParty(null, ['opus']), recordedParty(null))).toMatchObject({
    kind: 'transcoded',
  })
})
