import { expect, test } from 'vitest'
import { simulateHistory } from './call-control/history.ts'

/** As many histories as there is time for. */
const budgetMs = 8_000
/** As for property tests: the same histories in every run, unless others are wanted. */
const wanted = process.env['PROPERTY_SEED'] ?? '20261120'
const first = wanted === 'random' ? Date.now() % 1_000_000_000 : Number(wanted)

test(
  'whatever peers, OCS, journal and operators do, calls end once, are billed right and leave nothing',
  () => {
    const start = performance.now()
    let [histories, calls, steps, answered] = [0, 0, 0, 0]
    while (performance.now() - start < budgetMs) {
      // A failure names its seed: `PROPERTY_SEED` repeats it.
      const history = simulateHistory(first + histories)
      histories += 1
      calls += history.calls
      steps += history.steps
      answered += history.ends.filter((end) => end.endsWith('answered')).length
    }
    process.stdout.write(
      `${histories} histories from seed ${first}: ${calls} calls, ${answered} of them answered, ${steps} steps\n`,
    )
    expect(answered).toBeGreaterThan(histories / 4)
  },
  2 * budgetMs,
)

test('a history follows from its seed, and goes the same way when nothing is written and read back', () => {
  for (let seed = 1; seed <= 200; seed++) {
    const history = simulateHistory(seed)
    expect(simulateHistory(seed, { isCopied: false }), `seed ${seed}`).toEqual(history)
  }
})

test('so it is when callers wait for ringing calls, whose callers they replace', () => {
  // In the last one the phone of a forwarded call hangs up before the waiting caller has its 200.
  for (const seed of [...Array.from({ length: 300 }, (_, index) => index + 1), 5_523]) {
    const history = simulateHistory(seed, { takesRinging: true })
    expect(history.calls, `seed ${seed}`).toBeGreaterThan(0)
  }
})
