import { expect, test } from 'vitest'
import type { TelemetryHistory } from '../../../../../control/console/web/api/views.ts'
import { asrOf, chartsOf, delayOf } from '../../../../../control/console/web/screens/samples.ts'

type Sample = TelemetryHistory['samples'][number]

const sample = (second: number, rest: Partial<Sample> = {}): Sample => ({
  at: new Date(second * 1_000).toISOString(),
  active: 0,
  started: 0,
  ended: 0,
  answered: 0,
  post_dial_delay: { count: 0, sum_ms: 0 },
  spent: [],
  lag_p99_ms: 0,
  ...rest,
})
const charts = (...samples: readonly Sample[]) =>
  chartsOf({ interval_seconds: 5, samples: [...samples] })

test('counts of five seconds become rates', () => {
  const { perSecond, active } = charts(sample(5, { started: 10, active: 4 }), sample(10))
  expect(perSecond).toEqual({ times: [5, 10], values: [2, 0] })
  expect(active.values).toEqual([4, 0])
})

test('a ratio is that of the minute before, and nothing where no call has ended', () => {
  const all = [
    sample(5, { ended: 4, answered: 3, post_dial_delay: { count: 2, sum_ms: 300 } }),
    ...Array.from({ length: 12 }, (_, index) => sample(10 + 5 * index)),
  ]
  const { asrPercent, postDialDelayMs } = charts(...all)
  expect(asrPercent.values).toEqual([...Array<number>(12).fill(75), null])
  expect([postDialDelayMs.values[0], postDialDelayMs.values.at(-1)]).toEqual([150, null])
  expect([asrOf(all), delayOf(all)]).toEqual([75, 150])
  expect([asrOf([]), delayOf([])]).toEqual([null, null])
})

test('spend is drawn in the currency of most samples, as if the known part were a minute', () => {
  const euros = [{ currency: 'EUR', amount: '1.00' }]
  const { spendPerMinute, currency } = charts(
    sample(5, { spent: euros }),
    sample(10, { spent: [{ currency: 'USD', amount: '7.00' }, ...euros] }),
    sample(15),
  )
  expect(currency).toBe('EUR')
  expect(spendPerMinute.values).toEqual([12, 12, 8])
})
