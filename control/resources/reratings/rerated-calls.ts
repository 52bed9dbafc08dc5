/** Calls that a rate plan prices, a bounded number at a time, and what each costs by it. */
import { type Selectable, sql } from 'kysely'
import type {
  PastCallTimes,
  ExitCodes,
  OcsPort,
  Quote,
} from '../../../schema/contracts/charging.ts'
import {
  ANY_INTERNATIONAL,
  countedNumbers,
  international,
  internationalPrefix,
  withoutPlus,
} from '../../../schema/rules/numbers.ts'
import { type Tables, all, first } from '../../../schema/sql/query.ts'
import type { ReratingTable } from '../../../schema/tables/reratings.ts'

export type Prices = Pick<OcsPort, 'pastQuote' | 'exitCodes'>

/** The calls that are meant. */
export type ReratedCalls = Pick<
  Selectable<ReratingTable>,
  | 'kind'
  | 'rate_plan_id'
  | 'tenant_id'
  | 'currency'
  | 'from_at'
  | 'before_at'
  | 'customer_id'
  | 'carrier_id'
  | 'prefix'
  | 'priced_at'
>

/** A record, in the order of starts. */
export interface Position {
  readonly at: number
  readonly id: number
}

/** A call with its present price: that of the customer, or that of the carrier. */
export interface PricedCall {
  readonly id: number
  readonly call_uuid: string
  readonly start_stamp: number
  readonly answer_stamp: number | null
  readonly destination_number: string
  readonly carrier_number: string | null
  readonly billsec: number
  readonly customer_id: number | null
  readonly denial_code: string | null
  readonly prefix: string | null
  readonly micros: number | null
  readonly currency: string | null
}

export interface CallPage {
  readonly calls: readonly PricedCall[]
  /** The last record that was looked at, and how many were. */
  readonly upTo: Position
  readonly looked: number
  readonly isLast: boolean
}

/** Records that are looked at in one step: an index has what is needed of them. */
const LOOKED = 2_000

/**
 * The calls of the next records after a position. The statements are bounded, however few of the
 * records match.
 *
 * @param most calls of a page.
 */
export async function nextCalls(
  store: Tables,
  meant: ReratedCalls,
  after: Position,
  most: number,
): Promise<CallPage> {
  const end = await endOf(store, meant, after)
  const calls = await all(store, callsOf(store, meant, after, end, most))
  const last = calls.at(-1)
  const isFull = last !== undefined && calls.length === most
  const upTo = isFull ? { at: last.start_stamp, id: last.id } : end
  const looked = await countOf(store, meant, after, upTo)
  return { calls, upTo, looked, isLast: !isFull && looked < LOOKED }
}

const recordsOf = ({ db }: Tables, meant: ReratedCalls, after: Position) =>
  db
    .selectFrom('cdr')
    .where('start_stamp', '>=', after.at)
    .where('start_stamp', '<', meant.before_at)
    .where(sql<boolean>`(cdr.start_stamp, cdr.id) > (${after.at}, ${after.id})`)
    .$if(meant.customer_id !== null, (rows) => rows.where('customer_id', '=', meant.customer_id))

async function endOf(store: Tables, meant: ReratedCalls, after: Position): Promise<Position> {
  const end = recordsOf(store, meant, after)
    .select(['start_stamp as at', 'id'])
    .orderBy('start_stamp')
    .orderBy('id')
    .limit(1)
    .offset(LOOKED - 1)
  return (await first(store, end)) ?? { at: meant.before_at, id: 0 }
}

async function countOf(
  store: Tables,
  meant: ReratedCalls,
  after: Position,
  upTo: Position,
): Promise<number> {
  const query = recordsOf(store, meant, after)
    .where(sql<boolean>`(cdr.start_stamp, cdr.id) <= (${upTo.at}, ${upTo.id})`)
    .select(({ fn }) => fn.countAll<number>().as('records'))
  return (await first(store, query))?.records ?? 0
}

