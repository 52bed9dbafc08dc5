import { expect, test } from 'vitest'
import { ActiveCalls } from '../../../engine/call/active-calls.ts'
import { CallDeadlines } from '../../../engine/call/deadlines.ts'
import type { RevokedCall } from '../../../schema/contracts/charging.ts'
import type { MachineEvent } from '../../../engine/call/call-machine/protocol.ts'
import { nowhere } from '../../../engine/call/call-machine/state.ts'
import { sampleStart } from '../../support/call-machine.ts'
import { ManualTime } from '../../support/manual-time.ts'

function start(unserved?: 'storage_unavailable') {
  const time = new ManualTime(0)
  const deadlines = new CallDeadlines({ now: time.now, schedule: time.schedule })
  const revoked: RevokedCall[] = []
  const charging = { alive: () => revoked, running: () => undefined }
  const calls = new ActiveCalls({
    now: time.now,
    wallNow: time.wallNow,
    deadlines,
    charging,
    instanceName: 'sbc-1',
    onEvent: () => undefined,
    whyClosed: () => unserved,
  })
  const stopped: MachineEvent[] = []
  calls.attach((event) => {
    stopped.push(event)
    if (event.type === 'stop') Object.assign(calls.call(event.callUuid) ?? {}, { end: event.end })
  })
  const begin = (callUuid: string) => calls.begin({ start: sampleStart(callUuid) })
  return { time, deadlines, calls, begin, revoked, stopped }
}

const at = (nodeId: number | null, carrierId: number | null) => ({
  setId: 1,
  nodeId,
  node: 'n',
  carrierId,
  carrier: 'c',
  agentId: null,
})

test('a call counts where it is, once, and nowhere after its end', () => {
  const { calls, begin } = start()
  const [one, two] = [begin('1'), begin('2')]
  calls.counts.move(one, nowhere, at(1, 5))
  calls.counts.move(two, nowhere, at(1, 5))
  calls.counts.move(two, at(1, 5), at(2, 5))
  Object.assign(one, { place: at(1, 5) })
  Object.assign(two, { place: at(2, 5) })
  expect([1, 2, 3].map((nodeId) => calls.countByNode(nodeId))).toEqual([1, 1, 0])
  expect(calls.countByCarrier(5)).toBe(2)
  calls.finish(one)
  calls.finish(one)
  calls.finish(two)
  expect([1, 2].map((nodeId) => calls.countByNode(nodeId))).toEqual([0, 0])
  expect(calls.countByCarrier(5)).toBe(0)
  expect(calls.size).toBe(0)
})

test('a call is hung up once', () => {
  const { calls, begin, stopped } = start()
  const call = begin('1')
  expect(calls.hangUp('1', 16)).toBe('ending')
  expect(calls.hangUp('1', 17)).toBe('already_ending')
  expect(calls.hangUp('2', 17)).toBe('not_found')
  expect(stopped).toHaveLength(1)
  expect(call.end).toMatchObject({ kind: 'cut', by: 'api', cause: 16 })
})

test('a drain waits for live calls, not for records that cannot be stored', async () => {
  const { time, calls, begin } = start('storage_unavailable')
  const [over, live] = [begin('1'), begin('2')]
  calls.ended(over)
  let isDrained = false
  const drained = calls.drain(60_000).then(() => (isDrained = true))
  time.advance(2_000)
  await Promise.resolve()
  expect(isDrained).toBe(false)
  calls.ended(live)
  time.advance(600)
  await drained
  expect(calls.size).toBe(2)
})

const invited = (callerTag: string) =>
  ({ callerTag, offer: undefined, isReliable: false, isPhone: false }) as const

const dialog = (callId: string, localTag: string, remoteTag: string) => ({
  callId,
  localTag,
  remoteTag,
})

test('the party of a dialog is found by its Call-ID, without a look at the legs of other calls', () => {
  const { calls } = start()
  for (const uuid of ['1', '2', '3'])
    calls.beginInvited({ start: { ...sampleStart(uuid), callId: `c${uuid}` } }, invited(`t${uuid}`))
  calls.world.legs.values = () => {
    throw new Error('all legs are looked at')
  }
  const party = calls.partyIn(dialog('c2', 'mine', 't2'))
  expect([party?.call.start.callUuid, party?.side]).toEqual(['2', 'caller'])
  // A called party whose tag is not known yet.
  const called = calls.partyIn(dialog('c3', 'mine', 'another'))
  expect([called?.call.start.callUuid, called?.side]).toEqual(['3', 'callee'])
  expect(calls.partyIn(dialog('c4', 'mine', 't2'))).toBeUndefined()
})

test('a call that comes back with its Call-ID is another one, and its end leaves the first', () => {
  const { calls } = start()
  const [one] = ['1', '2'].map((uuid) => {
    const leg = calls.beginInvited({ start: { ...sampleStart(uuid), callId: 'c' } }, invited('t'))
    Object.assign(leg, { localTag: `mine-${uuid}` })
    return calls.call(uuid)
  })
  const uuidIn = (localTag: string) =>
    calls.partyIn(dialog('c', localTag, 't'))?.call.start.callUuid
  expect([uuidIn('mine-1'), uuidIn('mine-2')]).toEqual(['1', '2'])
  if (one) calls.finish(one)
  expect([calls.uuidOf('c'), uuidIn('mine-2')]).toEqual(['2', '2'])
  const two = calls.call('2')
  if (two) calls.finish(two)
  expect([calls.uuidOf('c'), uuidIn('mine-2')]).toEqual([undefined, undefined])
})
