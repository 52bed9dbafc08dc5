import { expect, test } from 'vitest'
import { CallTotals } from '../../engine/call-totals.ts'
import type { CallQuality } from '../../schema/contracts/field-values.ts'
import { endedCall } from '../support/books.ts'

const record = endedCall('u', 30)

test('calls are counted by disposition, each from the start, and seconds are summed', () => {
  const totals = new CallTotals()
  totals.add(record)
  totals.add(record)
  totals.add({ ...record, disposition: 'NO ANSWER', billsec: 0, postDialDelayMs: null })
  expect(totals.snapshot()).toEqual({
    calls_total: 3,
    billed_seconds_total: 60,
    calls_answered_total: 2,
    calls_no_answer_total: 1,
    calls_busy_total: 0,
    calls_canceled_total: 0,
    calls_failed_total: 0,
    calls_congestion_total: 0,
  })
})

test('a delay is counted in the first bucket whose bound it does not pass; unknown ones nowhere', () => {
  const totals = new CallTotals()
  for (const postDialDelayMs of [0, 25, 26, 30_000, 30_001, null])
    totals.add({ ...record, postDialDelayMs })
  const { boundsMs, counts, sumMs } = totals.postDialDelay()
  expect(counts).toHaveLength(boundsMs.length + 1)
  expect(counts.filter((count) => count > 0)).toEqual([2, 1, 1, 1])
  expect([counts[0], counts[1], counts.at(-2), counts.at(-1)]).toEqual([2, 1, 1, 1])
  expect(sumMs).toBe(0 + 25 + 26 + 30_000 + 30_001)
})

test('a MOS is counted once its call has one: that of the worse direction', () => {
  const heard = {
    mos: 4.4,
    mosSource: 'measured' as const,
    jitterMs: 1,
    packetLossPct: 0,
    roundTripMs: 20,
    packets: 500,
  }
  const totals = new CallTotals()
  const qualities: readonly (CallQuality | undefined)[] = [
    { caller: heard, callee: { ...heard, mos: 2.5 } },
    { caller: heard, callee: null },
    { caller: { ...heard, mos: null }, callee: null },
    undefined,
  ]
  for (const quality of qualities) totals.addQuality(quality)
  const { buckets, sum, calls } = totals.mos()
  expect({ sum, calls }).toEqual({ sum: 6.9, calls: 2 })
  expect(buckets.filter(({ le }) => [2, 2.5, 4.2, 4.5].includes(le))).toEqual([
    { le: 2, count: 0 },
    { le: 2.5, count: 1 },
    { le: 4.2, count: 1 },
    { le: 4.5, count: 2 },
  ])
})
