/** What was unusual about a call, against the calls of its customer in the 14 days before. */
import { plural } from '../../http/clean-text.ts'
import { sql } from 'kysely'
import { DAY_MS } from '../../../schema/clock.ts'
import { moneyToDecimal } from '../../../schema/columns.ts'
import type { Store } from '../../../schema/open.ts'
import { first } from '../../../schema/sql/query.ts'

const PAST_DAYS = 14
/** The newest ones: about 4 ms. */
const MAX_PAST = 2_000
/** Fewer tell nothing. */
const MIN_PAST = 10
/** Times the mean of the calls that cost something, and one unit of the currency at least. */
const DEAR_FACTOR = 5
const DEAR_MICROS = 1_000_000

interface ComparedCall {
  readonly source_address: string
  readonly caller_id_number: string
  readonly rate_prefix: string | null
  readonly cost_micros: number
}

export interface PaidCall extends ComparedCall {
  readonly start_stamp: number
  readonly customer_id: number | null
}

/** Empty: nothing, or there is too little to compare it with. */
export async function unusualAbout(
  { store, tenantId }: { readonly store: Store; readonly tenantId: number | null },
  call: PaidCall,
): Promise<{ readonly signs: readonly string[]; readonly compared: number }> {
  const { customer_id: customerId, start_stamp: start } = call
  if (customerId === null) return { signs: [], compared: 0 }
  const some = store.db
    .selectFrom('cdr')
    .select(['source_address', 'caller_id_number', 'rate_prefix', 'cost_micros'])
    .where('customer_id', '=', customerId)
    .where('start_stamp', '>=', start - PAST_DAYS * DAY_MS)
    .where('start_stamp', '<', start)
    .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId))
    .orderBy('start_stamp', 'desc')
    .limit(MAX_PAST)
    .as('some')
  const query = store.db.selectFrom(some).select((row) => {
    const like = (name: 'source_address' | 'caller_id_number' | 'rate_prefix') =>
      row.fn.countAll<number>().filterWhere(name, '=', call[name]).as(name)
    return [
      row.fn.countAll<number>().as('calls'),
      like('source_address'),
      like('caller_id_number'),
      like('rate_prefix'),
      row.fn.countAll<number>().filterWhere('cost_micros', '>', 0).as('charged'),
      sql<number>`CAST(coalesce(sum(cost_micros) FILTER (WHERE cost_micros > 0), 0) AS double precision)`.as(
        'costMicros',
      ),
    ]
  })
  const past = await first(store, query)
  return past === undefined
    ? { signs: [], compared: 0 }
    : { signs: signsOf(call, past), compared: past.calls }
}

/** How many calls had the same, and what those that cost something came to. */
interface Past {
  readonly calls: number
  readonly source_address: number
  readonly caller_id_number: number
  readonly rate_prefix: number
  readonly charged: number
  readonly costMicros: number
}

/** Pure. */
function signsOf(call: ComparedCall, past: Past): readonly string[] {
  if (past.calls < MIN_PAST) return []
  const of = `of the customer's last ${plural(past.calls, 'call')} in ${PAST_DAYS} days`
  const mean = past.costMicros / Math.max(1, past.charged)
  const isDear = call.cost_micros >= DEAR_MICROS && call.cost_micros >= mean * DEAR_FACTOR
  return [
    past.source_address === 0 ? `None ${of} came from ${call.source_address}.` : '',
    past.caller_id_number === 0 ? `None ${of} had this caller.` : '',
    call.rate_prefix !== null && past.rate_prefix === 0
      ? `None ${of} went to prefix ${call.rate_prefix}.`
      : '',
    isDear && past.charged > 0
      ? `It cost ${moneyToDecimal(call.cost_micros)}; the mean ${of} is ${moneyToDecimal(Math.round(mean))}.`
      : '',
  ].filter((sign) => sign !== '')
}
