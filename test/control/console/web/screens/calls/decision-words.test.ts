import { expect, test } from 'vitest'
import { decisionText } from '../../../../../../control/console/web/screens/calls/decision-words.ts'

test.each([
  ['recognized', { origin: 'carrier' }, 'The caller is a carrier, by its address.'],
  [
    'charged',
    { verdict: 'granted', granted_seconds: 60, customer_id: 7, rate_prefix: '49' },
    'Charging admits the call: customer 7 can pay for 60 seconds at the rate of prefix 49.',
  ],
  [
    'charged',
    { verdict: 'denied', code: 'insufficient_funds', customer_id: 7 },
    'Charging refuses the call: the wallet has not enough for the shortest call (customer 7).',
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
