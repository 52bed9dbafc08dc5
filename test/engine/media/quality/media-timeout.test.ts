import { expect, test } from 'vitest'
import { CallDeadlines } from '../../../../engine/call/deadlines.ts'
import type { MediaObserver, MediaSession } from '../../../../engine/media/call-media.ts'
import { MediaTimeout } from '../../../../engine/media/quality/media-timeout.ts'
import type { NgAnswer } from '../../../../engine/media/relay/relays.ts'
import { candidate } from '../../../support/call-rig.ts'
import { CallMachine } from '../../../support/call-machine.ts'
import { ManualTime } from '../../../support/manual-time.ts'

const start = 1_800_000_000_000

/**
 * An answered call through a relay whose clock is `aheadMs` ahead of ours, and what a test makes of
 * it.
 */
function openCall({ aheadMs = 0, timeoutMs = 60_000, isChargedToEnd = false } = {}) {
  const clock = { aheadMs }
  const time = new ManualTime(start)
  const machine = new CallMachine()
  machine.now = start
  const { caller, callee } = machine.answered(null, candidate(1, 5_060))
  const media = { packets: 0, lastAt: start, isLost: false }
  let stopAt = Infinity
  let asked = 0
  const relay = {
    name: '127.0.0.1:22222',
    isAlive: true,
    seenAt: start,
    ask: () => undefined,
    lostAt: undefined as number | undefined,
    request: (): Promise<NgAnswer> => {
      asked += 1
      if (media.isLost) return Promise.resolve({ kind: 'error', reason: 'Unknown call-id' })
      relay.seenAt = time.now()
      const flowing = Math.min(time.now(), stopAt)
      if (flowing > media.lastAt) {
        media.packets += Math.floor((flowing - media.lastAt) / 20)
        media.lastAt = flowing
      }
      const stream = {
        flags: ['RTP'],
        stats: { packets: media.packets },
        'last packet': Math.floor((media.lastAt + clock.aheadMs) / 1_000),
      }
      const party = { medias: [{ type: 'audio', streams: [stream] }] }
      return Promise.resolve({ kind: 'ok', values: { tags: { [caller]: party } } })
    },
  }
  const session: MediaSession = { id: 's', relay, legs: [caller, callee], callUuids: ['u'] }
  let sessions: readonly MediaSession[] = [session]
  const observers: MediaObserver[] = []
  const lost: number[] = []
  const timeout = new MediaTimeout({
    media: { sessionsOf: () => sessions, observe: (observer) => void observers.push(observer) },
    calls: {
      call: (callUuid) => machine.world.calls.get(callUuid),
      leg: (legId) => machine.world.legs.get(legId),
      list: () =>
        [...machine.world.calls.values()].map(({ start: { callUuid } }) => ({ callUuid })),
    },
    onLost: (callUuid, lastPacketAt) => {
      lost.push(lastPacketAt - start)
      machine.event({ type: 'mediaLost', callUuid, lastPacketAt })
      machine.world.calls.delete(callUuid)
    },
    deadlines: new CallDeadlines(time),
    now: time.now,
    wallNow: time.wallNow,
    timeoutMs,
    charge: isChargedToEnd ? 'end' : 'last_packet',
  })
  timeout.start()
  return {
    relay,
    media,
    lost,
    timeout,
    clock,
    call: machine.call(),
    describeCaller: (sdp: string) => {
      const leg = machine.world.legs.get(caller)
      if (leg) leg.media = sdp
    },
    asked: () => asked,
    connect: () => observers.forEach((each) => each.connected?.(session)),
    close: () => {
      sessions = []
      for (const each of observers) each.closed?.(session, undefined)
    },
    stopMedia: () => (stopAt = time.now()),
    advance: async (seconds: number) => {
      for (let passed = 0; passed < seconds; passed += 1) {
        time.advance(1_000)
        for (let turn = 0; turn < 5; turn += 1) await Promise.resolve()
      }
    },
  }
}

test('a call whose media flows goes on, and is looked at once in the time that it may be silent', async () => {
  const { connect, advance, asked, lost, timeout } = openCall()
  connect()
  await advance(600)
  expect(lost).toEqual([])
  expect(asked()).toBeLessThanOrEqual(12)
  expect(timeout.size).toBe(1)
})

