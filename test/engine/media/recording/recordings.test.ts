import { expect, onTestFinished, test } from 'vitest'
import type { MediaObserver, MediaSession } from '../../../../engine/media/call-media.ts'
import { Recordings } from '../../../../engine/media/recording/recordings.ts'
import type { EngineHappening } from '../../../../schema/contracts/engine-events.ts'
import type { CallRecording } from '../../../../schema/contracts/recordings.ts'
import type { CallRecord } from '../../../../schema/call-record.ts'
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
function open({ isRequired = false, wish = 'always' }: Options = {}) {
  const machine = new CallMachine()
  const { caller, callee } = machine.answered(null, candidate(1, 5_060))
  const call = machine.call()
  call.origin = {
    ...{ kind: 'extension', extensionId: 1, tenantId: 1, customerId: null },
    ...{ domain: 'acme.example', extension: '100', displayName: '' },
  }
  const place = `${root}/${(count += 1)}`
  const events: EngineHappening[] = []
  const observers: MediaObserver[] = []
  const time = new ManualTime(1_000_000)
  const recordings = new Recordings({
    places: { folder: place, spool: place, hasTone: false, isRequired },
    store: emptyStore(),
    webhooks: { wants: () => false, write: () => undefined },
    media: {
      sessionsOf: () => [],
      observe: (observer) => void observers.push(observer),
      closedSessions: () => undefined,
    },
    relays: { byName: () => undefined },
    calls: {
      find: (uuid) => {
        const { start, stampOffsetMs, answeredAt } = call
        return uuid === callUuid
          ? {
              ...{ callUuid, state: 'ACTIVE', direction: 'internal', startedAt: start.startedAt },
              ...{ callerNumber: '100', calledNumber: '1', answeredAt, stampOffsetMs },
              ...{ tenantId: 1, customerId: null, setId: null, node: null, carrier: null },
              peers: { caller: null, callee: null },
            }
          : undefined
      },
      list: () => [],
      call: (uuid) => (uuid === callUuid ? call : undefined),
      leg: (legId) => machine.world.legs.get(legId ?? ''),
    },
    extensionAt: () => ({ callRecording: wish }),
    isOurs: () => false,
    ...{ now: time.now, schedule: time.schedule },
    onEvent: (event) => void events.push(event),
    log: () => undefined,
  })
  onTestFinished(() => recordings.stop())
  const session: MediaSession = {
    ...{ id: 's', legs: [caller, callee], callUuids: [callUuid] },
    relay: {
      ...{ name: 'relay', isAlive: true, seenAt: 0 },
      request: () => Promise.resolve({ kind: 'ok', values: {} }),
    },
  }
  const end = { kind: 'hung-up', by: 'caller' } as const
  const record: CallRecord = { ...callRecord(call, end, 10_000), callUuid }
  const missed = () => recordings.telemetry()['recordings_missed_total']
  const connect = () => observers.forEach((each) => each.connected?.(session))
  return { recordings, call, record, missed, events, connect }
}

test('a call that is always recorded and was not is counted, and told of', () => {
  const { recordings, record, missed, events } = open()
  expect(recordings.mayRecord(callUuid)).toBe(true)
  recordings.ended(record)
  expect(missed()).toBe(1)
  expect(events).toMatchObject([{ type: 'recording.failed', callUuid }])
})

test('one that was recorded, that nothing has answered, or that is recorded on demand, is not missed', async () => {
  const recorded = open()
  recorded.recordings.mayRecord(callUuid)
  recorded.connect()
  await eventually(() => expect(recorded.recordings.telemetry()['recordings_active']).toBe(1))
  recorded.recordings.ended(recorded.record)
  const unanswered = open()
  unanswered.recordings.mayRecord(callUuid)
  unanswered.recordings.ended({ ...unanswered.record, answeredAt: null })
  const onDemand = open({ wish: 'on_demand' })
  onDemand.recordings.mayRecord(callUuid)
  onDemand.recordings.ended(onDemand.record)
  expect([recorded, unanswered, onDemand].map(({ missed }) => missed())).toEqual([0, 0, 0])
})

test('where that is set, it must be recorded, unless it is an emergency call', () => {
  expect(open().recordings.mustRecord(callUuid)).toBe(false)
  const strict = open({ isRequired: true })
  expect(strict.recordings.mustRecord(callUuid)).toBe(true)
  strict.call.isEmergency = true
  expect(strict.recordings.mustRecord(callUuid)).toBe(false)
  const onDemand = open({ isRequired: true, wish: 'on_demand' })
  expect(onDemand.recordings.mustRecord(callUuid)).toBe(false)
})
