import { expect, test } from 'vitest'
import type { MediaSession } from '../../../../engine/media/call-media.ts'
import { Recorder } from '../../../../engine/media/recording/recorder.ts'
import type { NgAnswer, NgRequest, Relay } from '../../../../engine/media/relay/relays.ts'
import type { ActiveCall, CallRecording } from '../../../../schema/contracts/calls.ts'
import type { EngineHappening } from '../../../../schema/contracts/engine.ts'
import { ManualTime } from '../../../support/manual-time.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import { eventually, turnOfEventLoop } from '../../../support/waiting.ts'
import {
  UnfinishedRecordings,
  type UnfinishedRecording,
} from '../../../../engine/media/recording/unfinished-recordings.ts'

const callUuid = '019ab0c4-1e7f-7a37-9d1f-0f6a5f5e9c11'
const otherUuid = '019ab0c4-1e7f-7a37-9d1f-0f6a5f5e9c12'
const startOfTime = 1_000_000

const root = temporaryFolder()
let count = 0

const ok: NgAnswer = { kind: 'ok', values: {} }

interface Options {
  readonly wish?: CallRecording
  readonly hasTone?: boolean
  readonly folder?: string
  readonly answer?: (command: NgRequest) => NgAnswer | Promise<NgAnswer> | undefined
}

function open({ wish = 'always', hasTone = false, folder, answer }: Options = {}) {
  const time = new ManualTime(startOfTime)
  const asked: NgRequest[] = []
  const relay: Relay = {
    name: '127.0.0.1:2223',
    isAlive: true,
    seenAt: 0,
    ask: () => undefined,
    request: async (command) => {
      asked.push(command)
      const given = await answer?.(command)
      if (given) return given
      return command.command === 'query' ? { kind: 'ok', values: { tags } } : ok
    },
  }
  // As far as it is read.
  const call = { callUuid, answeredAt: 0, tenantId: 3 } as ActiveCall
  const live = new Map([[callUuid, call]])
  const sessions: MediaSession[] = []
  const elsewhere = new Set<string>()
  const events: EngineHappening[] = []
  const logged: string[] = []
  const finished: UnfinishedRecording[] = []
  const place = folder ?? `${root}/${(count += 1)}`
  const unfinished = new UnfinishedRecordings(place)
  const recorder = new Recorder({
    unfinished,
    hasTone,
    now: time.now,
    schedule: time.schedule,
    media: { sessionsOf: (uuid) => sessions.filter((each) => each.callUuids.includes(uuid)) },
    relays: { byName: (name) => (name === relay.name ? relay : undefined) },
    calls: {
      find: (uuid) => live.get(uuid),
      list: () => [...live.values()],
      wishOf: (uuid) => (uuid === callUuid ? wish : 'never'),
      isRecordedElsewhere: (uuid) => elsewhere.has(uuid),
      sideOf: (uuid, legId) =>
        legId === `${uuid}.1` ? 'caller' : legId === `${uuid}.2` ? 'callee' : undefined,
    },
    finish: (recording) => void finished.push(recording),
    endOf: () => Promise.resolve(startOfTime + 500),
    onEvent: (event) => void events.push(event),
    log: (_, message) => void logged.push(message),
  })
  const session = (changes: Partial<MediaSession> = {}): MediaSession => ({
    id: 'tg-1',
    relay,
    legs: [`${callUuid}.1`, `${callUuid}.2`],
    callUuids: [callUuid],
    ...changes,
  })
  const commands = () => asked.map(({ command }) => command)
  return {
    recorder,
    time,
    asked,
    commands,
    live,
    call,
    sessions,
    events,
    logged,
    finished,
    unfinished,
    session,
    place,
    elsewhere,
    types: () => events.map(({ type }) => type),
    isOn: () => recorder.isRecording(callUuid),
  }
}

const stream = (port: number) => ({
  medias: [{ streams: [{ 'local address': '10.0.0.1', 'local port': port }] }],
})
const tags = {
  [`${callUuid}.1`]: stream(4_000),
  [`${callUuid}.2`]: stream(4_002),
  [`${otherUuid}.1`]: stream(4_004),
}

