import { expect, test } from 'vitest'
import type { Simulation } from '../../../../../control/console/web/api/api-types.ts'
import {
  payerText,
  priceText,
  refusalText,
  sourceText,
  verdictText,
} from '../../../../../control/console/web/screens/simulation-words.ts'

const payment: Simulation['payment'] = {
  ...{ kind: 'asked', customer_id: 7, customer: 'acme', code: null, longest_seconds: 60 },
  at: null,
  rate: {
    ...{ prefix: '', currency: 'USD', connect_fee_exact: '0.10', rate_per_minute_exact: '0.60' },
    ...{ first_increment: 1, increment: 1 },
  },
}
const refused = (code: string | null) =>
  ({ verdict: 'refused', sip_code: 402, code }) as unknown as Simulation

test('a verdict is a sentence, with the reason in words', () => {
  expect(verdictText(refused('insufficient_funds'))).toBe(
    'The call would be refused with 402: the wallet has not enough for the shortest call.',
  )
  expect(verdictText(refused('no_candidate'))).toContain('no node of the dispatcher set')
  expect(verdictText(refused(null))).toContain('no phone of the extension')
  expect(refusalText('something_new')).toBe('something_new')
})

test('source, payer and price are named', () => {
  expect(sourceText({ kind: 'carrier', id: 1, name: 'trunk' })).toBe('carrier trunk')
  expect(sourceText({ kind: 'unknown', id: null, name: null })).toBe('unknown')
  expect([payerText(payment), priceText(payment)]).toEqual([
    'acme',
    '0.60 USD a minute, 0.10 to connect, prefix any',
  ])
  expect(payerText({ ...payment, kind: 'free', customer: null })).toContain('free')
  expect(payerText({ ...payment, customer: null, code: 'no_payer' })).toContain('none')
  expect(priceText({ ...payment, rate: null })).toBe('none')
})
