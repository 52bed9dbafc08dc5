/**
 * Sums the calls of each carrier in a period. Read out of `cdr_carrier_start` alone, which has no
 * row for other calls, in slices: a thread that makes reports can go on with others between them.
 */
import { sql } from 'kysely'
import type { Store } from '../../schema/storage/store.ts'
import { all, first } from '../../schema/sql/query.ts'
import type { RecordScope } from './columns/record-tests.ts'

/**
 * Sums of one direction. ASR and ACD as ITU-T E.425 and E.437 have them: seizures that were
 * answered, and their mean length.
 */
export interface DirectionSums {
  readonly calls: number
  readonly answered: number
  readonly billsec: number
  /** Null without a call. */
  readonly asr_percent: number | null
  /** Null without an answered call. */
  readonly acd_seconds: number | null
}

export interface CarrierSums {
  readonly carrier: string
  /** Sums of the calls to the carrier, and of those from it. */
  readonly outbound: DirectionSums
  readonly inbound: DirectionSums
}

/** Records of a slice: about 5 ms. */
const SLICE = 10_000
/** More carriers than this have calls in no period; the rest is left out. */
const MAX_CARRIERS = 1_000

interface CallCounts {
  calls: number
  answered: number
  billsec: number
}

type CarrierSumsRequest = Pick<RecordScope, 'tenantId' | 'from' | 'before'>

/** Yields after each slice. */
export async function* carrierSums(
  store: Pick<Store, 'statements' | 'db'>,
  { tenantId, from, before }: CarrierSumsRequest,
): AsyncGenerator<void, readonly CarrierSums[], undefined> {
  const sums = new Map<string, { readonly outbound: CallCounts; readonly inbound: CallCounts }>()
  for (let start = from; start < before;) {
    const end = Math.min(before, await sliceEnd(store, start, before))
    for (const row of await slice(store, tenantId, start, end)) {
      const { carrier, direction, calls, answered, billsec } = row
      if (carrier === null || (!sums.has(carrier) && sums.size === MAX_CARRIERS)) continue
      const known = sums.get(carrier) ?? { outbound: none(), inbound: none() }
      sums.set(carrier, known)
      const sum = direction === 'outbound' ? known.outbound : known.inbound
      sum.calls += calls
      sum.answered += answered
      sum.billsec += billsec
    }
    start = end
    yield
  }
  return [...sums]
    .map(([carrier, { outbound, inbound }]) => ({
      carrier,
      outbound: withRatios(outbound),
      inbound: withRatios(inbound),
    }))
    .toSorted((a, b) => (a.carrier < b.carrier ? -1 : 1))
}

const none = (): CallCounts => ({ calls: 0, answered: 0, billsec: 0 })

const withRatios = ({ calls, answered, billsec }: CallCounts): DirectionSums => ({
  calls,
  answered,
  billsec,
  asr_percent: calls === 0 ? null : Math.round((answered / calls) * 1_000) / 10,
  acd_seconds: answered === 0 ? null : Math.round((billsec / answered) * 10) / 10,
})

/** The time after so many records of `start` or later; at least a millisecond later. */
async function sliceEnd(
  store: Pick<Store, 'statements' | 'db'>,
  start: number,
  before: number,
): Promise<number> {
  const query = store.db
    .selectFrom('cdr')
    .select('start_stamp')
    .where('carrier', 'is not', null)
    .where('start_stamp', '>=', start)
    .where('start_stamp', '<', before)
    .orderBy('start_stamp')
    .limit(1)
    .offset(SLICE)
  const last = (await first(store, query))?.start_stamp ?? before
  return Math.max(last, start + 1)
}

function slice(
  store: Pick<Store, 'statements' | 'db'>,
  tenantId: number | null,
  start: number,
  end: number,
) {
  let query = store.db
    .selectFrom('cdr')
    .select(({ fn }) => [
      'carrier',
      'direction',
      fn.countAll<number>().as('calls'),
      fn.countAll<number>().filterWhere('disposition', '=', 'ANSWERED').as('answered'),
      fn.sum<number>('billsec').as('billsec'),
    ])
    .where('carrier', 'is not', null)
    .where('start_stamp', '>=', start)
    .where('start_stamp', '<', end)
    .groupBy(['carrier', 'direction'])
  // The plus keeps SQLite from the index of tenants, which has rows of calls without a carrier,
  // too.
  if (tenantId !== null) query = query.where(sql`+tenant_id`, '=', tenantId)
  return all(store, query)
}
