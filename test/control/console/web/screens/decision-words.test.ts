import { expect, test } from 'vitest'
import { decisionText } from '../../../../../control/console/web/screens/decision-words.ts'

test.each([
  ['out', [1, 3], 'The INVITE to west is changed by rules 1, 3 of west.'],
  ['in', [2], 'The INVITE from west was changed by rule 2 of west.'],
])('the page of a call says which rules have changed its INVITE: %s', (direction, rules, said) => {
  const detail = { direction, carrier: 'west', rules }
  expect(decisionText({ what: 'ruled', detail })).toBe(said)
})

test('the page of a call says where a redirect server has sent it, and what was passed over', () => {
  const detail = { carrier: 'west', gateways: ['sip:192.0.2.1'], passedOver: ['loop', 'loop'] }
  expect(decisionText({ what: 'redirected', detail })).toBe(
    'west has redirected the call to sip:192.0.2.1. Passed over: the call has been there.',
  )
  const nowhere = { ...detail, gateways: [], passedOver: [] }
  expect(decisionText({ what: 'redirected', detail: nowhere })).toBe(
    'west has redirected the call nowhere.',
  )
})
