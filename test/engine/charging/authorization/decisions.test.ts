/** Calls that wait at the same moment, on one node of several. */
import { expect, test } from 'vitest'
import { Decisions } from '../../../../engine/charging/authorization/decisions.ts'
import { Reservations } from '../../../../engine/charging/authorization/reservations.ts'
import { Customer } from '../../../../engine/charging/customers/customer.ts'
import type { Customers } from '../../../../engine/charging/customers/customers.ts'
import { Meter } from '../../../../engine/charging/guards/meter.ts'
import { Lease } from '../../../../engine/charging/leases/lease.ts'
import type { Leases } from '../../../../engine/charging/leases/leases.ts'
import { RateTable } from '../../../../engine/charging/pricing/rate-table.ts'
import type { Share, SpendGuard } from '../../../../schema/contracts/limits.ts'
import { question, start } from '../../../support/books.ts'

const terms = {
  customerId: 1,
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
/** Other nodes have to be asked for room, and have it. */
const share: Share = {
  isHeard: true,
  admits: (_, own = 0) => own > 0,
  mayAdmit: () => true,
  obtain: () => Promise.resolve({ isGiven: true, end: () => undefined }),
  noted: () => undefined,
}

const noGuards = { endsCalls: false, isEnded: () => false }

test('a call whose money another one took while both waited for room gets its own, and its start counts once', async () => {
  const lease = new Lease()
  const shared = { shares: { of: () => share }, now: () => start }
  const payer = new Customer(terms, 1_000_000n, lease, shared)
  let version = 0
  const lend = (amountMicros: bigint): void =>
    lease.stored({ walletId: 1, amountMicros, version: (version += 1) })
  const leases = {
    isValid: true,
    isQuiet: () => false,
    reserved: () => undefined,
    obtain: async (_: Customer, amountMicros: bigint) => {
      lend(lease.amountMicros + amountMicros)
      return true
    },
  } as unknown as Leases
  const books = {
    customers: { byNumber: () => payer } as unknown as Customers,
    rates: new RateTable([rate]),
    reservations: new Reservations(),
    guards: { ...noGuards, of: () => undefined, metersOf: () => [] },
  }
  const decisions = new Decisions({
    books: () => books,
    isOverloaded: () => false,
    unknownCaller: 'deny',
    now: () => start,
    leases,
    failMode: 'closed',
    onNew: () => undefined,
    caps: { obtain: () => Promise.resolve(true) },
  })
  lend(BigInt(minuteMicros))
  const dial = async (uuid: string) => decisions.authorize(question(uuid, '1555'))
  const granted = { kind: 'granted' }
  expect(await Promise.all([dial('a'), dial('b')])).toMatchObject([granted, granted])
  expect(payer).toMatchObject({ openCalls: 2, reservedMicros: BigInt(2 * minuteMicros) })
  expect([await dial('c'), await dial('d')]).toMatchObject([granted, { code: 'cps_limit' }])
})

test('a call whose money another one used while it waited asks once more, and is not refused', async () => {
  const lease = new Lease()
  const payer = new Customer(terms, 1_000_000n, lease, {
    shares: { of: () => share },
    now: () => start,
  })
  let isOthersTurn = true
  let version = 0
  const obtain = (_: Customer, micros: bigint): Promise<boolean> => {
    const amountMicros = lease.amountMicros + micros
    if (!isOthersTurn) lease.stored({ walletId: 1, amountMicros, version: (version += 1) })
    isOthersTurn = !isOthersTurn
    return Promise.resolve(true)
  }
  const leases = { isValid: true, isQuiet: () => false, reserved: () => undefined, obtain }
  const books = {
    customers: { byNumber: () => payer } as unknown as Customers,
    rates: new RateTable([rate]),
    reservations: new Reservations(),
    guards: { ...noGuards, of: () => undefined, metersOf: () => [] },
  }
  const decisions = new Decisions({
    books: () => books,
    isOverloaded: () => false,
    unknownCaller: 'deny',
    now: () => start,
    leases: leases as unknown as Leases,
    failMode: 'closed',
    onNew: () => undefined,
    caps: { obtain: () => Promise.resolve(true) },
  })
  expect(await decisions.authorize(question('a', '1555'))).toMatchObject({ kind: 'granted' })
  expect(await decisions.extend('a', 50)).toMatchObject({ kind: 'granted' })
})

test('a call whose part of a cap another one used while it waited asks once more, and is not refused', async () => {
  const payer = new Customer(terms, 1_000_000n)
  const guard: SpendGuard = {
    guardUuid: 'guard',
    scope: 'customer',
    scopeId: 1,
    prefix: '',
    action: 'cap',
    amountMicros: 1_000_000,
    currency: 'USD',
    per: 'duration',
    extension: null,
    startsAt: start,
    expiresAt: null,
    endsCallsBefore: null,
  }
  const meter = new Meter(guard, start, () => undefined)
  const books = {
    customers: { byNumber: () => payer } as unknown as Customers,
    rates: new RateTable([rate]),
    reservations: new Reservations(),
    guards: {
      ...noGuards,
      of: () => ({ kind: 'capped', meters: [meter] }) as const,
      metersOf: () => [meter],
    },
  }
  let taken = 0
  let isOthersTurn = true
  const obtain = (_: readonly Meter[], micros: number): Promise<boolean> => {
    const given = micros - meter.freeMicros
    meter.taken(given, (taken += given))
    if (isOthersTurn) meter.hold(meter.freeMicros)
    isOthersTurn = !isOthersTurn
    return Promise.resolve(true)
  }
  const decisions = new Decisions({
    books: () => books,
    isOverloaded: () => false,
    unknownCaller: 'deny',
    now: () => start,
    leases: undefined,
    failMode: 'closed',
    onNew: () => undefined,
    caps: { obtain },
  })
  expect(await decisions.authorize(question('a', '1555'))).toMatchObject({ kind: 'granted' })
  expect(await decisions.extend('a', 50)).toMatchObject({
    kind: 'granted',
    reservation: { grantedSeconds: 110 },
  })
})
