import { beforeEach, expect, test } from 'vitest'
import type { LiveLeg } from '../../../../engine/call/call-machine/state.ts'
import type { MediaSession } from '../../../../engine/media/call-media.ts'
import type { NgAnswer, NgRequest, Relay } from '../../../../engine/media/relay/relays.ts'
import { Listening, type ListeningDeps } from '../../../../engine/media/spy/listening.ts'
import type { Mixers } from '../../../../engine/media/spy/mixer-thread.ts'
import { turnOfEventLoop } from '../../../support/waiting.ts'

const offered =
  'v=0\r\no=- 1 1 IN IP4 10.0.0.5\r\ns=-\r\nt=0 0\r\n' +
  'm=audio 41000 RTP/AVP 0\r\nc=IN IP4 10.0.0.5\r\na=sendonly\r\n' +
  'm=video 41002 RTP/AVP 96\r\nc=IN IP4 10.0.0.5\r\na=sendonly\r\n' +
  'm=audio 41004 RTP/AVP 8\r\nc=IN IP4 10.0.0.5\r\na=sendonly\r\n'

let asked: NgRequest[]
let answerTo: (request: NgRequest) => NgAnswer
let sessions: MediaSession[]
let mixed: unknown[]
let isMixing: boolean
let listening: Listening

const relay: Relay = {
  name: '10.0.0.5:22222',
  isAlive: true,
  seenAt: 0,
  ask: () => undefined,
  request: (request) => {
    asked.push(request)
    return Promise.resolve(answerTo(request))
  },
}

const session = (id: string, callUuids: readonly string[] = ['call']): MediaSession => ({
  id,
  relay,
  callUuids,
  legs: ['call.0', 'call.1'],
})

const mixers: Mixers = {
  open: (id, host) => {
    mixed.push(['open', id, host])
    return Promise.resolve(isMixing ? { address: '10.0.0.1', port: 4_000 } : undefined)
  },
  setSources: (id, sources) => void mixed.push(['sources', id, sources]),
  play: (id, target) => void mixed.push(['play', id, target]),
  close: (id) => void mixed.push(['close', id]),
}

/** The legs of `call`; those of other calls are of no side that is known here. */
const calls: ListeningDeps['calls'] = {
  leg: (legId) =>
    legId?.startsWith('call.') === true
      ? // A leg has many fields; these two are read.
        ({ callUuid: 'call', side: legId === 'call.0' ? 'caller' : 'callee' } as LiveLeg)
      : undefined,
}

beforeEach(() => {
  asked = []
  mixed = []
  isMixing = true
  sessions = [session('one')]
  answerTo = ({ command }) => ({
    kind: 'ok',
    values: command === 'subscribe request' ? { sdp: offered } : {},
  })
  listening = new Listening({
    media: {
      sessionsOf: (callUuid) => sessions.filter(({ callUuids }) => callUuids.includes(callUuid)),
      observe: () => undefined,
      closedSessions: () => undefined,
    },
    mixers,
    calls,
  })
})

const from = (port: number, address = '10.0.0.5') => ({ port, addresses: [address, '10.0.0.5'] })

const open = (side: 'caller' | 'callee' | 'both' = 'both') =>
  listening.open('spy.1', { callUuid: 'call', side }, () => undefined)

test('both parties of a call are subscribed to, in PCMU, and sent to the mixer', async () => {
  expect(listening.relayOf('call')).toBe('10.0.0.5:22222')
  expect(await open()).toEqual({ address: '10.0.0.1', port: 4_000 })
  expect(asked).toMatchObject([
    {
      command: 'subscribe request',
      'call-id': 'one',
      'to-tag': 'spy.1',
      flags: ['all'],
      'transport-protocol': 'RTP/AVP',
      ICE: 'remove',
      DTLS: 'off',
    },
    {
      command: 'subscribe answer',
      'call-id': 'one',
      'to-tag': 'spy.1',
      flags: ['allow transcoding'],
    },
  ])
  const answer = 'm=audio 4000 RTP/AVP 0\r\na=rtpmap:0 PCMU/8000\r\na=recvonly\r\n'
  const media = expect.stringContaining(`${answer}m=video 0 RTP/AVP 0\r\n${answer}`)
  expect(asked[1]).toHaveProperty('sdp', media)
  expect(mixed).toEqual([
    ['open', 'spy.1', '10.0.0.5'],
    ['sources', 'spy.1', [from(41_000), from(41_004)]],
  ])
})

test('one party is subscribed to by its tag', async () => {
  await open('callee')
  expect(asked[0]).toMatchObject({ 'from-tags': ['call.1'] })
  expect(asked[0]).not.toHaveProperty('flags')
})

test('at its end the subscription is taken back, and the mixer closed', async () => {
  await open()
  listening.close('spy.1')
  listening.close('spy.1')
  await turnOfEventLoop()
  expect(asked.at(-1)).toEqual({ command: 'unsubscribe', 'call-id': 'one', 'to-tag': 'spy.1' })
  expect(asked).toHaveLength(3)
  expect(mixed).toContainEqual(['close', 'spy.1'])
})

test.each([
  ['subscribe request', 1],
  ['subscribe answer', 3],
])('a relay that refuses the %s is not listened to, and keeps nothing', async (command, count) => {
  answerTo = (request) =>
    request.command === command
      ? { kind: 'error', reason: 'no' }
      : { kind: 'ok', values: { sdp: offered } }
  expect(await open()).toBeUndefined()
  expect(mixed).toContainEqual(['close', 'spy.1'])
  expect(asked).toHaveLength(count)
})

test('without a session, or without a mixer, nothing is asked', async () => {
  isMixing = false
  expect(await open()).toBeUndefined()
  sessions = []
  expect(listening.relayOf('call')).toBeUndefined()
  expect(await open()).toBeUndefined()
  expect(asked).toEqual([])
})
