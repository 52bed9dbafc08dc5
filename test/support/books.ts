/**
 * A database (with TEST_DATABASE=postgres one on a server) with a rate plan and customers, and an
 * OCS on it, in virtual time.
 */
import type { CallRecord, OpenCall } from '../../schema/contracts/call-record.ts'
import type { RateTable, CustomerTable } from '../../schema/tables/tenants.ts'
import type { LocalStore, Store } from '../../schema/storage/store.ts'
import { execute, insert } from '../../schema/sql/query.ts'
import { rangeColumns, rangeOf } from '../../schema/rules/number-ranges.ts'
import type { Insertable } from 'kysely'
import { Ocs } from '../../engine/charging/ocs.ts'
import type { EventSink } from '../../schema/contracts/engine.ts'
import { emptyStore } from './empty-store.ts'
import { journalOf } from './journals.ts'
import { ManualTime } from './manual-time.ts'
import { isOnPostgres } from './on-sqlite.ts'
import { hurried, onlyProcess } from './only-process.ts'
import { openTestStore, type TestStore } from './test-store.ts'

/** 2026-01-05T10:00:00Z. */
export const start = 1_767_607_200_000

/** Connect 0.40; first minute 0.20 in one step; then 0.10 per minute by the second. */
export const goldenRate = {
  prefix: '49',
  connect_fee_micros: 400_000,
  first_increment_seconds: 60,
  first_rate_per_minute_micros: 200_000,
  increment_seconds: 1,
  rate_per_minute_micros: 100_000,
}

/** 0.06 per minute, 0.001 per second. */
export const plainRate = {
  prefix: '1',
  first_rate_per_minute_micros: 60_000,
  rate_per_minute_micros: 60_000,
}

/** A store for tests that are about SQLite. */
export function freshStore(path = ':memory:'): LocalStore {
  return emptyStore(start, path)
}

export const openStore = (): Promise<TestStore> => openTestStore(start)

/** Rows in one statement. */
const AT_ONCE = 500

export async function addPlan(
  store: Store,
  rates: readonly Omit<Insertable<RateTable>, 'rate_plan_id'>[],
): Promise<number> {
  const plan = store.db.insertInto('rate_plan').values({ name: 'default', created_at: start })
  const planId = await insert(store, plan.returning('id'))
  const rows = rates.map((rate) => ({ ...rate, rate_plan_id: planId }))
  // SQLite takes several only with the same columns.
  const isUniform = new Set(rows.map((row) => Object.keys(row).join())).size === 1
  const atOnce = isUniform ? AT_ONCE : 1
  for (let first = 0; first < rows.length; first += atOnce) {
    const some = rows.slice(first, first + atOnce)
    await execute(store, store.db.insertInto('rate').values(some))
  }
  return planId
}

/** A customer with its wallet and a calling number equal to its name. */
export async function addCustomer(
  store: Store,
  customer: Partial<Insertable<CustomerTable>> & { readonly name: string },
): Promise<number> {
  const { db } = store
  const row = { created_at: start, updated_at: start, ...customer }
  const customerId = await insert(store, db.insertInto('customer').values(row).returning('id'))
  await addNumber(store, customerId, customer.name)
  const wallet = { customer_id: customerId, currency: 'USD', updated_at: start }
  await execute(store, db.insertInto('wallet').values(wallet))
  return customerId
}

/** A calling number of a customer. */
async function addNumber(store: Store, customerId: number, number: string): Promise<void> {
  const row = {
    ...rangeColumns(rangeOf(number)),
    number,
    customer_id: customerId,
    created_at: start,
    updated_at: start,
  }
  await execute(store, store.db.insertInto('phone_number').values(row))
}

export interface Books<S extends Store = TestStore> {
  readonly store: S
  readonly time: ManualTime
  readonly ocs: Ocs
  readonly log: string[]
  /** Time passes, and what falls due meanwhile is done. */
  readonly pass: (ms: number) => Promise<void>
  /** Lets time pass until it is done, a tenth of a second at a time. */
  readonly passUntil: (done: Promise<unknown>) => Promise<void>
}

