import { expect, test } from 'vitest'
import { fuzz } from './fuzz.ts'

test.each([1, 2, 3, 4])(
  'bent messages in the middle of calls break nothing, and the call after them works (seed %i)',
  (seed) => {
    expect(fuzz(seed, 1_000)).toEqual([])
  },
  30_000,
)
