import fc from 'fast-check'
import { expect, test } from 'vitest'
import { Deadlines, type Deadline } from '../../../../engine/sip-server/transaction/machine.ts'

/** Collects what fires, in order. */
class Recorder {
  readonly fired: { name: string; now: number }[] = []

  onTimer(name: string, now: number): void {
    this.fired.push({ name, now })
  }
}

test('deadlines fire in order of their time, whatever the order in which they were started', () => {
  const deadlines = new Deadlines()
  const recorder = new Recorder()
  deadlines.start(recorder, 'late', 4_000, 0)
  deadlines.start(recorder, 'early', 500, 0)
  deadlines.start(recorder, 'middle', 500, 300)
  expect(deadlines.next()).toBe(500)
  deadlines.expire(10_000)
  expect(recorder.fired.map(({ name }) => name)).toEqual(['early', 'middle', 'late'])
  expect(deadlines.next()).toBeUndefined()
})

test('a cancelled deadline never fires and does not wake the driver', () => {
  const deadlines = new Deadlines()
  const recorder = new Recorder()
  deadlines.start(recorder, 'cancelled', 500, 0).cancel()
  deadlines.start(recorder, 'kept', 900, 0)
  expect(deadlines.next()).toBe(900)
  expect(deadlines.size).toBe(1)
  deadlines.expire(900)
  expect(recorder.fired.map(({ name }) => name)).toEqual(['kept'])
})

test('a deadline started while others fire is kept, and fires too if it is due', () => {
  const deadlines = new Deadlines()
  const recorder = new Recorder()
  const chain = {
    onTimer(_name: string, now: number): void {
      deadlines.start(recorder, 'at once', 0, now)
      deadlines.start(recorder, 'later', 100, now)
    },
  }
  deadlines.start(chain, 'chain', 500, 0)
  deadlines.expire(500)
  expect(recorder.fired.map(({ name }) => name)).toEqual(['at once'])
  expect(deadlines.next()).toBe(600)
})

test('a million started and cancelled deadlines leave no memory behind once their time has come', () => {
  const deadlines = new Deadlines()
  const recorder = new Recorder()
  for (let now = 0; now < 100_000; now++) {
    deadlines.start(recorder, 'x', 500, now).cancel()
    if (now % 1_000 === 0) deadlines.expire(now)
  }
  deadlines.expire(200_000)
  expect(deadlines.size).toBe(0)
  expect(deadlines.next()).toBeUndefined()
  expect(recorder.fired).toEqual([])
})

test('for any mix of starts, cancels and steps of time exactly the due ones fire, none early or twice', () => {
  const operation = fc.oneof(
    fc.record({
      kind: fc.constant('start' as const),
      delayMs: fc.constantFrom(0, 5, 20, 320, 500),
    }),
    fc.record({ kind: fc.constant('cancel' as const), index: fc.nat(30) }),
    fc.record({ kind: fc.constant('step' as const), ms: fc.nat(400) }),
  )
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 60 }), (operations) => {
      const deadlines = new Deadlines()
      const recorder = new Recorder()
      const started: { deadline: Deadline; isCancelled: boolean }[] = []
      let now = 0
      for (const step of operations) {
        if (step.kind === 'start') {
          const name = String(started.length)
          started.push({
            deadline: deadlines.start(recorder, name, step.delayMs, now),
            isCancelled: false,
          })
        }
        if (step.kind === 'cancel') {
          const chosen = started[step.index]
          if (chosen && chosen.deadline.target !== undefined) {
            chosen.deadline.cancel()
            chosen.isCancelled = true
          }
        }
        if (step.kind === 'step') {
          now += step.ms
          deadlines.expire(now)
        }
      }
      const due = started.filter(({ deadline, isCancelled }) => !isCancelled && deadline.at <= now)
      const fired = new Set(recorder.fired.map(({ name }) => name))
      expect(recorder.fired).toHaveLength(fired.size)
      // A deadline of zero started after the last step has not had its chance yet.
      for (const { deadline } of due)
        if (deadline.at < now) expect(fired.has(deadline.name)).toBe(true)
      for (const { name, now: at } of recorder.fired)
        expect(started[Number(name)]?.deadline.at).toBeLessThanOrEqual(at)
    }),
    { seed: 4711 },
  )
})
