import { expect, test } from 'vitest'
import {
  grantedSecondsOf,
  refreshAfterMs,
  retryAfterMs,
} from '../../../engine/trunks/carrier-registration.ts'

const least = () => 0
const most = () => 1 - Number.EPSILON

test('a refresh comes between 75 and 90 % of the grant, and never every moment', () => {
  expect(refreshAfterMs(3_600, least)).toBe(2_700_000)
  expect(refreshAfterMs(3_600, most)).toBeCloseTo(3_240_000)
  expect(refreshAfterMs(1, least)).toBe(5_000)
})

test('waiting doubles from failure to failure, up to ten minutes, and is spread by half', () => {
  const waits = [1, 2, 3, 20].map((failures) => retryAfterMs(failures, 0, undefined, most))
  expect(waits.map(Math.round)).toEqual([4_000, 8_000, 16_000, 600_000])
  expect(retryAfterMs(1, 0, undefined, least)).toBe(2_000)
  expect(retryAfterMs(1, 403, undefined, least)).toBe(30_000)
})

test.each([
  ['120', 503, 120_000],
  ['99999', 503, 3_600_000],
  ['120', 403, 30_000],
  ['soon', 503, 2_000],
])('Retry-After %s of a %i waits %i ms', (header, status, wait) => {
  expect(retryAfterMs(1, status, header, least)).toBe(wait)
})

test.each([
  [{ contact: '<sip:me@10.0.0.1>;expires=60' }, 60],
  [{ contact: '<sip:you@10.0.0.9>;expires=1, <sip:me@10.0.0.1>;q=0.5;Expires="90"' }, 90],
  [{ contact: '<sip:ME@10.0.0.1;transport=tcp>', expires: '120' }, 120],
  [{ contact: '<sip:you@10.0.0.9>;expires=1', expires: '120' }, 120],
  [{}, 3_600],
])(
  '%j grants %i seconds',
  ({ contact, expires }: { contact?: string; expires?: string }, seconds) => {
    expect(grantedSecondsOf({ contact, expires }, 'me', 3_600)).toBe(seconds)
  },
)
