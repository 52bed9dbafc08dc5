import { beforeEach, expect, test } from 'vitest'
import type { Legs } from '../../../../engine/call/legs.ts'
import {
  ListeningLegs,
  type ListeningPort,
  answerListener,
} from '../../../../engine/call/monitoring/listening-legs.ts'
import type { LegCommandOf, LegEventData } from '../../../../engine/call/signalling.ts'
import { turnOfEventLoop } from '../../../support/waiting.ts'

const offer = 'v=0\r\no=- 1 1 IN IP4 10.0.0.9\r\ns=-\r\nc=IN IP4 10.0.0.9\r\nt=0 0\r\n'
const audio = 'm=audio 5000 RTP/AVP 0\r\n'
const target = { to: { address: '10.0.0.9', port: 5_000 }, payloadType: 0 }
const legId = 'spy.1'

/** The steps that were done, in order. */
let done: unknown[]
let events: LegEventData[]
let endpoint: { address: string; port: number } | undefined
/** Provisional responses of the leg. */
let trying: number[]
let legs: ListeningLegs

beforeEach(() => {
  done = []
  events = []
  trying = []
  endpoint = { address: '10.0.0.1', port: 4_000 }
  const listening: ListeningPort = {
    relayOf: () => 'relay:1',
    open: (id, listened) => {
      done.push(['open', id, listened])
      return Promise.resolve(endpoint)
    },
    play: (id, what) => void done.push(['play', id, what]),
    close: (id) => void done.push(['close', id]),
  }
  const pass =
    (name: string) =>
    (...values: unknown[]): undefined =>
      void done.push([name, ...values])
  const others = {
    receive: pass('receive'),
    save: pass('save'),
    invite: pass('invite'),
    perform: pass('perform'),
    forget: pass('forget'),
    answerBye: pass('answerBye'),
    restore: () => true,
  } satisfies Legs
  legs = new ListeningLegs(others, listening, (event) => {
    if (event.type === 'provisional') trying.push(event.response.status)
    else events.push(event)
  })
})

async function invite(body = offer + audio): Promise<void> {
  const listened = { callUuid: 'call', side: 'both' } as const
  const callee = { kind: 'listener', uri: 'relay:10.0.0.5:2223', listened } as const
  const sent = { uri: callee.uri, nextHop: undefined, headers: {}, credentials: undefined }
  legs.invite(legId, { ...sent, body }, undefined, { sdpOwner: 'spy.0', callee })
  await turnOfEventLoop()
}

const request = (changes: Partial<LegCommandOf<'request'>>): void =>
  legs.perform({
    type: 'request',
    legId,
    transactionId: 't',
    method: 'INVITE',
    headers: {},
    body: undefined,
    sdpOwner: undefined,
    noAck: false,
    ...changes,
  })

test('a supervisor’s offer is answered with what it is to hear', async () => {
  await invite()
  expect(done).toEqual([
    ['open', legId, { callUuid: 'call', side: 'both' }],
    ['play', legId, target],
  ])
  // Its answer comes from where its media comes from: it is behind no NAT.
  const response = { status: 200, peer: '10.0.0.1:4000' }
  expect(events).toMatchObject([{ type: 'answered', legId, response }])
  expect(events[0]).toHaveProperty('response.body', expect.stringContaining('m=audio 4000 '))
})

test('a phone that holds and resumes is sent nothing meanwhile', async () => {
  await invite()
  request({ body: `${offer}${audio}a=sendonly\r\n` })
  request({ transactionId: 'u', body: offer + audio })
  expect(done.slice(2)).toEqual([
    ['play', legId, undefined],
    ['play', legId, target],
  ])
  expect(events.slice(1)).toMatchObject([
    { type: 'response', transactionId: 't', response: { status: 200 }, owesAck: false },
    { type: 'response', transactionId: 'u', response: { status: 200 } },
  ])
})

test.each(['bye', 'release', 'forget'] as const)('%s closes it, once', async (how) => {
  await invite()
  if (how === 'forget') legs.forget(legId)
  else legs.perform({ type: how, legId, headers: {} })
  legs.forget(legId)
  expect(done.filter((entry) => Array.isArray(entry) && entry[0] === 'close')).toHaveLength(1)
})

test('where nothing can be heard, or in no codec, the supervisor is refused', async () => {
  await invite(`${offer}m=audio 5000 RTP/AVP 96\r\n`)
  endpoint = undefined
  await invite()
  expect(events).toMatchObject([{ response: { status: 488 } }, { response: { status: 503 } }])
  expect(done.filter((entry) => Array.isArray(entry) && entry[0] === 'close')).toHaveLength(2)
})

const from = { address: '10.0.0.1', port: 4_000 }

const offerOf = (lines: readonly string[], direction = 'sendrecv'): string =>
  [
    'v=0',
    'o=- 1 1 IN IP4 10.0.0.9',
    's=-',
    'c=IN IP4 10.0.0.9',
    't=0 0',
    ...lines,
    `a=${direction}`,
    '',
  ].join('\r\n')

const phone = ['m=audio 5000 RTP/AVP 9 8 0 101', 'a=rtpmap:101 telephone-event/8000']

test('a supervisor gets the G.711 that it prefers', () => {
  const answer = answerListener(offerOf(phone), from)
  expect(answer?.target).toEqual({ to: { address: '10.0.0.9', port: 5_000 }, payloadType: 8 })
  expect(answer?.sdp).toContain('c=IN IP4 10.0.0.1\r\n')
  expect(answer?.sdp).toContain('m=audio 4000 RTP/AVP 8\r\na=rtpmap:8 PCMA/8000\r\n')
  expect(answer?.sdp).toContain('a=sendrecv\r\n')
})

test.each([
  ['sendonly', 'recvonly'],
  ['inactive', 'inactive'],
])('a supervisor that holds (%s) is sent nothing', (direction, answered) => {
  const answer = answerListener(offerOf(phone, direction), from)
  expect(answer).toMatchObject({ target: undefined })
  expect(answer?.sdp).toContain(`a=${answered}\r\n`)
})

test.each([[['m=audio 5000 RTP/AVP 9']], [['m=audio 0 RTP/AVP 0']], [['m=video 5000 RTP/AVP 0']]])(
  'an offer without G.711 cannot be answered: %j',
  (lines) => expect(answerListener(offerOf(lines), from)).toBeUndefined(),
)
