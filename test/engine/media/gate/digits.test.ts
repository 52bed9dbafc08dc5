import { expect, test } from 'vitest'
import {
  digitIn,
  type RelayDigit,
  relayDigitIn,
  RelayDigits,
} from '../../../../engine/media/gate/digits.ts'
import { noRules } from '../../../support/media-party.ts'
import { talk } from '../../../support/call-rig.ts'
import { startMediaRig } from '../../../support/media-rig.ts'
import { hangUp } from '../../call/steps.ts'
import type { MediaRules } from '../../../../schema/contracts/field-values.ts'
import type { SipPeer } from '../../../support/sip-peer.ts'

const relayed = 'application/dtmf-relay'

test.each([
  [relayed, 'Signal=5\r\nDuration=250\r\n', { code: '5', durationMs: 250 }],
  [relayed, 'Signal= #\r\nDuration= 100', { code: '#', durationMs: 100 }],
  ['Application/DTMF-Relay; charset=utf-8', 'signal=10\r\n', { code: '*', durationMs: 160 }],
  [relayed, 'Signal=d\r\nDuration=99999', { code: 'D', durationMs: 5_000 }],
  [relayed, 'Signal=1\r\nDuration=0', { code: '1', durationMs: 40 }],
  ['application/dtmf', '7', { code: '7', durationMs: 160 }],
  ['application/dtmf', '7\r\n', { code: '7', durationMs: 160 }],
  [relayed, 'Signal=16', undefined],
  [relayed, 'Signal=', undefined],
  [relayed, undefined, undefined],
  ['application/dtmf', '77', undefined],
  ['application/media_control+xml', '5', undefined],
])('%s %j', (type, body, digit) => {
  expect(digitIn({ 'content-type': type }, body)).toEqual(digit)
  expect(digitIn({}, body)).toBeUndefined()
})

const setRules = { ...noRules, dtmf: 'rfc4733' } as const
const info = { contentType: relayed, body: 'Signal=5\r\nDuration=200\r\n' }

test('a digit in INFO is played into the RTP of a party that takes RFC 4733, and answered', async () => {
  const rig = await startMediaRig({ setRules })
  const { caller, node, leg, nodeLeg } = await talk(rig)
  caller.request('INFO', leg, info)
  await caller.next('200 INFO')
  expect(rig.relay.requests.at(-1)).toMatchObject({
    command: 'play DTMF',
    'from-tag': 'uuid-1.0',
    code: '5',
    duration: 200,
  })
  // The other direction, and INFO about something else, pass.
  node.request('INFO', nodeLeg, info)
  caller.reply(await caller.next('INFO'), 200)
  await node.next('200 INFO')
  caller.request('INFO', leg, { contentType: 'text/plain', body: 'hello' })
  node.reply(await node.next('INFO'), 200)
  await caller.next('200 INFO')
  await hangUp(caller, leg, node)
  await rig.idle()
})

test('a digit for a relay that is out passes at once, after those that wait for it', async () => {
  const rig = await startMediaRig({ setRules })
  const { caller, node, leg } = await talk(rig)
  rig.relay.mode = 'not'
  caller.request('INFO', leg, info)
  await rig.settle()
  rig.relay.isAlive = false
  caller.request('INFO', leg, { ...info, body: 'Signal=6\r\nDuration=200\r\n' })
  await rig.advance(400)
  for (const digit of ['5', '6']) {
    const passed = await node.next('INFO')
    expect(passed.body).toContain(`Signal=${digit}`)
    node.reply(passed, 200)
    await caller.next('200 INFO')
  }
  caller.request('INFO', leg, info)
  node.reply(await node.next('INFO'), 200)
  await caller.next('200 INFO')
  const plays = rig.relay.commands.filter((command) => command === 'play DTMF')
  expect(plays, 'the relay was asked once').toHaveLength(1)
  await hangUp(caller, leg, node)
  await rig.advance(6_000)
  await rig.settle()
})

/** Expects that no digits reach these peers. */
async function hearsNothing(...peers: readonly SipPeer[]): Promise<void> {
  for (const peer of peers) await expect(peer.next('INFO')).rejects.toThrow('no INFO')
}

/** A call whose relay tells of digits. */
async function call(dtmf: MediaRules['dtmf'] = 'info') {
  const rig = await startMediaRig({ setRules: { ...noRules, dtmf } })
  const parties = await talk(rig)
  await rig.settle()
  const [session] = rig.media?.calls.sessionsOf('uuid-1') ?? []
  const press = (event: number, from = 'uuid-1.0', source = rig.relay.address): void => {
    const report = { callid: session?.id, source_tag: from, event, duration: 120 }
    rig.media?.digits.received(Buffer.from(JSON.stringify(report)), source)
  }
  const ignored = () => rig.media?.digits.telemetry()['media_digits_ignored_total']
  return { ...parties, rig, press, ignored }
}

