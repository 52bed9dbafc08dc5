/** The flags of each pairing of profiles, on a real rtpengine: what each party gets. */
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { readDescription } from '../../engine/media/description.ts'
import { answerFlags, offerFlags } from '../../engine/media/gate/offers.ts'
import type { MediaParty } from '../../engine/media/call-media.ts'
import type { NgDictionary } from '../../engine/media/relay/relays.ts'
import {
  baresipOffer,
  chromiumOffer,
  party,
  srtpOffer,
  withoutEvents,
} from '../support/media-party.ts'
import { RtpEngine } from '../support/rtpengine.ts'

let relay: RtpEngine

beforeAll(async () => {
  relay = await RtpEngine.start()
})
afterAll(() => relay.stop())

async function ask(command: NgDictionary & { readonly command: string }): Promise<string> {
  const answer = await relay.request(command)
  if (answer.kind !== 'ok') throw new Error(JSON.stringify(answer))
  const { sdp } = answer.values
  return typeof sdp === 'string' ? sdp : ''
}

/** The offer to the answerer, and the offerer's share of the answer that `answer` makes of it. */
async function exchanged(
  [from, offer]: readonly [MediaParty, string],
  to: MediaParty,
  answer: (offered: string) => string,
): Promise<{ readonly offered: string; readonly answered: string }> {
  const session = { 'call-id': randomUUID(), 'from-tag': 'a', 'to-tag': 'b' }
  const describedBy = (who: MediaParty, sdp: string) => ({
    ...who,
    description: readDescription(sdp),
  })
  const offerer = describedBy(from, offer)
  const offered = await ask({
    command: 'offer',
    ...session,
    sdp: offer,
    ...offerFlags(offerer, to),
  })
  const sdp = answer(offered)
  const answered = await ask({
    command: 'answer',
    ...session,
    sdp,
    ...answerFlags(offerer, describedBy(to, sdp)),
  })
  await relay.request({ command: 'delete', ...session, 'delete delay': 0 })
  return { offered, answered }
}

/** A party's own lines, with the first audio format of the offer and its telephone events. */
function answerOf(template: string): (offered: string) => string {
  return (offered) => {
    const [, formats = ''] = /^m=audio \d+ \S+ ([\d ]+)/m.exec(offered) ?? []
    const events = [...offered.matchAll(/^a=rtpmap:(\d+) telephone-event/gm)].map(
      ([, id = '']) => id,
    )
    const chosen = [formats.split(' ')[0] ?? '', ...events.slice(0, 1)]
    const named = offered.match(/^a=(?:rtpmap|fmtp):(\d+) .*\r\n/gm) ?? []
    const own = template.replace(/^a=(?:rtpmap|fmtp|rtcp-fb):.*\r\n/gm, '')
    return (
      own
        .replace(/^(m=audio \d+ \S+) .*$/m, `$1 ${chosen.join(' ')}`)
        .replace('a=setup:actpass', 'a=setup:active')
        .replace(/^a=crypto:2 .*\r\n/m, '') +
      named.filter((line) => chosen.some((id) => line.includes(`:${id} `))).join('')
    )
  }
}

const offers = { rtp: baresipOffer, srtp: srtpOffer, webrtc: chromiumOffer }
const profiles = ['rtp', 'srtp', 'webrtc'] as const
const pairings = profiles.flatMap((from) => profiles.map((to) => [from, to] as const))

function expectProfile(sdp: string, profile: (typeof profiles)[number]): void {
  const protocol = { rtp: 'RTP/AVP', srtp: 'RTP/SAVP', webrtc: 'UDP/TLS/RTP/SAVPF' }[profile]
  expect(/^m=audio \d+ (\S+)/m.exec(sdp)?.[1]).toBe(protocol)
  const has = (line: RegExp) => line.test(sdp)
  expect(has(/^a=crypto:/m)).toBe(profile === 'srtp')
  expect(has(/^a=fingerprint:sha-256 /m)).toBe(profile === 'webrtc')
  expect(has(/^a=setup:(actpass|active|passive)/m)).toBe(profile === 'webrtc')
  expect(has(/^a=candidate:/m)).toBe(profile === 'webrtc')
  expect(has(/^a=ice-ufrag:/m)).toBe(profile === 'webrtc')
  expect(has(/^a=rtcp-mux/m)).toBe(profile === 'webrtc')
  expect(sdp).not.toMatch(/NULL_HMAC|F8_128/)
  // The relay's address alone.
  expect(sdp).not.toContain('192.168.1.7')
  expect(readDescription(sdp).address).toBe('127.0.0.1')
}

