/**
 * The tables of the four transactions of RFC 3261 §17, their deadlines, and the texts that are sent
 * again.
 */
import { describe, expect, test } from 'vitest'
import fc from 'fast-check'
import { inviteClient, nonInviteClient } from '../../../../engine/sip-server/transaction/client.ts'
import { inviteServer, nonInviteServer } from '../../../../engine/sip-server/transaction/server.ts'
import { RetransmitCache } from '../../../../engine/sip-server/transaction/retransmit-cache.ts'
import type { TransactionTable } from '../../../../engine/sip-server/transaction/machine.ts'
import { Deadlines, type Deadline } from '../../../../engine/sip-server/transaction/deadlines.ts'

const machines: [string, TransactionTable<string, string, string>, string][] = [
  ['INVITE client', inviteClient, 'calling'],
  ['INVITE server', inviteServer, 'proceeding'],
  ['non-INVITE client', nonInviteClient, 'trying'],
  ['non-INVITE server', nonInviteServer, 'trying'],
]

describe.each(machines)('the %s machine', (_name, table, start) => {
  test('reaches every one of its states from the first', () => {
    const reached = new Set([start])
    for (const state of reached)
      for (const step of Object.values(table[state] ?? {})) if (step) reached.add(step.to)
    expect([...reached].toSorted()).toEqual(Object.keys(table).toSorted())
  })

  test('can end from every state', () => {
    for (const state of Object.keys(table)) {
      const reached = new Set([state])
      for (const next of reached)
        for (const step of Object.values(table[next] ?? {})) if (step) reached.add(step.to)
      expect(reached.has('terminated')).toBe(true)
    }
  })

  test('does nothing any more once it has terminated', () => {
    expect(table['terminated']).toEqual({})
  })
})

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

const lifetimeMs = 32_000

function tableOf(seed = 7): { deadlines: Deadlines; kept: RetransmitCache } {
  const deadlines = new Deadlines()
  return { deadlines, kept: new RetransmitCache(deadlines, lifetimeMs, seed) }
}

// A body may hold any bytes, which `schema/sip/message.ts` turns into lone surrogates.
test.each(['', 'é and ÿ', '€ 👋 \udc80\udcff', 'x'.repeat(1_000_000), '€'.repeat(1_000_000)])(
  'text %# comes back as it was',
  (text) => {
    const { kept } = tableOf()
    kept.add('before', 'neighbour', 0)
    kept.add('key', text, 0)
    kept.add('after', 'neighbour', 0)
    expect(kept.find('key') === text).toBe(true)
    expect([kept.find('before'), kept.find('after')]).toEqual(['neighbour', 'neighbour'])
  },
)

test('it holds what a map would, whatever comes and goes', () => {
  const step = fc.record({
    key: fc.integer({ min: 0, max: 400 }).map((number) => `key ${number} ${number % 7 ? '' : 'ж'}`),
    length: fc.oneof(fc.nat(300), fc.nat(60_000)),
    wait: fc.oneof({ weight: 9, arbitrary: fc.nat(200) }, fc.constant(40_000)),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 600 }), fc.nat(), (steps, seed) => {
      const { deadlines, kept } = tableOf(seed)
      const model = new Map<string, { text: string; until: number }>()
      let now = 0
      for (const { key, length, wait } of steps) {
        now += wait
        deadlines.expire(now)
        for (const [name, { until }] of model) if (until <= now) model.delete(name)
        const text = `${now} `.padEnd(length, '.')
        kept.add(key, text, now)
        model.set(key, { text, until: now + lifetimeMs })
        expect(kept.size).toBe(model.size)
      }
      for (let number = 0; number <= 400; number++) {
        const key = `key ${number} ${number % 7 ? '' : 'ж'}`
        expect(kept.find(key) === model.get(key)?.text).toBe(true)
      }
    }),
    { seed: 20_261_122, numRuns: 60 },
  )
})
