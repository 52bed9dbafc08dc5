import { expect, test } from 'vitest'
import { mediaDecision } from '../../../engine/media/policy.ts'
import type { MediaPolicy } from '../../../schema/contracts/field-values.ts'
import {
  baresipOffer,
  chromiumOffer,
  party,
  srtpOffer,
  withoutEvents,
} from '../../support/media-party.ts'

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
const browser = party(chromiumOffer)

test.each<[string, Parameters<typeof mediaDecision>, unknown]>([
  ['an RTP phone and a carrier', [phone, party(), wishes], bypass],
  [
    'a browser and another browser',
    [browser, party(undefined, { isOnWebSocket: true }), wishes],
    bypass,
  ],
  ['a browser and a carrier', [browser, party(), wishes], automatic('profile')],
  [
    'an RTP phone and a browser',
    [phone, party(undefined, { isOnWebSocket: true }), wishes],
    automatic('profile'),
  ],
  ['an SRTP phone and an unknown one', [party(srtpOffer), party(), wishes], bypass],
  [
    'an SRTP phone and an RTP trunk',
    [party(srtpOffer), party(undefined, { rules: { profile: 'rtp' } }), wishes],
    automatic('profile'),
  ],
  [
    'an RTP phone and an SRTP trunk',
    [phone, party(undefined, { rules: { profile: 'srtp' } }), wishes],
    automatic('profile'),
  ],
  [
    'a browser and a node that speaks DTLS-SRTP',
    [browser, party(undefined, { rules: { profile: 'webrtc' } }), wishes],
    bypass,
  ],
  [
    'one behind NAT',
    [party(baresipOffer, { natAddress: '198.51.100.7' }), party(), wishes],
    automatic('nat'),
  ],
  [
    'a phone behind NAT that is called',
    [phone, party(undefined, { natAddress: '198.51.100.7' }), wishes],
    automatic('nat'),
  ],
  [
    'a call to be recorded',
    [phone, party(), { ...wishes, isRecorded: true }],
    automatic('recording'),
  ],
  [
    'a call that must not take place unrecorded, where a relay is preferred',
    [
      phone,
      party(undefined, { rules: { policy: 'prefer' } }),
      { ...wishes, isRecorded: true, mustBeRecorded: true },
    ],
    { kind: 'relay', isRequired: true, why: 'recording' },
  ],
  [
    'codecs that are all there, in the wanted order',
    [phone, party(undefined, { rules: { codecs: ['PCMA', 'pcmu'] } }), wishes],
    bypass,
  ],
  [
    'another order',
    [phone, party(undefined, { rules: { codecs: ['PCMU', 'PCMA'] } }), wishes],
    automatic('codecs'),
  ],
  [
    'a codec that is not there',
    [phone, party(undefined, { rules: { codecs: ['opus'] } }), wishes],
    automatic('codecs'),
  ],
  [
    'digits for one that takes INFO',
    [phone, party(undefined, { rules: { dtmf: 'info' } }), wishes],
    automatic('dtmf'),
  ],
  [
    'an INFO phone to an RFC 4733 trunk',
    [party(withoutEvents(baresipOffer)), party(undefined, { rules: { dtmf: 'rfc4733' } }), wishes],
    automatic('dtmf'),
  ],
  [
    'two that take INFO',
    [
      party(withoutEvents(baresipOffer), { rules: { dtmf: 'info' } }),
      party(undefined, { rules: { dtmf: 'info' } }),
      wishes,
    ],
    bypass,
  ],
  [
    'two that have RFC 4733',
    [phone, party(undefined, { rules: { dtmf: 'rfc4733' } }), wishes],
    bypass,
  ],
])('%s', (_, question, decision) => {
  expect(mediaDecision(...question)).toEqual(decision)
})
