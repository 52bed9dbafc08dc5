import { expect, test } from 'vitest'
import { decisionText } from '../../../../../../control/console/web/screens/calls/decision-words.ts'

const broke = {
  ...{ customer_id: 7, customer: 'acme', balance: '0.00', available: '0.00', currency: 'USD' },
}

test.each([
  ['recognized', { origin: 'carrier' }, 'The caller is a carrier, by its address.'],
  [
    'charged',
    { verdict: 'granted', granted_seconds: 60, customer_id: 7, rate_prefix: '49' },
    'Charging admits the call; customer 7 can pay for 60 seconds at the rate of prefix 49.',
  ],
  [
    'charged',
    {
      ...{ verdict: 'granted', granted_seconds: null, customer_id: 7, customer: 'acme' },
      ...{ balance: '10.00', available: '9.40', currency: 'USD' },
    },
    'Charging admits the call: the wallet of acme has 10.00 USD, of which 9.40 USD can be spent; acme may talk without limit.',
  ],
  [
    'charged',
    { verdict: 'denied', code: 'insufficient_funds', customer_id: 7 },
    'Charging refuses the call: the wallet has not enough for the shortest call (customer 7).',
  ],
  [
    'charged',
    { verdict: 'denied', code: 'insufficient_funds', ...broke },
    'Charging refuses the call: the wallet of acme has 0.00 USD, not enough for the shortest call.',
  ],
  ['charged', { verdict: 'unreachable' }, 'The external charging service does not answer.'],
  ['routed', { candidates: [], code: 'no_route' }, 'There is no route: no_route.'],
  [
    'routed',
    { direction: 'outbound', candidates: ['sip:a', 'sip:b'] },
    'outbound call; to try, in this order: sip:a, sip:b.',
  ],
  [
    'tried',
    { destination: 'sip:a', status: 503, reason: 'Busy Here' },
    'sip:a was tried: it answered 503 Busy Here.',
  ],
  [
    'ended',
    { disposition: 'FAILED', sip_code: 402, denial_code: 'no_rate', hangup_by: 'system' },
    'Not answered: refused with 402, there is no price for the called number, by the platform.',
  ],
  ['later', { a: 1 }, 'later: {"a":1}'],
])('%s %o is a sentence', (what, detail, sentence) => {
  expect(decisionText({ what, detail })).toBe(sentence)
})

test('the end of a refused call names who could not pay, and what the wallet had', () => {
  const charged = {
    what: 'charged',
    detail: { verdict: 'denied', code: 'insufficient_funds', ...broke },
  }
  const ended = {
    ...{ disposition: 'FAILED', sip_code: 402, denial_code: 'insufficient_funds' },
    hangup_by: 'system',
  }
  expect(decisionText({ what: 'ended', detail: ended }, [charged])).toBe(
    'Not answered: refused with 402 by the platform: the wallet of acme has 0.00 USD, not enough for the shortest call.',
  )
})
