import { expect, test } from 'vitest'
import { Call } from '../../../engine/call/call.ts'
import { Deadlines } from '../../../engine/call/deadlines.ts'
import { GrantTimer } from '../../../engine/call/grant-timer.ts'
import type { Extension } from '../../../schema/contracts/charging.ts'
import { ManualTime } from '../../support/manual-time.ts'

/** A call answered at 0 with a grant; `extend` is asked at the returned seconds. */
function start(grantedSeconds: number, extend: (used: number) => Promise<Extension>) {
  const time = new ManualTime(0)
  const deadlines = new Deadlines({ now: time.now, schedule: time.schedule })
  const askedAt: number[] = []
  const call = new Call({
    callUuid: 'u',
    callId: 'c',
    callerNumber: '1',
    callerName: null,
    calledNumber: '2',
    sourceAddress: '',
    startedAt: 0,
  })
  call.grantedSeconds = grantedSeconds
  const charging = {
    extend: (_callUuid: string, used: number) => {
      askedAt.push(Math.round(time.now() / 1_000))
      return extend(used)
    },
  }
  const timer = new GrantTimer({ charging, deadlines }, call, 0)
  /** Lets answers arrive between the steps. */
  const advance = async (seconds: number): Promise<void> => {
    for (let step = 0; step < seconds; step++) {
      time.advance(1_000)
      await Promise.resolve()
      await Promise.resolve()
    }
  }
  return { time, deadlines, call, timer, askedAt, advance }
}

const denied = (): Promise<Extension> =>
  Promise.resolve({ kind: 'denied', code: 'max_call_seconds' })

test('more is asked for 10 s before the end, and the call goes on with it', async () => {
  const { call, askedAt, advance } = start(60, (used) =>
    Promise.resolve({ kind: 'granted', grantedSeconds: used + 60 }),
  )
  await advance(185)
  expect(askedAt).toEqual([50, 110, 170])
  expect(call.grantedSeconds).toBe(240)
  expect(call.stopped).toBeUndefined()
})

test('without more the call is cut when the grant runs out, not before', async () => {
  const { call, askedAt, advance } = start(60, denied)
  await advance(59)
  expect(askedAt).toEqual([50])
  expect(call.stopped).toBeUndefined()
  await advance(2)
  expect(call.stopped).toEqual({ kind: 'cut', by: 'system', cause: 21, code: 'max_call_seconds' })
})

test('a charging system that fails, or does not answer in time, cuts as well', async () => {
  const failing = start(20, () => Promise.reject(new Error('away')))
  await failing.advance(21)
  expect(failing.call.stopped).toMatchObject({ code: 'ocs_unreachable' })
  const mute = start(20, () => new Promise<Extension>(() => undefined))
  await mute.advance(21)
  expect(mute.call.stopped).toMatchObject({ kind: 'cut', code: 'insufficient_funds' })
})

test('a grant that is not longer than the last is no extension', async () => {
  const { call, advance } = start(20, (used) =>
    Promise.resolve({ kind: 'granted', grantedSeconds: used }),
  )
  await advance(21)
  expect(call.stopped).toMatchObject({ kind: 'cut' })
})

test('a short grant is asked for at its half', async () => {
  const { askedAt, advance } = start(6, denied)
  await advance(4)
  expect(askedAt).toEqual([3])
})

test('a free call needs no timer; an ended one leaves none, and ignores a late answer', async () => {
  const free = start(Infinity, denied)
  expect(free.deadlines.size).toBe(0)

  let answer: (extension: Extension) => void = () => undefined
  const ended = start(60, () => new Promise<Extension>((resolve) => (answer = resolve)))
  await ended.advance(51)
  ended.timer.stop()
  answer({ kind: 'granted', grantedSeconds: 120 })
  await ended.advance(100)
  expect(ended.deadlines.size).toBe(0)
  expect(ended.call.stopped).toBeUndefined()
})
