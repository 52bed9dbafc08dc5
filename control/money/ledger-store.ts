/**
 * Ledger entries of a customer, as the API shows them. Written by `engine/charging/ledger` only.
 */
import type { Selectable } from 'kysely'
import { exactSum, moneyToDecimal, moneyToNumber, timeToText } from '../../schema/columns.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all } from '../../schema/sql/query.ts'
import { countOf } from '../http/rows.ts'
import type { Rows } from '../resources/resource.ts'
import { MAX_COUNTED, MAX_LISTED } from '../http/envelope.ts'
import type { LedgerEntryTable } from '../../schema/tables/money.ts'

interface LedgerFilter {
  readonly kind?: LedgerEntryTable['kind'] | undefined
  /** Milliseconds UTC, inclusive. */
  readonly start_date?: number | undefined
  /** Exclusive. */
  readonly end_date?: number | undefined
}

/** Not all columns: a balance beyond 2^53 is no number. */
const columns = [
  'ledger_entry.id',
  'ledger_entry.kind',
  'ledger_entry.amount_micros',
  'ledger_entry.ref',
  'ledger_entry.actor',
  'ledger_entry.note',
  'ledger_entry.created_at',
] as const

/** Newest first. */
export async function listLedger(
  store: Store,
  customerId: number,
  { kind, start_date: from, end_date: before }: LedgerFilter,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<Rows<LedgerEntryView>> {
  const matching = store.db
    .selectFrom('ledger_entry')
    .innerJoin('wallet', 'wallet.id', 'ledger_entry.wallet_id')
    .select('ledger_entry.id')
    .where('wallet.customer_id', '=', customerId)
    .$if(kind !== undefined, (query) => query.where('ledger_entry.kind', '=', kind ?? 'adjust'))
    .$if(from !== undefined, (query) => query.where('ledger_entry.created_at', '>=', from ?? 0))
    .$if(before !== undefined, (query) => query.where('ledger_entry.created_at', '<', before ?? 0))
  const total = await countOf(store, matching.limit(MAX_COUNTED))
  const rows = matching
    .leftJoin('cdr', (join) =>
      join.onRef('cdr.call_uuid', '=', 'ledger_entry.ref').on('ledger_entry.kind', '=', 'debit'),
    )
    .clearSelect()
    .select(columns)
    .select(['cdr.destination_number', 'cdr.billsec'])
    .select(exactSum('ledger_entry.balance_after_micros').as('balance_after'))
    .orderBy('ledger_entry.id', 'desc')
    .limit(limit)
    .offset(offset)
  return { total, rows: (offset >= MAX_LISTED ? [] : await all(store, rows)).map(entryView) }
}

type LedgerRow = Omit<Selectable<LedgerEntryTable>, 'wallet_id' | 'balance_after_micros'> & {
  readonly balance_after: string
  readonly destination_number: string | null
  readonly billsec: number | null
}

export type LedgerEntryView = ReturnType<typeof entryView>

const entryView = (row: LedgerRow) => ({
  id: row.id,
  kind: row.kind,
  amount: moneyToNumber(row.amount_micros),
  amount_exact: moneyToDecimal(row.amount_micros),
  balance_after: moneyToNumber(BigInt(row.balance_after)),
  balance_after_exact: moneyToDecimal(BigInt(row.balance_after)),
  ref: row.ref,
  actor: row.actor,
  note: row.note,
  call:
    row.destination_number === null
      ? null
      : { destination_number: row.destination_number, billsec: row.billsec ?? 0 },
  created_at: timeToText(row.created_at),
})
