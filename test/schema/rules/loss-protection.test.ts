import { expect, test } from 'vitest'
import {
  isBelow,
  leastMarginText,
  lossTermsOf,
  readLeastMargin,
} from '../../../schema/rules/loss-protection.ts'

test.each([
  ['0', '0.00'],
  ['0.002', '0.002'],
  ['0.020000', '0.02'],
  ['5%', '5%'],
  ['2.50%', '2.5%'],
  ['0.01%', '0.01%'],
  ['100%', '100%'],
])('%s is kept as %s', (text, kept) => {
  const least = readLeastMargin(text)
  expect(least && leastMarginText(least)).toBe(kept)
  expect(readLeastMargin(kept)).toEqual(least)
})

test.each([
  '',
  ' ',
  '-1',
  '-5%',
  '5 %',
  '%',
  '100.01%',
  '101%',
  '1.234%',
  '0.0000001',
  '5％',
  '1e3',
])('%j is no margin', (text) => {
  expect(readLeastMargin(text)).toBeUndefined()
})

test.each(['1000000', '1000001'])('%s a minute: a million is the most', (text) => {
  expect(readLeastMargin(text) !== undefined).toBe(text === '1000000')
})

test('amounts beyond 2^53 are compared exactly', () => {
  const share = readLeastMargin('50%')
  const [sale, margin] = [9_007_199_254_740_990, 4_503_599_627_370_495]
  expect(share && isBelow(share, margin, sale, 60)).toBe(false)
  expect(share && isBelow(share, margin - 1, sale, 60)).toBe(true)
})

test('a row without protection says nothing; an unreadable margin is none', () => {
  const row = { tenant_id: 3, is_loss_by_tenant: 1 }
  expect(lossTermsOf({ loss_protection: null, min_margin: null, ...row })).toBeUndefined()
  expect(lossTermsOf({ loss_protection: 'warn', min_margin: 'x', ...row })).toEqual({
    protection: 'warn',
    leastMargin: { kind: 'amount', microsPerMinute: 0 },
    tenantId: 3,
  })
  const set = { loss_protection: 'refuse', min_margin: '5%' } as const
  expect(lossTermsOf({ ...row, ...set, is_loss_by_tenant: 0 })?.tenantId).toBeNull()
})
