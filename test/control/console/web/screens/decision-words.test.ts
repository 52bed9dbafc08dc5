import { expect, test } from 'vitest'
import { decisionText } from '../../../../../control/console/web/screens/decision-words.ts'

test.each([
  ['out', [1, 3], 'The INVITE to west is changed by rules 1, 3 of west.'],
  ['in', [2], 'The INVITE from west was changed by rule 2 of west.'],
])('the page of a call says which rules have changed its INVITE: %s', (direction, rules, said) => {
  const detail = { direction, carrier: 'west', rules }
  expect(decisionText({ what: 'ruled', detail })).toBe(said)
})
