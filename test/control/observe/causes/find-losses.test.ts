import { expect, test } from 'vitest'
import { findLosses } from '../../../../control/observe/causes/find-losses.ts'
import type { LossTrouble } from '../../../../schema/contracts/losses.ts'

const span = { from: 1_000, before: 10_000 }
const trouble = (tenantId: number | null, more: Partial<LossTrouble> = {}): LossTrouble => ({
  tenantId,
  customerId: 7,
  carrier: 'north',
  prefix: '49',
  currency: 'USD',
  seconds: 90,
  saleMicros: 90_000,
  costMicros: 120_000,
  marginMicros: -30_000,
  calls: 3,
  firstAt: 2_000,
  lastAt: 3_000,
  lastCallUuid: 'u',
  toldAt: 2_000,
  ...more,
})

test('a finding says who loses what by which carrier', () => {
  const [found] = findLosses({ lossTroubles: () => [trouble(null)], tenantId: null }, span)
  expect(found).toMatchObject({
    kind: 'margin',
    severity: 'high',
    subject: 'prefix 49 of customer 7 by north',
    what:
      '3 calls of customer 7 to 49 went out by north below the wanted margin: a call of ' +
      '90 seconds is sold for 0.09 USD and bought for 0.12 USD',
    figures: { calls: 3, expected_seconds: 90, expected_margin: -0.03 },
    evidence: ['u'],
  })
})

test('a tenant sees what its own protection warns of, the platform all, and neither the past', () => {
  const lossTroubles = () => [
    trouble(null),
    trouble(3),
    trouble(4),
    trouble(3, { firstAt: 0, lastAt: 999 }),
    trouble(3, { firstAt: 10_000, lastAt: 10_000 }),
  ]
  expect(findLosses({ lossTroubles, tenantId: 3 }, span)).toHaveLength(1)
  expect(findLosses({ lossTroubles, tenantId: null }, span)).toHaveLength(3)
  expect(findLosses({ tenantId: null }, span)).toEqual([])
})