/** All records of the period. */
export async function recordsIn(store: Tables, meant: ReratedCalls): Promise<number> {
  const query = recordsOf(store, meant, { at: meant.from_at, id: 0 })
  const counted = query.select(({ fn }) => fn.countAll<number>().as('records'))
  return (await first(store, counted))?.records ?? 0
}

function callsOf(
  store: Tables,
  meant: ReratedCalls,
  after: Position,
  upTo: Position,
  most: number,
) {
  const rows = recordsOf(store, meant, after)
    .where(sql<boolean>`(cdr.start_stamp, cdr.id) <= (${upTo.at}, ${upTo.id})`)
    .where('disposition', '=', 'ANSWERED')
    .where('billsec', '>', 0)
    .where(meant.kind === 'sold' ? isSold(store, meant) : isBought(store, meant))
    .select(['id', 'call_uuid', 'start_stamp', 'answer_stamp', 'destination_number', 'billsec'])
    .select(['customer_id', 'carrier_number', 'denial_code'])
    .orderBy('start_stamp')
    .orderBy('id')
    .limit(most)
  const priced =
    meant.kind === 'sold'
      ? rows.select(['rate_prefix as prefix', 'cost_micros as micros', 'currency'])
      : rows.select([
          'carrier_prefix as prefix',
          'carrier_cost_micros as micros',
          'carrier_currency as currency',
        ])
  return priced.$castTo<PricedCall>()
}

/** Calls that customers of the plan have paid. A call without a price was free. */
function isSold({ db }: Tables, { rate_plan_id: planId, tenant_id: tenantId }: ReratedCalls) {
  const customers = db
    .selectFrom('customer')
    .select('id')
    .where('rate_plan_id', '=', planId)
    .$if(tenantId !== null, (rows) => rows.where('tenant_id', '=', tenantId))
  // The plus keeps SQLite from the index of customers, which has no order of starts.
  return sql<boolean>`+cdr.customer_id IN ${customers}
    AND (cdr.rate_prefix IS NOT NULL OR cdr.cost_micros > 0)`
}

/** Calls that carriers of the plan have answered, under the names that these have now. */
function isBought({ db }: Tables, meant: ReratedCalls) {
  const { rate_plan_id: planId, tenant_id: tenantId, carrier_id: carrierId } = meant
  const carriers = db
    .selectFrom('carrier')
    .select(sql`1`.as('found'))
    .where('carrier.rate_plan_id', '=', planId)
    .where(sql<boolean>`carrier.name = cdr.carrier`)
    .where(
      sql<boolean>`(cdr.carrier_cost_micros IS NULL
      OR coalesce(cdr.carrier_tenant_id, 0) = coalesce(carrier.tenant_id, 0))`,
    )
    .$if(tenantId !== null, (rows) => rows.where('carrier.tenant_id', '=', tenantId))
    .$if(carrierId !== null, (rows) => rows.where('carrier.id', '=', carrierId ?? 0))
  return sql<boolean>`cdr.carrier IS NOT NULL AND cdr.direction = 'outbound'
    AND EXISTS ${carriers}`
}

export type NewPrice =
  /** The called number is not meant. */
  | { readonly kind: 'other' }
  /** It stays as it is. */
  | { readonly kind: 'without_rate' | 'unknown_number' | 'other_currency' }
  | { readonly kind: 'priced'; readonly micros: number; readonly prefix: string }

/** Prices the call by the plan as it is now. */
function newPriceOf(call: PricedCall, meant: ReratedCalls, prices: Prices): NewPrice {
  const { exitCodes } = prices
  if (!beginsWith(call.destination_number, meant.prefix, exitCodes)) return { kind: 'other' }
  // A carrier that had no price: which number was sent to it is not known.
  if (call.micros === null) return { kind: 'unknown_number' }
  if (call.currency !== null && call.currency !== meant.currency) return { kind: 'other_currency' }
  const numbers = numbersOf(call, meant, exitCodes)
  const { prefix } = call
  if (prefix !== null && !numbers.some((number) => beginsWith(number, prefix, exitCodes)))
    return { kind: 'unknown_number' }
  const quote = quoteOf(call, meant, numbers, prices)
  if (quote === undefined || quote.rate.isBlocked) return { kind: 'without_rate' }
  if (quote.rate.tariff.currency !== meant.currency) return { kind: 'other_currency' }
  return { kind: 'priced', prefix: quote.rate.tariff.prefix, micros: quote.costMicros }
}

