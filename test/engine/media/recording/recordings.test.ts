import { expect, onTestFinished, test } from 'vitest'
import type { MediaObserver, MediaSession } from '../../../../engine/media/call-media.ts'
import type { NgAnswer } from '../../../../engine/media/relay/relays.ts'
import { Recordings } from '../../../../engine/media/recording/recordings.ts'
import type { EngineHappening } from '../../../../schema/contracts/engine.ts'
import type { ActiveCall, CallRecording } from '../../../../schema/contracts/calls.ts'
import { extension101 } from '../../../support/transfer-rig.ts'
import type { CallRecord } from '../../../../schema/contracts/call-record.ts'
import { toColumns } from '../../../../schema/records/stored-record.ts'
import { execute, first } from '../../../../schema/sql/query.ts'
import { callRecord } from '../../../../engine/call/cdr/cdr.ts'
import { CallMachine } from '../../../support/call-machine.ts'
import { candidate } from '../../../support/call-rig.ts'
import { emptyStore } from '../../../support/empty-store.ts'
import { ManualTime } from '../../../support/manual-time.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import { eventually } from '../../../support/waiting.ts'

const callUuid = '019ab0c4-1e7f-7a37-9d1f-0f6a5f5e9c11'
const root = temporaryFolder()
let count = 0

interface Options {
  readonly isRequired?: boolean
  readonly wish?: CallRecording
}

/** An answered call of an extension that wants all of its calls recorded. */
async function open({ isRequired = false, wish = 'always' }: Options = {}) {
  const machine = new CallMachine()
  const { caller, callee } = machine.answered(null, candidate(1, 5_060))
  const call = machine.call()
  call.origin = extension101
  const place = `${root}/${(count += 1)}`
  const events: EngineHappening[] = []
  const store = emptyStore()
  const observers: MediaObserver[] = []
  const time = new ManualTime(1_000_000)
  const recordings = new Recordings({
    settings: { folder: place, spool: place, hasTone: false, isRequired },
    store,
    webhooks: { wants: () => false, writeAll: () => Promise.resolve() },
    media: {
      sessionsOf: () => [],
      observe: (observer) => void observers.push(observer),
      closedSessions: () => undefined,
    },
    relays: { byName: () => undefined },
    calls: {
      // As far as it is read.
      find: (uuid) =>
        uuid === callUuid ? ({ callUuid, answeredAt: 0, tenantId: 1 } as ActiveCall) : undefined,
      list: () => [],
      call: (uuid) => (uuid === callUuid ? call : undefined),
      leg: (legId) => machine.world.legs.get(legId ?? ''),
    },
    extensionAt: () => ({ callRecording: wish }),
    isOurs: () => false,
    now: time.now,
    schedule: time.schedule,
    onEvent: (event) => void events.push(event),
    log: () => undefined,
  })
  onTestFinished(() => recordings.stop())
  const relay: { answer: NgAnswer } = { answer: { kind: 'ok', values: {} } }
  const session: MediaSession = {
    id: 's',
    legs: [caller, callee],
    callUuids: [callUuid],
    relay: {
      name: 'relay',
      isAlive: true,
      seenAt: 0,
      ask: () => undefined,
      request: () => Promise.resolve(relay.answer),
    },
  }
  const end = { kind: 'hung-up', by: 'caller' } as const
  const record: CallRecord = { ...callRecord(call, end, 10_000), callUuid }
  const missed = () => recordings.telemetry()['recordings_missed_total']
  const connect = () => observers.forEach((each) => each.connected?.(session))
  const row = toColumns(record, { costMicros: 0, currency: null })
  await execute(store, store.db.insertInto('cdr').values(row))
  const errorOf = async () =>
    (await first(store, store.db.selectFrom('cdr').select('recording_error')))?.recording_error
  return { recordings, call, record, missed, events, connect, errorOf, relay }
}

test('the call of a supervisor is not recorded, not even on demand', async () => {
  const { recordings, call } = await open()
  Object.assign(call.start, { sourceAddress: 'api', calledNumber: `spy:${callUuid}` })
  expect(recordings.mayRecord(callUuid)).toBe(false)
  expect(await recordings.control(callUuid, 'start')).toEqual({ kind: 'recording_not_allowed' })
})

test('a call that is always recorded and was not is counted, and told of', async () => {
  const { recordings, record, missed, events, errorOf } = await open()
  expect(recordings.mayRecord(callUuid)).toBe(true)
  recordings.ended(record)
  expect(missed()).toBe(1)
  expect(events).toMatchObject([{ type: 'recording.failed', callUuid }])
  expect(await errorOf()).toBe('not_relayed')
})

test('one that was recorded, that nothing has answered, or that is recorded on demand, is not missed', async () => {
  const recorded = await open()
  recorded.recordings.mayRecord(callUuid)
  recorded.connect()
  await eventually(() => expect(recorded.recordings.telemetry()['recordings_active']).toBe(1))
  recorded.recordings.ended(recorded.record)
  const unanswered = await open()
  unanswered.recordings.mayRecord(callUuid)
  unanswered.recordings.ended({ ...unanswered.record, answeredAt: null })
  const onDemand = await open({ wish: 'on_demand' })
  onDemand.recordings.mayRecord(callUuid)
  onDemand.recordings.ended(onDemand.record)
  const all = [recorded, unanswered, onDemand]
  expect(all.map(({ missed }) => missed())).toEqual([0, 0, 0])
  expect(await Promise.all(all.map(({ errorOf }) => errorOf()))).toEqual([null, null, null])
})

test('where that is set, it must be recorded, unless it is an emergency call', async () => {
  expect((await open()).recordings.mustRecord(callUuid)).toBe(false)
  const strict = await open({ isRequired: true })
  expect(strict.recordings.mustRecord(callUuid)).toBe(true)
  strict.call.isEmergency = true
  expect(strict.recordings.mustRecord(callUuid)).toBe(false)
  const onDemand = await open({ isRequired: true, wish: 'on_demand' })
  expect(onDemand.recordings.mustRecord(callUuid)).toBe(false)
})
