import { expect, test } from 'vitest'
import { ActiveCalls } from '../../../engine/call/active-calls.ts'
import { Deadlines } from '../../../engine/call/deadlines.ts'
import { ManualTime } from '../../support/manual-time.ts'

function start() {
  const time = new ManualTime(0)
  const deadlines = new Deadlines({ now: time.now, schedule: time.schedule })
  const calls = new ActiveCalls({ now: time.now, deadlines, charging: { alive: () => undefined } })
  const begin = (callUuid: string) =>
    calls.begin({
      callUuid,
      callId: 'c',
      callerNumber: '1',
      callerName: null,
      calledNumber: '2',
      sourceAddress: '',
      startedAt: 0,
    })
  return { time, deadlines, calls, begin }
}

const at = (nodeId: number | null, carrierId: number | null) => ({
  setId: 1,
  nodeId,
  node: 'n',
  carrierId,
  carrier: 'c',
})

test('a call counts where it is, once, and nowhere after its end', () => {
  const { calls, begin } = start()
  const [one, two] = [begin('1'), begin('2')]
  calls.place(one, at(1, 5))
  calls.place(two, at(1, 5))
  calls.place(two, at(2, 5))
  expect([1, 2, 3].map((nodeId) => calls.countByNode(nodeId))).toEqual([1, 1, 0])
  expect(calls.countByCarrier(5)).toBe(2)
  calls.finish(one)
  calls.finish(one)
  calls.finish(two)
  expect([1, 2].map((nodeId) => calls.countByNode(nodeId))).toEqual([0, 0])
  expect(calls.countByCarrier(5)).toBe(0)
  expect(calls.size).toBe(0)
})

test('a call is listed and found by what the API shows of it', () => {
  const { calls, begin } = start()
  begin('1').state = 'RINGING'
  expect(calls.list()).toEqual([calls.find('1')])
  expect(calls.find('1')).toMatchObject({ state: 'RINGING', calledNumber: '2', customerId: null })
  expect(calls.find('2')).toBeUndefined()
})

test('of two reasons to end a call the first counts', () => {
  const { calls, begin } = start()
  const call = begin('1')
  const acted: string[] = []
  call.whenStopped((end) => acted.push(end.kind))
  expect(calls.hangUp('1', 16)).toBe('ending')
  expect(calls.hangUp('1', 17)).toBe('already_ending')
  expect(call.stop({ kind: 'hung-up', by: 'caller' })).toBe(false)
  expect(acted).toEqual(['cut'])
  expect(call.stopped).toMatchObject({ kind: 'cut', cause: 16 })
})

test('a drain of no calls is over at once; two drains end together', async () => {
  const { calls, begin } = start()
  await calls.drain(0)
  const call = begin('1')
  const drains = [calls.drain(1_000), calls.drain(1_000)]
  calls.finish(call)
  await Promise.all(drains)
  expect(calls.isDraining).toBe(true)
})

test('without calls no timer runs', () => {
  const { time, deadlines, calls, begin } = start()
  calls.finish(begin('1'))
  time.advance(60_000)
  expect(deadlines.size).toBe(0)
  expect(time.waiting).toBe(0)
})
