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
