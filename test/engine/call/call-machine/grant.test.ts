import { expect, test } from 'vitest'
import type { CallCommand } from '../../../../engine/call/call-machine/protocol.ts'
import { CallMachine } from '../../../support/call-machine.ts'
import { candidate } from '../../../support/call-rig.ts'

type Answer = (usedSeconds: number) => number | string | undefined

/**
 * A call answered at 0 with a grant. `extend` answers with the new grant, a denial, or not at all.
 */
function start(grantedSeconds: number | null, extend: Answer) {
  const machine = new CallMachine()
  machine.answered(grantedSeconds, candidate(1, 5_060))
  const askedAt: number[] = []
  const answer = (command: CallCommand): void => {
    if (command.type !== 'extend') return
    const { callUuid } = command
    askedAt.push(machine.now / 1_000)
    const answer = extend(command.grantedSeconds)
    if (typeof answer === 'number')
      machine.event({ type: 'extended', callUuid, grantedSeconds: answer })
    else if (answer !== undefined) machine.event({ type: 'notExtended', callUuid, code: answer })
  }
  const advance = (seconds: number): void => {
    const end = machine.now + seconds * 1_000
    for (let now = machine.now; now <= end; now += 500) machine.advanceTo(now).forEach(answer)
  }
  return { machine, call: machine.call(), askedAt, advance }
}

const denied: Answer = () => 'max_call_seconds'

test('more is asked for 10 s before the end, and the call goes on with it', () => {
  const { call, askedAt, advance } = start(60, (used) => used + 60)
  advance(185)
  expect(askedAt).toEqual([50, 110, 170])
  expect(call.grantedSeconds).toBe(240)
  expect(call.end).toBeUndefined()
})

test('without more the call is ended when the grant runs out, not before', () => {
  const { call, askedAt, advance } = start(60, denied)
  advance(59)
  expect(askedAt).toEqual([50])
  expect(call.end).toBeUndefined()
  advance(2)
  expect(call.end).toEqual({ kind: 'cut', by: 'system', cause: 21, code: 'max_call_seconds' })
})

test('a charging system that does not answer in time ends the call as well', () => {
  const { call, advance } = start(20, () => undefined)
  advance(21)
  // It has not said that there is no money.
  expect(call.end).toEqual({ kind: 'cut', by: 'system', cause: 21, code: 'ocs_unreachable' })
})

test('a grant that is not longer than the last is no extension', () => {
  const { call, advance } = start(20, (used) => used)
  advance(21)
  expect(call.end).toMatchObject({ kind: 'cut', cause: 21, code: 'insufficient_funds' })
})

test('a charging system that was away once is forgotten when there is more', () => {
  let asked = 0
  const { call, advance } = start(20, (used) => {
    asked += 1
    return asked === 1 ? used + 20 : 'insufficient_funds'
  })
  call.grantDenial = 'ocs_unreachable'
  advance(41)
  expect(call.end).toMatchObject({ cause: 21, code: 'insufficient_funds' })
})

test('a short grant is asked for at its half', () => {
  const { askedAt, advance } = start(6, denied)
  advance(4)
  expect(askedAt).toEqual([3])
})

test('a call without limit needs no timer; an ended one leaves none, and ignores a late answer', () => {
  expect(start(null, denied).machine.timers).toBe(0)
  const { machine, call, advance } = start(60, () => undefined)
  advance(51)
  machine.event({ type: 'stop', callUuid: 'u', end: { kind: 'hung-up', by: 'caller' } })
  machine.event({ type: 'extended', callUuid: 'u', grantedSeconds: 120 })
  advance(100)
  expect(machine.timers).toBe(0)
  expect(call.end).toEqual({ kind: 'hung-up', by: 'caller' })
})