test('a digit in RTP becomes INFO to a party that takes it, one after the other', async () => {
  const { rig, caller, node, leg, press, ignored } = await call()
  press(5)
  press(11)
  const first = await node.next('INFO')
  expect(first.get('content-type')).toBe('application/dtmf-relay')
  expect(first.body).toBe('Signal=5\r\nDuration=120\r\n')
  await hearsNothing(node)
  node.reply(first, 200)
  const second = await node.next('INFO')
  expect(second.body).toBe('Signal=#\r\nDuration=120\r\n')
  node.reply(second, 415)
  await rig.settle()
  // Call control does not hear of the answers, and no digit goes back.
  press(5, 'uuid-1.1')
  press(5, 'uuid-1.0', '192.0.2.66')
  await hearsNothing(caller, node)
  expect(ignored()).toBe(1)
  await hangUp(caller, leg, node)
  await rig.idle()
  press(5)
  await hearsNothing(node)
  expect(ignored()).toBe(2)
})

test.each(['auto', 'rfc4733'] as const)('not to a party with dtmf %s', async (dtmf) => {
  const { rig, caller, node, leg, press } = await call(dtmf)
  press(5)
  press(5, 'uuid-1.1')
  await hearsNothing(caller, node)
  await hangUp(caller, leg, node)
  await rig.idle()
})

/** As rtpengine 10.5.3.5 writes it. */
const report = {
  callid: 's-1',
  source_tag: 'uuid-1.0',
  tags: ['uuid-1.1', 'uuid-1.0'],
  type: 'DTMF',
  timestamp: 1_795_387_485,
  source_ip: '127.0.0.1',
  event: 5,
  duration: 160,
  volume: 10,
}
const reportedDigit = (change: object) =>
  relayDigitIn(Buffer.from(JSON.stringify({ ...report, ...change })))

test.each([
  [{}, { code: '5', durationMs: 160 }],
  [{ event: 10 }, { code: '*', durationMs: 160 }],
  [
    { event: 11, duration: 1 },
    { code: '#', durationMs: 40 },
  ],
  [
    { event: 15, duration: 60_000 },
    { code: 'D', durationMs: 5_000 },
  ],
])('%j', (change, digit) => {
  expect(reportedDigit(change)).toEqual({ session: 's-1', from: 'uuid-1.0', digit })
})

test.each([
  { event: 16 },
  { event: -1 },
  { event: 1.5 },
  { event: '5' },
  { duration: null },
  { callid: 7 },
  { source_tag: undefined },
])('%j is nothing', (change) => {
  expect(reportedDigit(change)).toBeUndefined()
})

test.each(['', '{', 'null', '[]', '5', '"DTMF"', '\u0000\uffff'])('%j is nothing', (text) => {
  expect(relayDigitIn(Buffer.from(text))).toBeUndefined()
})

function receiver() {
  const taken: RelayDigit[] = []
  const known = new Set(['known'])
  const time = { now: 0 }
  const digits = new RelayDigits({
    isRelay: (address) => address === '192.0.2.1',
    take: (digit) => known.has(digit.session) && taken.push(digit) > 0,
    now: () => time.now,
  })
  const receive = (callid: string, source = '192.0.2.1', rest: object = {}): void =>
    digits.received(
      Buffer.from(JSON.stringify({ callid, source_tag: 'a', event: 1, duration: 100, ...rest })),
      source,
    )
  const ignored = () => digits.telemetry()['media_digits_ignored_total']
  return { digits, receive, taken, known, time, ignored }
}

test('digits of relays are taken; what comes from elsewhere, or is too long, is ignored and counted', () => {
  const { receive, taken, ignored } = receiver()
  receive('known')
  receive('known', '::ffff:192.0.2.1')
  expect(taken).toHaveLength(2)
  receive('known', '192.0.2.2')
  receive('known', '192.0.2.1', { padding: 'x'.repeat(3_000) })
  receive('unknown')
  expect(taken).toHaveLength(2)
  expect(ignored()).toBe(3)
})

test('a relay that tells of thousands at once is taken from again a moment later', () => {
  const { receive, taken, time, ignored } = receiver()
  for (let n = 0; n < 2_500; n += 1) receive('known')
  expect([taken.length, ignored()]).toEqual([2_000, 500])
  time.now += 100
  receive('known')
  expect(taken).toHaveLength(2_001)
})
