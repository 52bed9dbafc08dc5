/** Stripe's own library signs and judges beside ours. */
import fc from 'fast-check'
import Stripe from 'stripe'
import { expect, test } from 'vitest'
import { isSignedByStripe } from '../../../control/money/payment-routes.ts'

const stripe = new Stripe('sk_test_not_used')
const secret = 'whsec_test_secret'
const payload = '{"id":"evt_1","object":"event","note":"Größe 😀"}'
const body = Buffer.from(payload)
const seconds = 1_767_607_200
const now = seconds * 1_000 + 999

const signed = (overrides: { timestamp?: number; secret?: string; payload?: string } = {}) =>
  stripe.webhooks.generateTestHeaderString({ payload, secret, timestamp: seconds, ...overrides })

/** The verdict of Stripe's library: it throws unless all is well. */
function stripeAccepts(bytes: Buffer, header: string, tolerance = 300): boolean {
  try {
    return (
      stripe.webhooks.signature !== null &&
      stripe.webhooks.signature.verifyHeader(bytes, header, secret, tolerance, undefined, now)
    )
  } catch {
    return false
  }
}

test("what Stripe's library signs is accepted", () => {
  expect(stripeAccepts(body, signed())).toBe(true)
  expect(isSignedByStripe(body, signed(), secret, now)).toBe(true)
})

test('every altered byte of the body is refused', () => {
  for (let index = 0; index < body.length; index += 1) {
    const altered = Buffer.from(body)
    altered[index] = (altered[index] ?? 0) ^ 1
    expect(isSignedByStripe(altered, signed(), secret, now)).toBe(false)
  }
  for (const other of [body.subarray(1), body.subarray(0, -1), Buffer.concat([body, body])])
    expect(isSignedByStripe(other, signed(), secret, now)).toBe(false)
})

test.each([
  [-301, false],
  [-300, true],
  [0, true],
  [300, true],
  [301, false],
  [86_400, false],
])('a signature %s s from now: accepted is %s', (offset, isAccepted) => {
  const header = signed({ timestamp: seconds + offset })
  expect(isSignedByStripe(body, header, secret, now)).toBe(isAccepted)
})

test('while the secret is rotated one right signature of several is enough', () => {
  const wrong = signed({ secret: 'whsec_old' }).slice(`t=${seconds},`.length)
  const [time = '', right = ''] = signed().split(',')
  for (const header of [`${time},${wrong},${right}`, `${time},${right},${wrong}`])
    expect(isSignedByStripe(body, header, secret, now)).toBe(true)
  expect(isSignedByStripe(body, `${time},${wrong},${wrong}`, secret, now)).toBe(false)
})

test.each([
  ['none', undefined],
  ['an empty one', ''],
  ['only a time', `t=${seconds}`],
  ['only a signature', signed().split(',')[1]],
  ['the test scheme v0', signed().replace('v1=', 'v0=')],
  ['a capital signature', signed().replace(/v1=.*/, (text) => text.toUpperCase())],
  ['two times', `t=${seconds},${signed()}`],
  ['a time that is no number', signed().replace(/t=\d+/, 't=NaN')],
  ['a time in milliseconds', signed({ timestamp: now })],
  ['a very long one', `${signed()},${'v0=x,'.repeat(1_000)}`],
])('a header with %s is refused', (_, header) => {
  expect(isSignedByStripe(body, header, secret, now)).toBe(false)
})

test("whatever arrives, what we accept Stripe's library accepts too", () => {
  fc.assert(
    fc.property(
      fc.string(),
      fc.integer({ min: -400, max: 400 }),
      fc.boolean(),
      (text, offset, isOurs) => {
        const timestamp = seconds + offset
        const header = signed({ payload: text, timestamp, ...(isOurs ? {} : { secret: 'other' }) })
        const bytes = Buffer.from(text)
        const isAccepted = isSignedByStripe(bytes, header, secret, now)
        expect(isAccepted).toBe(isOurs && Math.abs(offset) <= 300)
        if (isAccepted) expect(stripeAccepts(bytes, header)).toBe(true)
      },
    ),
    { numRuns: 300, seed: 1 },
  )
})