const MAX_TRIES = 100

export async function ocsOn<S extends Store & Partial<Pick<TestStore, 'settled'>>>(
  store: S,
  time = new ManualTime(start),
  unknownCaller: 'deny' | 'allow' = 'deny',
  events?: EventSink,
): Promise<Books<S>> {
  const log: string[] = []
  const ocs = await Ocs.open({
    store,
    journal: journalOf(store, time.schedule),
    now: time.now,
    wallNow: time.wallNow,
    schedule: isOnPostgres ? hurried(time.schedule) : time.schedule,
    every: time.every,
    ...(isOnPostgres && { members: onlyProcess() }),
    unknownCaller,
    ...(events === undefined ? {} : { events }),
    log: (level, message) => log.push(`${level} ${message}`),
  })
  const pass = async (ms: number): Promise<void> => {
    time.advance(ms)
    await store.settled?.()
  }
  const passUntil = async (done: Promise<unknown>): Promise<void> => {
    const progress = { isOver: false }
    const over = done.finally(() => (progress.isOver = true))
    for (let tries = 0; !progress.isOver && tries < MAX_TRIES; tries += 1) await pass(100)
    await over
  }
  return { store, time, ocs, log, pass, passUntil }
}

let topUps = 0

export async function topUp(ocs: Ocs, customerId: number, amountMicros: number): Promise<void> {
  topUps += 1
  const ref = `top-up-${topUps}`
  await ocs.move({ customerId, kind: 'topup', amountMicros, ref, actor: 'test', note: null })
}

/**
 * An OCS with customer 1, called `+15550001`, who has `balanceMicros` and the golden and plain
 * rates.
 */
export async function customerWith(
  balanceMicros: number,
  terms: Partial<Insertable<CustomerTable>> = {},
): Promise<Books & { readonly customerId: number }> {
  const store = await openStore()
  const planId = await addPlan(store, [goldenRate, plainRate])
  const customerId = await addCustomer(store, { name: '+15550001', rate_plan_id: planId, ...terms })
  const books = await ocsOn(store)
  if (balanceMicros > 0) await topUp(books.ocs, customerId, balanceMicros)
  return { ...books, customerId }
}

export const question = (callUuid: string, callee = '4930123', caller = '+15550001') => ({
  callUuid,
  caller,
  callee,
  customerId: null,
  startedAt: start,
})

export function openCall(
  callUuid: string,
  answeredAt: number,
  more: Partial<OpenCall> = {},
): OpenCall {
  return {
    callUuid,
    callId: `${callUuid}@192.0.2.1`,
    direction: 'outbound',
    callerNumber: '+15550001',
    callerName: null,
    calledNumber: '4930123',
    startedAt: answeredAt - 2_000,
    answeredAt,
    postDialDelayMs: 180,
    denialCode: null,
    setId: 1,
    node: 'sip:192.0.2.10:5060;transport=udp',
    carrier: null,
    attempts: [],
    tenantId: null,
    customerId: null,
    ratePrefix: '49',
    currency: 'USD',
    sourceAddress: '192.0.2.1',
    isUnauthorizedByOcs: false,
    ...more,
  }
}

/** A call that talked for `billsec` seconds; 0: it was never answered. */
export function endedCall(
  callUuid: string,
  billsec: number,
  more: Partial<CallRecord> = {},
): CallRecord {
  const answeredAt = start + 2_000
  return {
    ...openCall(callUuid, answeredAt),
    answeredAt: billsec > 0 ? answeredAt : null,
    endedAt: answeredAt + billsec * 1_000,
    billsec,
    disposition: billsec > 0 ? 'ANSWERED' : 'NO ANSWER',
    sipCode: billsec > 0 ? 200 : 480,
    hangupCause: 'NORMAL_CLEARING',
    hangupBy: 'caller',
    isRecovered: false,
    ...more,
  }
}