test.each(pairings)('%s calls %s: each gets its own profile', async (from, to) => {
  const { offered, answered } = await exchanged(
    [party(), offers[from]],
    party(undefined, { rules: { profile: to } }),
    answerOf(offers[to]),
  )
  expectProfile(offered, to)
  expectProfile(answered, from)
  const { codecs, hasTelephoneEvents } = readDescription(answered)
  expect(codecs).toHaveLength(1)
  expect(readDescription(offers[from]).codecs).toContain(codecs[0])
  expect(hasTelephoneEvents).toBe(true)
})

test('an allow list is what the callee is offered, in its order', async () => {
  const { offered, answered } = await exchanged(
    [party(), chromiumOffer],
    party(undefined, { rules: { profile: 'rtp', codecs: ['PCMA', 'opus'] } }),
    answerOf(baresipOffer),
  )
  expect(readDescription(offered)).toMatchObject({
    codecs: ['PCMA', 'opus'],
    hasTelephoneEvents: true,
  })
  expect(readDescription(answered).codecs).toEqual(['PCMA'])
})

test.each([
  ['G.711 to Opus', baresipOffer, null, ['opus'], 'PCMA'],
  ['Opus to G.711', chromiumOffer.replace(' 9 0 8 13', ''), null, ['PCMA'], 'opus'],
  ['what its own list allows', baresipOffer, ['PCMU'], ['opus'], 'PCMU'],
])('the relay transcodes %s', async (_, offer, own, wanted, spoken) => {
  const { offered, answered } = await exchanged(
    [party(undefined, { rules: { codecs: own } }), offer],
    party(undefined, { rules: { profile: 'rtp', codecs: wanted } }),
    answerOf(baresipOffer),
  )
  expect(readDescription(offered).codecs).toEqual(wanted)
  expect(readDescription(answered).codecs).toEqual([spoken])
  expect(readDescription(answered).hasTelephoneEvents).toBe(true)
})

test('events of RTP are taken from the offerer, and not offered to a party that takes INFO', async () => {
  const { offered, answered } = await exchanged(
    [party(), baresipOffer],
    party(undefined, { rules: { dtmf: 'info' } }),
    answerOf(withoutEvents(baresipOffer)),
  )
  expect(readDescription(offered).hasTelephoneEvents).toBe(false)
  expect(readDescription(answered).hasTelephoneEvents).toBe(true)
})

test('a party that takes RFC 4733 is offered events that the offerer does not have', async () => {
  const { offered, answered } = await exchanged(
    [party(), withoutEvents(baresipOffer)],
    party(undefined, { rules: { dtmf: 'rfc4733' } }),
    answerOf(baresipOffer),
  )
  expect(readDescription(offered).hasTelephoneEvents).toBe(true)
  expect(readDescription(answered).hasTelephoneEvents).toBe(false)
})

test('media of a party behind NAT is sent to where its packets come from', async () => {
  const session = { 'call-id': randomUUID(), 'from-tag': 'a', 'to-tag': 'b' }
  const sdp = baresipOffer.replaceAll('127.0.0.1', '192.168.1.7')
  const hidden = party(sdp, { natAddress: '127.0.0.9' })
  await ask({ command: 'offer', ...session, sdp, ...offerFlags(hidden, party()) })
  const known = JSON.stringify(await relay.query(session['call-id']))
  expect(known).toContain('127.0.0.9')
  expect(known).not.toContain('192.168.1.7')
  await relay.request({ command: 'delete', ...session, 'delete delay': 0 })
})
