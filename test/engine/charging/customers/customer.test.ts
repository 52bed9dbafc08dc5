/** What the limits of a customer say where other nodes count against them, too. */
import { expect, test } from 'vitest'
import { type Counting, Customer } from '../../../../engine/charging/customers/customer.ts'
import { noHold, type Share } from '../../../../schema/contracts/limits.ts'

const terms = {
  customerId: 1,
  tenantId: null,
  isActive: true,
  planId: 1,
  walletId: 1,
  currency: 'USD',
  creditLimitMicros: 0,
  maxConcurrentCalls: 5,
  maxCps: 5,
  maxDailySpendMicros: 0,
  maxCallSeconds: 0,
  lowBalanceMicros: 0,
}

/** A share in which there is no room: the limit is reached, or (not heard) what others use is unknown. */
const full = (isAnswered: boolean): Share => ({
  isAnswered,
  elsewhere: 0,
  admits: () => false,
  mayAdmit: () => !isAnswered,
  obtain: () => Promise.resolve(noHold),
  noted: () => undefined,
})

const answerOf = (
  { calls, starts }: { readonly calls: Share; readonly starts: Share },
  counting: Counting,
  isCounted = false,
) => {
  const shares = { of: (resource: string) => (resource.endsWith('calls') ? calls : starts) }
  const customer = new Customer(terms, 0n, { limits: shares, now: () => 0 })
  return customer.admit(0, { isCounted, calls: noHold, starts: noHold }, counting)
}

test('against a limit of which nothing is heard the calls of the node alone can count; a limit that is heard holds', () => {
  const unreachable = { calls: full(false), starts: full(false) }
  expect(answerOf(unreachable, 'all')).toBe('unreachable')
  expect(answerOf(unreachable, 'answered')).toBe('room')
  expect(answerOf({ ...unreachable, calls: full(true) }, 'answered')).toBe('concurrent_limit')
  expect(answerOf({ ...unreachable, starts: full(true) }, 'answered')).toBe('cps_limit')
  expect(answerOf({ ...unreachable, starts: full(true) }, 'alone')).toBe('room')
})

test('a call whose start counts already is not refused for starts of which nothing is heard', () => {
  const calls = { ...full(true), admits: () => true }
  expect(answerOf({ calls, starts: full(false) }, 'all', true)).toBe('room')
})
