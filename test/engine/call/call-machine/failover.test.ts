import { expect, test } from 'vitest'
import {
  afterResult,
  bestOf,
  healthShown,
  isUntaken,
  movesOn,
} from '../../../../engine/call/call-machine/failover.ts'
import type { AttemptResult } from '../../../../engine/call/call-machine/state.ts'
import { noCandidate, type End } from '../../../../engine/call/cdr/end-reason.ts'

const rejected = (status: number, isFinal = false): AttemptResult => ({
  kind: 'rejected',
  status,
  reason: 'r',
  headers: {},
  isFinal,
})
const silent: AttemptResult = { kind: 'silent' }

/** Tries the results in order; tells how many, and what the caller gets. */
function run(results: readonly (AttemptResult | undefined)[]) {
  let end: End = noCandidate
  let tried = 0
  for (const result of results) {
    tried++
    const { last, isLast } = afterResult(result, end)
    end = last
    if (isLast) break
  }
  return { end, tried }
}

test('exactly these responses lead to the next destination', () => {
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
])('%j: %i are tried, the caller gets %i', (results, count, status) => {
  const { end, tried } = run(results)
  expect(tried).toBe(count)
  expect(end).toMatchObject({ kind: 'rejected', status })
})

test('no candidate, or none that responded: the text of SPECIFICATION.md §10.4', () => {
  for (const results of [[], [silent, silent], [undefined]])
    expect(run(results).end).toEqual(noCandidate)
})

test('an INVITE that must not leave is told where nothing else was, whether or not the state was stored meanwhile', () => {
  const end = { kind: 'refused', status: 480, reason: 'TLS', code: 'insecure' } as const
  const readBack: End = { ...noCandidate }
  expect(afterResult({ kind: 'withheld', end }, readBack)).toEqual({ last: end, isLast: false })
})

test.each([
  [403, 480, 'unpriced_gateway'],
  [480, 480, 'sips_needs_tls'],
  [513, 513, 'message_too_large'],
])(
  'phones that may not be called (%i): the caller gets %i, the record %s, unless voicemail takes the call',
  (status, shown, code) => {
    const end = { kind: 'refused', status, reason: 'Withheld', code } as const
    const withheld: AttemptResult = { kind: 'withheld', end }
    for (const results of [[withheld], [silent, withheld]]) {
      const best = bestOf(results)
      expect(run([best]).end).toMatchObject({ kind: 'refused', status: shown, code })
      expect(isUntaken(best)).toBe(true)
    }
    expect(bestOf([withheld, rejected(486)])).toMatchObject({ status: 486 })
  },
)

test('silence, 503 and transport errors speak against a node, any other answer for it', () => {
  expect(healthShown(silent)).toBe('failed')
  expect(healthShown({ kind: 'not-sent', reason: 'x' })).toBe('failed')
  expect(healthShown(rejected(503))).toBe('failed')
  expect(healthShown(rejected(500))).toBe('answered')
  expect(healthShown({ kind: 'stopped' })).toBeUndefined()
})

test('phones that all lack a media relay: the caller is told so, where no voicemail takes the call', () => {
  const code = 'media_relay_unavailable'
  const end = { kind: 'refused', status: 503, reason: 'Media Relay Unavailable', code } as const
  const withheld: AttemptResult = { kind: 'withheld', end }
  const best = bestOf([withheld, withheld])
  expect(run([best]).end).toEqual(end)
  expect(isUntaken(best)).toBe(true)
  // One that was called, and was silent.
  expect(bestOf([withheld, silent])).toMatchObject({ kind: 'rejected', status: 480 })
  expect(bestOf([withheld, rejected(486)])).toMatchObject({ status: 486 })
})

test('a phone whose connection is gone counts as one that is absent', () => {
  const gone = rejected(430)
  expect(bestOf([gone])).toMatchObject({ kind: 'rejected', status: 480 })
  expect(isUntaken(bestOf([gone]))).toBe(true)
  expect(bestOf([gone, rejected(486)])).toMatchObject({ status: 486 })
  expect(bestOf([gone, rejected(488)])).toMatchObject({ status: 488 })
})
