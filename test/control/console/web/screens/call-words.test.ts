import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { causeText } from '../../../../../control/console/web/screens/call-words.ts'
import { denialPhrase } from '../../../../../control/console/web/screens/denial-words.ts'

const attempt = {
  destination: 'sip:10.0.0.1:5060',
  status: 404,
  reason: 'Not Found',
  start_stamp: '2026-01-01T00:00:00.000Z',
  end_stamp: '2026-01-01T00:00:01.000Z',
}

const failed = {
  disposition: 'FAILED',
  sip_code: 404,
  hangup_cause: 'UNALLOCATED_NUMBER',
  hangup_by: 'callee',
  denial_code: null,
  denial_text: null,
  carrier: null,
  node: null,
  direction: 'internal',
} as const

test.each([
  [{ carrier: 'north', direction: 'outbound' }, 'The carrier answered 404 Not Found'],
  [
    { carrier: 'north', node: 'sip:a', direction: 'inbound' },
    'The PBX node answered 404 Not Found',
  ],
  [{ carrier: 'north', direction: 'inbound' }, 'The phone answered 404 Not Found'],
  [
    { denial_code: 'no_candidate', denial_text: 'None (set 2): add one.' },
    'No PBX node or carrier was available',
  ],
  [{ denial_code: 'of_their_own', denial_text: 'Refused with x: ask.' }, 'Refused with x'],
] as const)('%o is told as "%s"', (call, sentence) => {
  expect(causeText({ ...failed, attempts: [attempt], ...call })).toBe(sentence)
})

test('without an answer there is none to tell', () => {
  const attempts = [{ ...attempt, status: 0 }]
  expect(causeText({ ...failed, attempts })).toBe('The phone did not answer in time')
  expect(causeText({ ...failed, attempts: [] })).toBe('The called number does not exist')
})

test('every code of a denial has a phrase', () => {
  const source = readFileSync('schema/contracts/denials.ts', 'utf8')
  const codes = [...source.matchAll(/^ {2}([a-z_]+): \{$/gm)].map(([, code = '']) => code)
  expect(codes).toContain('no_candidate')
  expect(codes.filter((code) => denialPhrase(code) === undefined)).toEqual([])
})
