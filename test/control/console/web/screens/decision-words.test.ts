import { expect, test } from 'vitest'
import { decisionText } from '../../../../../control/console/web/screens/decision-words.ts'

const broke = {
  customer_id: 7,
  customer: 'acme',
  balance: '0.00',
  available: '0.00',
  currency: 'USD',
}

test.each([
  ['recognized', { origin: 'carrier' }, 'The caller is a carrier, by its address.'],
  [
    'charged',
    { verdict: 'granted', granted_seconds: 60, customer_id: 7, rate_prefix: '49' },
    'Charging admits the call; customer 7 is granted 60 seconds at first, at the rate of prefix 49.',
  ],
  [
    'charged',
    {
      verdict: 'granted',
      granted_seconds: null,
      customer_id: 7,
      customer: 'acme',
      balance: '10.00',
      available: '9.40',
      currency: 'USD',
    },
    'Charging admits the call: the wallet of acme has 10.00 USD, of which 9.40 USD can be spent; acme may talk without limit.',
  ],
  [
    'charged',
    { verdict: 'denied', code: 'insufficient_funds', customer_id: 7, denial_text: 'No: pay.' },
    'Charging refuses the call. No: pay.',
  ],
  [
    'charged',
    { verdict: 'denied', code: 'insufficient_funds', ...broke, denial_text: 'No: pay.' },
    'Charging refuses the call (the wallet of acme has 0.00 USD). No: pay.',
  ],
  ['charged', { verdict: 'unreachable' }, 'The external charging service does not answer.'],
  [
    'routed',
    { candidates: [], code: 'no_route', denial_text: 'None: add one.' },
    'There is no route. None: add one.',
  ],
  [
    'routed',
    { direction: 'outbound', candidates: ['sip:a', 'sip:b'] },
    'An outbound call; to try, in this order: sip:a, sip:b.',
  ],
  [
    'tried',
    { destination: 'sip:a', status: 503, reason: 'Busy Here' },
    'sip:a was tried: it answered 503 Busy Here.',
  ],
  [
    'ended',
    {
      disposition: 'FAILED',
      sip_code: 402,
      denial_code: 'no_rate',
      hangup_by: 'system',
      denial_text: 'No rate: add one.',
    },
    'Not answered: refused with 402 by the platform. No rate: add one.',
  ],
  [
    'ended',
    {
      disposition: 'FAILED',
      sip_code: 404,
      hangup_by: 'callee',
      hangup_cause: 'UNALLOCATED_NUMBER',
    },
    'Not answered: refused with 404 by the called party. The called number does not exist.',
  ],
  [
    'ended',
    { disposition: 'ANSWERED', billsec: 1, hangup_by: 'caller', hangup_cause: 'NORMAL_CLEARING' },
    'Ended by the caller after 1 second of talk.',
  ],
  ['later', { a: 1 }, 'later: {"a":1}'],
])('%s %o is a sentence', (what, detail, sentence) => {
  expect(decisionText({ what, detail })).toBe(sentence)
})
