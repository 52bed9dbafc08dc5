import { expect, test } from 'vitest'
import { mediaDecision } from '../../../engine/media/policy.ts'
import type { MediaPolicy, MediaRules } from '../../../schema/contracts/field-values.ts'
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