test('a call is recorded from its answer to its end, and each party is known by its port', async () => {
  const { recorder, session, isOn, asked, time, finished, types } = open()
  const one = session()
  recorder.connected(one)
  await eventually(() => expect(isOn()).toBe(true))
  expect(asked).toEqual([
    { command: 'query', 'call-id': 'tg-1' },
    { command: 'start recording', 'call-id': 'tg-1', 'from-tag': `${callUuid}.1` },
  ])
  time.advance(5_000)
  await recorder.closed(one)
  recorder.ended(callUuid, startOfTime + 5_000, 4)
  await eventually(() => expect(finished).toHaveLength(1))
  expect(finished).toEqual([
    {
      callUuid,
      tenantId: 4,
      startedAt: startOfTime,
      endedAt: startOfTime + 5_000,
      isOn: false,
      tracks: [
        {
          sessionId: 'tg-1',
          relay: '127.0.0.1:2223',
          startedAt: startOfTime,
          caller: [{ address: '10.0.0.1', port: 4_000 }],
          callee: [{ address: '10.0.0.1', port: 4_002 }],
        },
      ],
    },
  ])
  expect(asked.at(-1)?.command).toBe('stop recording')
  expect(types()).toEqual(['recording.started', 'recording.stopped'])
  expect(recorder.size).toBe(0)
})

test.each(['never', 'on_demand'] as const)(
  'a call of extensions that say %s is not recorded by itself',
  (wish) => {
    const { recorder, session, asked } = open({ wish })
    recorder.connected(session())
    expect(asked).toEqual([])
  },
)

test('on demand it is started, stopped and started again', async () => {
  const { recorder, session, sessions, commands, time, isOn, finished, types } = open({
    wish: 'on_demand',
  })
  sessions.push(session())
  recorder.connected(session())
  expect(await recorder.control(callUuid, 'stop')).toEqual({ kind: 'stopped' })
  expect(await recorder.control(callUuid, 'start')).toEqual({ kind: 'recording' })
  expect(await recorder.control(callUuid, 'start')).toEqual({ kind: 'recording' })
  expect(isOn()).toBe(true)
  time.advance(2_000)
  expect(await recorder.control(callUuid, 'stop')).toEqual({ kind: 'stopped' })
  expect(isOn()).toBe(false)
  time.advance(3_000)
  expect(await recorder.control(callUuid, 'start')).toEqual({ kind: 'recording' })
  expect(await recorder.control(callUuid, 'stop')).toEqual({ kind: 'stopped' })
  await recorder.closed(session())
  recorder.ended(callUuid, startOfTime + 9_000, 3)
  await eventually(() => expect(finished).toHaveLength(1))
  expect(finished[0]).toMatchObject({ startedAt: startOfTime, endedAt: startOfTime + 5_000 })
  expect(finished[0]?.tracks).toHaveLength(1)
  expect(commands().filter((command) => command !== 'query')).toEqual([
    'start recording',
    'stop recording',
    'start recording',
    'stop recording',
    'stop recording',
  ])
  expect(types()).toEqual([
    'recording.started',
    'recording.stopped',
    'recording.started',
    'recording.stopped',
  ])
})

test('a stop that does not reach all sessions of a call is none, and may be repeated', async () => {
  let isReached = false
  const { recorder, session, sessions, isOn, types } = open({
    wish: 'on_demand',
    answer: (request) =>
      request.command === 'stop recording' && request['call-id'] === 'tg-2' && !isReached
        ? { kind: 'timeout' }
        : undefined,
  })
  sessions.push(session(), session({ id: 'tg-2' }))
  await recorder.control(callUuid, 'start')
  expect(await recorder.control(callUuid, 'stop')).toEqual({ kind: 'relay_failed' })
  expect([isOn(), types().includes('recording.stopped')]).toEqual([true, false])
  isReached = true
  expect(await recorder.control(callUuid, 'stop')).toEqual({ kind: 'stopped' })
  expect([isOn(), types().at(-1)]).toEqual([false, 'recording.stopped'])
})

test('what was stopped before a crash stays stopped, and may be started again', async () => {
  const first = open({ wish: 'on_demand' })
  first.sessions.push(first.session())
  await first.recorder.control(callUuid, 'start')
  await first.recorder.control(callUuid, 'stop')
  const next = open({ folder: first.place, wish: 'on_demand' })
  next.sessions.push(next.session())
  await next.recorder.resume()
  expect([next.isOn(), next.asked]).toEqual([false, []])
  expect(await next.recorder.control(callUuid, 'start')).toEqual({ kind: 'recording' })
})

