import { expect, test } from 'vitest'
import { callRecord } from '../../../../engine/call/cdr/cdr.ts'
import { CallMachine } from '../../../support/call-machine.ts'
import { candidate } from '../../../support/call-rig.ts'

function answered() {
  const machine = new CallMachine()
  machine.answered(null, candidate(1, 5_060))
  const call = machine.call()
  const lose = (lastPacketAt: number) =>
    machine.event({ type: 'mediaLost', callUuid: 'u', lastPacketAt })
  return { machine, call, lose }
}

test('a call whose media is lost ends for both parties, and its record ends with the last packet', () => {
  const { machine, call, lose } = answered()
  machine.now = 100_000
  const commands = lose(40_001)
  expect(commands.filter(({ type }) => type === 'bye')).toHaveLength(2)
  const store = commands.find((command) => command.type === 'store')
  const record = callRecord(call, store?.end ?? { kind: 'no-answer' }, 100_000)
  expect(record).toMatchObject({
    disposition: 'ANSWERED',
    sipCode: 200,
    billsec: 41,
    endedAt: 40_001,
    hangupCause: 'MEDIA_TIMEOUT',
    hangupBy: 'system',
    denialCode: 'media_timeout',
  })
})

test('a call that had no media at all is charged a second', () => {
  const { call, lose } = answered()
  const store = lose(0).find((command) => command.type === 'store')
  const end = store?.end ?? { kind: 'no-answer' }
  expect(callRecord(call, end, 100_000)).toMatchObject({ billsec: 1, endedAt: 0 })
})

test('a call on hold goes on, and so does an emergency call', () => {
  const [held, emergency] = [answered(), answered()]
  held.call.display = 'HELD'
  emergency.call.isEmergency = true
  expect([...held.lose(0), ...emergency.lose(0)]).toEqual([])
})

test('a call that is over already keeps its end', () => {
  const { machine, call, lose } = answered()
  machine.event({ type: 'stop', callUuid: 'u', end: { kind: 'hung-up', by: 'callee' } })
  expect(lose(0)).toEqual([])
  expect(call.end).toEqual({ kind: 'hung-up', by: 'callee' })
})
