/** Calls that wait at the same moment, on one instance of several. */
import { expect, test } from 'vitest'
import { Decisions } from '../../../../engine/charging/authorization/decisions.ts'
import { Reservations } from '../../../../engine/charging/authorization/reservations.ts'
import { Customer } from '../../../../engine/charging/customers/customer.ts'
import type { Counting } from '../../../../engine/charging/customers/customer-limits.ts'
import type { Customers } from '../../../../engine/charging/customers/customers.ts'
import { Meter } from '../../../../engine/charging/spending-caps/meter.ts'
import { RateDeck } from '../../../../engine/charging/pricing/rate-table.ts'
import { walletShares } from '../../../../engine/shares/instance-shares.ts'
import { noHold, type Share } from '../../../../schema/contracts/limits.ts'
import { question, start } from '../../../support/books.ts'
import { shareDatabase } from '../../../support/share-database.ts'

const terms = {
  customerId: 1,
  name: 'acme',
  tenantId: null,
  isActive: true,
  planId: 1,
  walletId: 1,
  currency: 'USD',
  creditLimitMicros: 0,
  maxConcurrentCalls: 5,
  maxCps: 3,
  maxDailySpendMicros: 0,
  maxCallSeconds: 0,
  lowBalanceMicros: 0,
}
const minuteMicros = 60_000
const rate = {
  planId: 1,
  tariff: {
    prefix: '1',
    currency: 'USD',
    connectFeeMicros: 0,
    decimals: 4,
    firstIncrementSeconds: 1,
    firstRatePerMinuteMicros: minuteMicros,
    incrementSeconds: 1,
    ratePerMinuteMicros: minuteMicros,
  },
  isBlocked: false,
  effectiveFrom: null,
  effectiveTo: null,
}
/** Other instances have to be asked for room, and have it. */
const share: Share = {
  isAnswered: true,
  elsewhere: 0,
  admits: (_, own = 0) => own > 0,
  mayAdmit: () => true,
  obtain: () => Promise.resolve({ isGiven: true, isKnown: true, end: () => undefined }),
  noted: () => undefined,
}

/**
 * Decisions on an instance that shares limits and wallets with others; of the wallet it has nothing
 * yet.
 */
function decisionsOn(room: Share, meters: readonly Meter[] = []) {
  const { shares: money, database, pass } = shareDatabase(0, walletShares())
  database.bound = 1_000_000
  const payer = new Customer(terms, 1_000_000n, {
    limits: { of: () => room },
    money,
    now: () => start,
  })
  const books = {
    customers: { byNumber: () => payer } as unknown as Customers,
    rates: new RateDeck([rate]),
    reservations: new Reservations(),
    guards: {
      endsCalls: false,
      isEnded: () => false,
      of: () => ({ kind: 'capped', meters }) as const,
      metersOf: () => meters,
    },
  }
  const decisions = new Decisions({
    books: () => books,
    isOverloaded: () => false,
    unknownCaller: 'deny',
    now: () => start,
    canHold: () => money.canHold,
    failMode: 'closed',
    onNew: () => undefined,
    caps: { obtain: async (_, micros) => (await meters[0]?.share.obtainAmount(micros)) ?? noHold },
  })
  const dial = async (uuid: string) => decisions.authorize(question(uuid, '1555'))
  return { decisions, payer, dial, pass }
}

test('calls that wait for money and room at once get their own, and their starts count once', async () => {
  const { payer, dial, pass } = decisionsOn(share)
  const granted = { kind: 'granted' }
  const both = Promise.all([dial('a'), dial('b')])
  await pass(50)
  expect(await both).toMatchObject([granted, granted])
  expect(payer).toMatchObject({ openCalls: 2, reservedMicros: BigInt(2 * minuteMicros) })
  const more = [dial('c'), dial('d')]
  await pass(50)
  expect(await Promise.all(more)).toMatchObject([granted, { code: 'cps_limit' }])
})

test('another call does not take what one has obtained that still waits for room', async () => {
  let answer = (): void => undefined
  const answered = new Promise<void>((resolve) => (answer = resolve))
  let asked = 0
  const slow: Share = {
    ...share,
    obtain: async () => {
      asked += 1
      if (asked <= 2) await answered
      return { isGiven: true, isKnown: true, end: () => undefined }
    },
  }
  const { decisions, dial, pass } = decisionsOn(slow)
  const first = dial('a')
  await pass(50)
  const second = dial('b')
  await pass(50)
  expect(await second).toMatchObject({ kind: 'granted' })
  answer()
  expect(await first).toMatchObject({ kind: 'granted' })
  const extended = decisions.extend('a', 50)
  await pass(50)
  expect(await extended).toMatchObject({ kind: 'granted' })
})

test('another call does not take the part of a cap that one has obtained', async () => {
  const guard = {
    capUuid: 'guard',
    scope: 'customer' as const,
    scopeId: 1,
    prefix: '',
    action: 'cap' as const,
    amountMicros: 170_000,
    currency: 'USD',
    per: 'duration' as const,
    extension: null,
    startsAt: start,
    expiresAt: null,
    endsCallsBefore: null,
  }
  const kind = { kind: 'cap', aheadSeconds: 0, busyWaitMs: 500 } as const
  const caps = shareDatabase(0, kind)
  const meter = new Meter(guard, start, caps.shares)
  const { decisions, dial, pass: passMoney } = decisionsOn(share, [meter])
  const pass = (ms: number) => Promise.all([caps.pass(ms), passMoney(ms)])
  const both = Promise.all([dial('a'), dial('b')])
  await pass(50)
  expect(await both).toMatchObject([{ kind: 'granted' }, { kind: 'granted' }])
  const extended = decisions.extend('a', 50)
  await pass(50)
  expect(await extended).toMatchObject({ kind: 'granted', reservation: { grantedSeconds: 110 } })
  const last = dial('c')
  await pass(50)
  expect(await last).toMatchObject({ kind: 'denied', code: 'spend_guard' })
})

// ---- where other instances count against the limits of a customer ----

/**
 * A share in which there is no room: the limit is reached, or (not heard) what others use is
 * unknown.
 */
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
  return customer.limits.admit(0, { isCounted, calls: noHold, starts: noHold }, counting)
}

test('against a limit of which nothing is heard the calls of the instance alone can count; a limit that is heard holds', () => {
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