test('why a recording cannot be started is said', async () => {
  const { recorder, session, sessions, live, call } = open({ wish: 'on_demand' })
  expect(await recorder.control(callUuid, 'start')).toEqual({ kind: 'call_not_anchored' })
  expect(await recorder.control(otherUuid, 'start')).toEqual({ kind: 'unknown_call' })
  live.set(otherUuid, { ...call, callUuid: otherUuid })
  expect(await recorder.control(otherUuid, 'start')).toEqual({ kind: 'recording_not_allowed' })
  live.set(otherUuid, { ...call, callUuid: otherUuid, answeredAt: null })
  expect(await recorder.control(otherUuid, 'start')).toEqual({ kind: 'call_not_answered' })
  sessions.push(session())
  const refusing = open({ wish: 'on_demand', answer: () => ({ kind: 'timeout' }) })
  refusing.sessions.push(refusing.session())
  expect(await refusing.recorder.control(callUuid, 'start')).toEqual({ kind: 'relay_failed' })
  expect(refusing.recorder.size).toBe(0)
})

test('after a transfer the recording of the first call goes on with the new party', async () => {
  const { recorder, session, isOn, finished } = open()
  recorder.connected(session())
  await eventually(() => expect(isOn()).toBe(true))
  const moved = session({
    id: 'tg-2',
    legs: [`${otherUuid}.1`, `${callUuid}.1`],
    callUuids: [otherUuid, callUuid],
  })
  await recorder.closed(session())
  recorder.connected(moved)
  await recorder.closed(moved)
  recorder.ended(callUuid, startOfTime, 3)
  await eventually(() => expect(finished).toHaveLength(1))
  const [, second] = finished[0]?.tracks ?? []
  expect(second).toMatchObject({
    caller: [{ address: '10.0.0.1', port: 4_000 }],
    callee: [{ address: '10.0.0.1', port: 4_004 }],
  })
})

test('both parties hear a tone, where that is wished for', async () => {
  const { recorder, session, asked } = open({ hasTone: true })
  recorder.connected(session())
  const played = () => asked.filter(({ command }) => command === 'play media')
  await eventually(() => expect(played()).toHaveLength(2))
  expect(played().map((request) => request['from-tag'])).toEqual([`${callUuid}.1`, `${callUuid}.2`])
})

test('the next process goes on with a call that lives, and finishes one that does not', async () => {
  const first = open()
  first.recorder.connected(first.session())
  await eventually(async () => expect(await first.unfinished.all()).toHaveLength(1))

  const next = open({ folder: first.place })
  next.sessions.push(next.session())
  await next.recorder.resume()
  expect([next.isOn(), next.asked]).toEqual([true, []])
  await next.recorder.closed(next.session())
  next.recorder.ended(callUuid, startOfTime + 7_000, 3)
  await eventually(() => expect(next.finished).toHaveLength(1))
  expect(next.finished[0]).toMatchObject({ startedAt: startOfTime, endedAt: startOfTime + 7_000 })

  const last = open({ folder: first.place })
  last.live.clear()
  await first.unfinished.write({ ...(next.finished[0] as UnfinishedRecording), endedAt: null })
  await last.recorder.resume()
  expect(last.commands()).toEqual(['stop recording'])
  expect(last.finished[0]).toMatchObject({ callUuid, endedAt: startOfTime + 500 })
})

test('what another instance records is not recorded twice, and its calls count as recorded', async () => {
  const { recorder, session, live, call, asked, elsewhere } = open()
  live.set(otherUuid, { ...call, callUuid: otherUuid })
  elsewhere.add(otherUuid)
  recorder.connected(
    session({ legs: [`${callUuid}.2`, `${otherUuid}.1`], callUuids: [callUuid, otherUuid] }),
  )
  await turnOfEventLoop()
  expect(asked).toEqual([])
  expect(recorder.ended(callUuid, startOfTime, 3)).toBe(true)
  expect(recorder.ended(otherUuid, startOfTime, 3)).toBe(true)
})
