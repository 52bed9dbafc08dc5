/** What was unusual about a call, against the calls of its customer in the 14 days before. */
import { DAY_MS } from '../../schema/clock.ts'
import { moneyToDecimal } from '../../schema/columns.ts'
import type { Store } from '../../schema/open.ts'
import { all } from '../../schema/sql/query.ts'
import { plural } from './anomalies/finding.ts'

const PAST_DAYS = 14
/** The newest ones: about 4 ms. */
const MAX_PAST = 2_000
/** Fewer tell nothing. */
const MIN_PAST = 10
/** Times the mean of the calls that cost something, and one unit of the currency at least. */
const DEAR_FACTOR = 5
const DEAR_MICROS = 1_000_000

interface ComparedCall {
  readonly start_stamp: number
  readonly source_address: string
  readonly caller_id_number: string
  readonly rate_prefix: string | null
  readonly cost_micros: number
}

export interface PaidCall extends ComparedCall {
  readonly customer_id: number | null
}

/** Empty: nothing, or there is too little to compare it with. */
export async function unusualAbout(
  { store, tenantId }: { readonly store: Store; readonly tenantId: number | null },
  call: PaidCall,
): Promise<{ readonly signs: readonly string[]; readonly compared: number }> {
  const { customer_id: customerId, start_stamp: start } = call
  if (customerId === null) return { signs: [], compared: 0 }
  const query = store.db
    .selectFrom('cdr')
    .select(['start_stamp', 'source_address', 'caller_id_number', 'rate_prefix', 'cost_micros'])
    .where('customer_id', '=', customerId)
    .where('start_stamp', '>=', start - PAST_DAYS * DAY_MS)
    .where('start_stamp', '<', start)
    .$if(tenantId !== null, (own) => own.where('tenant_id', '=', tenantId))
    .orderBy('start_stamp', 'desc')
    .limit(MAX_PAST)
  const past = await all(store, query)
  return { signs: signsOf(call, past), compared: past.length }
}

/** Pure. */
function signsOf(call: ComparedCall, past: readonly ComparedCall[]): readonly string[] {
  if (past.length < MIN_PAST) return []
  const of = `of the customer's last ${plural(past.length, 'call')} in ${PAST_DAYS} days`
  const isFirst = (name: 'source_address' | 'caller_id_number' | 'rate_prefix'): boolean =>
    past.every((each) => each[name] !== call[name])
  const charged = past.filter(({ cost_micros }) => cost_micros > 0)
  const mean =
    charged.reduce((sum, each) => sum + each.cost_micros, 0) / Math.max(1, charged.length)
  const isDear = call.cost_micros >= DEAR_MICROS && call.cost_micros >= mean * DEAR_FACTOR
  return [
    isFirst('source_address') ? `None ${of} came from ${call.source_address}.` : '',
    isFirst('caller_id_number') ? `None ${of} had this caller.` : '',
    call.rate_prefix !== null && isFirst('rate_prefix')
      ? `None ${of} went to prefix ${call.rate_prefix}.`
      : '',
    isDear && charged.length > 0
      ? `It cost ${moneyToDecimal(call.cost_micros)}; the mean ${of} is ${moneyToDecimal(Math.round(mean))}.`
      : '',
  ].filter((sign) => sign !== '')
}
