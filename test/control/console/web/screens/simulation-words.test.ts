import { expect, test } from 'vitest'
import type { Simulation } from '../../../../../control/console/web/api/views.ts'
import {
  payerText,
  priceText,
  sourceText,
  verdictText,
} from '../../../../../control/console/web/screens/simulation-words.ts'

const payment: Simulation['payment'] = {
  kind: 'asked',
  customer_id: 7,
  customer: 'acme',
  code: null,
  price_exact: '0.60',
  longest_seconds: 60,
  at: '2026-11-24T12:00:00.000Z',
  rate: {
    prefix: '',
    currency: 'USD',
    connect_fee_exact: '0.10',
    rate_per_minute_exact: '0.60',
    first_increment: 1,
    increment: 1,
  },
}
test('a verdict is a sentence, with the one of the denial', () => {
  const refused = { verdict: 'refused', sip_code: 402, denial_text: 'No: pay.' }
  expect(verdictText(refused as unknown as Simulation)).toBe(
    'The call would be refused with 402. No: pay.',
  )
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
  expect(priceText({ ...payment, rate: null })).toBe('none, or not shown')
})
