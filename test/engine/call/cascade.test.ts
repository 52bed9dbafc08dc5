import { expect, test } from 'vitest'
import type { AttemptResult } from '../../../engine/call/bridge.ts'
import { cascade, healthShown, movesOn, noCandidate } from '../../../engine/call/cascade.ts'
import type { End } from '../../../engine/call/cdr/end-reason.ts'

const rejected = (status: number, isFinal = false): AttemptResult => ({
  kind: 'rejected',
  status,
  reason: 'r',
  headers: {},
  isFinal,
})
const silent: AttemptResult = { kind: 'silent' }

/** Tries the results in order, and tells how many were asked for. */
async function run(results: readonly (AttemptResult | undefined)[], stop?: End) {
  let tried = 0
  const outcome = await cascade(
    results,
    (result) => {
      tried++
      return result && Promise.resolve(result)
    },
    () => stop,
  )
  return { outcome, tried }
}

test('exactly the answers of decisions §3 move on', () => {
  const moving = Array.from({ length: 700 }, (_, status) => status).filter(movesOn)
  expect(moving).toEqual([408, 500, 502, 503, 504])
})

test.each([
  [[rejected(503), rejected(486), rejected(200)], 2, 486],
  [[silent, rejected(404)], 2, 404],
  [[rejected(500), silent], 2, 500],
  [[rejected(503, true), rejected(486)], 1, 503],
  [[undefined, rejected(486)], 2, 486],
  [[{ kind: 'not-sent', reason: 'x' } as const, rejected(600)], 2, 600],
])('%j: %i are tried, the caller gets %i', async (results, count, status) => {
  const { outcome, tried } = await run(results)
  expect(tried).toBe(count)
  expect(outcome).toMatchObject({ kind: 'over', end: { kind: 'rejected', status } })
})

test('no candidate, or none that said anything: the text of the specification', async () => {
  for (const results of [[], [silent, silent], [undefined]])
    expect((await run(results)).outcome).toEqual({ kind: 'over', end: noCandidate })
})

test('a call that was stopped tries nobody else', async () => {
  const stop: End = { kind: 'cancelled' }
  const { outcome, tried } = await run([rejected(503), rejected(486)], stop)
  expect(tried).toBe(1)
  expect(outcome).toEqual({ kind: 'over', end: stop })
})

test('silence, 503 and transport errors speak against a node, any other answer for it', () => {
  expect(healthShown(silent)).toBe('failed')
  expect(healthShown({ kind: 'not-sent', reason: 'x' })).toBe('failed')
  expect(healthShown(rejected(503))).toBe('failed')
  expect(healthShown(rejected(500))).toBe('answered')
  expect(healthShown({ kind: 'stopped' })).toBeUndefined()
})