/** Counts and sums of calls that are looked at. */
interface Tally {
  readonly counts: {
    calls: number
    without_rate: number
    unknown_number: number
    other_currency: number
  }
  readonly sums: { before: bigint; after: bigint }
}

/** Adds up calls with their new prices, and yields those that these change. */
export function* changedCalls(
  calls: readonly PricedCall[],
  meant: ReratedCalls,
  prices: Prices,
  { counts, sums }: Tally,
) {
  for (const call of calls) {
    const price = newPriceOf(call, meant, prices)
    if (price.kind === 'other') continue
    if (price.kind !== 'priced') {
      counts[price.kind] += 1
      continue
    }
    counts.calls += 1
    const micros = chargedMicros(call, price.micros)
    sums.before += BigInt(call.micros ?? 0)
    sums.after += BigInt(micros)
    if (isOther(call, { micros, prefix: price.prefix })) yield { call, price, micros }
  }
}

export const isOther = (
  one: Pick<PricedCall, 'micros' | 'prefix'>,
  other: { readonly micros: number; readonly prefix: string | null },
): boolean => one.micros !== other.micros || one.prefix !== other.prefix

/** A call that was cut because the money was gone never becomes dearer: nobody offered it more. */
export const chargedMicros = (
  { denial_code: denial, micros: before }: Pick<PricedCall, 'denial_code' | 'micros'>,
  micros: number,
): number =>
  denial === 'insufficient_funds' && before !== null ? Math.min(before, micros) : micros

function numbersOf(
  { destination_number: dialled, carrier_number: sent }: PricedCall,
  { kind }: ReratedCalls,
  exitCodes: ExitCodes | undefined,
): readonly string[] {
  if (kind === 'sold' || sent === null) return [dialled]
  return [...countedNumbers(sent, dialled, exitCodes), dialled]
}

/** The dearest of several numbers that a carrier's rules make of one, as at the answer. */
function quoteOf(
  call: PricedCall,
  meant: ReratedCalls,
  numbers: readonly string[],
  prices: Prices,
): Quote | undefined {
  const { billsec, destination_number: dialled } = call
  const { rate_plan_id: planId } = meant
  const times = timesOf(call, meant)
  const counted = numbers.length === 1 ? numbers : numbers.slice(0, -1)
  let dearest: { readonly number: string; readonly minute: Quote } | undefined
  for (const number of counted) {
    const minute = prices.pastQuote(planId, number, 60, times)
    if (minute === undefined || dearest?.minute.rate.isBlocked) continue
    const isDearer = dearest === undefined || minute.costMicros > dearest.minute.costMicros
    if (isDearer || minute.rate.isBlocked) dearest = { number, minute }
  }
  return prices.pastQuote(planId, dearest?.number ?? dialled, billsec, times)
}

/**
 * The rates of a call that is sold are those of its start, with the period of its answer; of one
 * that is bought, all is decided at the answer. Other rates may be wanted, but its periods stay.
 */
function timesOf(
  { start_stamp: start, answer_stamp: answer, customer_id: customerId }: PricedCall,
  { kind, priced_at: pricedAt }: ReratedCalls,
): PastCallTimes {
  const answeredAt = answer ?? start
  const startedAt = kind === 'sold' ? start : answeredAt
  const at = pricedAt ?? startedAt
  return { at, startedAt, answeredAt, ...(kind === 'sold' && { customerId }) }
}

/** As prices are found: a prefix that is an exit code alone stands for all numbers abroad. */
function beginsWith(number: string, prefix: string, exitCodes: ExitCodes | undefined): boolean {
  const digits = internationalPrefix(prefix, exitCodes)
  if (digits === '' || digits === ANY_INTERNATIONAL) return true
  return withoutPlus(international(number, exitCodes)).startsWith(digits)
}
