import { expect, test } from 'vitest'
import type { Telemetry } from '../../../../../control/console/web/api/api-types.ts'
import {
  figuresBetween,
  withSample,
  type Sample,
} from '../../../../../control/console/web/screens/samples.ts'
import { openControl } from '../../../../support/control.ts'

const control = openControl()
const token = control.key()
const some = (await control.request('/metrics/telemetry', { token })).data<Telemetry>()

/** Telemetry `seconds` later, after so many calls. */
const at = (seconds: number, total: number, answered: number, spent: string): Telemetry => ({
  ...some,
  at: new Date(Date.parse(some.at) + seconds * 1_000).toISOString(),
  calls: { ...some.calls, total, answered },
  billing: some.billing && {
    ...some.billing,
    moved: [{ kind: 'debit', currency: 'USD', count: total, amount: spent }],
  },
})
const after = (...all: readonly Telemetry[]): readonly Sample[] =>
  all.reduce<readonly Sample[]>(withSample, [])

test('totals become rates between two samples', () => {
  const samples = after(at(0, 100, 90, '10.00'), at(30, 110, 95, '12.00'))
  expect(samples.map(({ spendPerMinute }) => spendPerMinute)).toEqual([null, 4])
  expect(figuresBetween(samples)).toEqual({ asrPercent: 50, postDialDelayMs: null })
  expect(figuresBetween([])).toEqual({ asrPercent: null, postDialDelayMs: null })
})

test('ten minutes are kept, and a restart begins anew', () => {
  const long = after(...Array.from({ length: 400 }, (_, index) => at(index * 2, index, 0, '0')))
  expect(long).toHaveLength(300)
  expect(withSample(long, at(802, 0, 0, '0'))).toHaveLength(1)
})