test.each([
  ['as ours', 0],
  ['an hour ahead', 3_600_000],
  ['an hour behind', -3_600_000],
])(
  'a call whose media stops ends as of its last packet, with a clock %s',
  async (_name, aheadMs) => {
    const { connect, advance, stopMedia, lost, timeout } = openCall({ aheadMs })
    connect()
    await advance(100)
    stopMedia()
    await advance(58)
    expect(lost).toEqual([])
    await advance(64)
    expect(lost).toHaveLength(1)
    // The relay tells whole seconds.
    expect(lost[0]).toBeGreaterThanOrEqual(99_000)
    expect(lost[0]).toBeLessThanOrEqual(100_100)
    expect(timeout.size).toBe(0)
  },
)

test('a call without any media ends as of its answer', async () => {
  const { connect, advance, stopMedia, lost } = openCall()
  stopMedia()
  connect()
  await advance(63)
  expect(lost).toEqual([0])
})

test('where that is wished for, the silence is charged for, as carriers do', async () => {
  const { connect, advance, stopMedia, lost } = openCall({ isChargedToEnd: true })
  connect()
  await advance(1)
  stopMedia()
  await advance(130)
  expect(lost).toHaveLength(1)
  expect(lost[0]).toBeGreaterThanOrEqual(61_000)
})

test('on hold no media is expected; the time runs from the end of the hold', async () => {
  const { connect, advance, stopMedia, lost, call } = openCall()
  connect()
  await advance(10)
  stopMedia()
  call.display = 'HELD'
  await advance(500)
  expect(lost).toEqual([])
  call.display = 'ACTIVE'
  await advance(55)
  expect(lost).toEqual([])
  await advance(70)
  expect(lost).toHaveLength(1)
})

test('a party that has asked for silence in its INVITE is not cut, so that its call is paid for', async () => {
  const { connect, advance, stopMedia, lost, describeCaller } = openCall()
  const silent = ['v=0', 'c=IN IP4 192.0.2.1', 't=0 0', 'm=audio 4000 RTP/AVP 0', 'a=inactive', '']
  describeCaller(silent.join('\r\n'))
  stopMedia()
  connect()
  await advance(500)
  expect(lost).toEqual([])
  describeCaller(silent.join('\r\n').replace('inactive', 'sendrecv'))
  await advance(130)
  expect(lost).toHaveLength(1)
  expect(lost[0]).toBeGreaterThanOrEqual(430_000)
})

test('a clock that was set while media flows ends no call, nor its bill before the media', async () => {
  const { connect, advance, stopMedia, lost, clock, asked } = openCall()
  connect()
  await advance(100)
  clock.aheadMs = 3_600_000
  await advance(130)
  clock.aheadMs = 0
  await advance(200)
  expect(asked()).toBeLessThanOrEqual(12)
  stopMedia()
  await advance(55)
  expect(lost).toEqual([])
  await advance(70)
  expect(lost).toHaveLength(1)
  expect(lost[0]).toBeGreaterThanOrEqual(428_000)
})

test('a call of a relay that is dead ends as of its last sign of life', async () => {
  const { connect, advance, lost, relay } = openCall()
  connect()
  await advance(30)
  relay.seenAt = start + 30_000
  relay.isAlive = false
  await advance(58)
  expect(lost).toEqual([])
  await advance(5)
  expect(lost).toEqual([30_000])
})

test('a call of a relay that has begun anew ends as of the moment at which the relay was lost', async () => {
  const { connect, advance, lost, media, relay } = openCall()
  connect()
  await advance(100)
  relay.lostAt = start + 100_000
  media.isLost = true
  await advance(30)
  // Lost again meanwhile, without the call.
  relay.lostAt = start + 130_000
  await advance(61)
  expect(lost).toEqual([100_000])
})

test('a session that its relay has removed ends as of the last packet that is known', async () => {
  const { connect, advance, stopMedia, lost, media } = openCall({ timeoutMs: 600_000 })
  connect()
  await advance(301)
  stopMedia()
  // rtpengine's own timeout.
  await advance(60)
  media.isLost = true
  await advance(600)
  expect(lost).toHaveLength(1)
  expect(lost[0]).toBeGreaterThanOrEqual(300_000)
  expect(lost[0]).toBeLessThanOrEqual(301_100)
})

test('nothing is kept of a call whose sessions are closed; one of the process before is watched', async () => {
  const ended = openCall()
  ended.connect()
  ended.close()
  expect(ended.timeout.size).toBe(0)
  const { advance, stopMedia, lost } = openCall()
  stopMedia()
  await advance(130)
  expect(lost).toHaveLength(1)
})
