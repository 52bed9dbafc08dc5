/** Ledger entries of a customer, as the API shows them. Written by `engine/charging/ledger` only. */
import { exactSum, moneyToDecimal, moneyToNumber, timeToText } from '../../schema/columns.ts'
import type { LedgerEntryTable } from '../../schema/database.ts'
import type { Store } from '../../schema/open.ts'
import { all, first } from '../../schema/sql/query.ts'
import { MAX_COUNTED, MAX_LISTED } from '../http/envelope.ts'
import type { Rows } from '../resources/resource.ts'

export interface LedgerFilter {
  readonly kind?: LedgerEntryTable['kind'] | undefined
  /** Milliseconds UTC, inclusive. */
  readonly start_date?: number | undefined
  /** Exclusive. */
  readonly end_date?: number | undefined
}

export interface LedgerEntryView {
  readonly id: number
  readonly kind: LedgerEntryTable['kind']
  readonly amount: number
  readonly amount_exact: string
  readonly balance_after: number
  readonly balance_after_exact: string
  readonly ref: string
  readonly actor: string
  readonly note: string | null
  readonly created_at: string
}

export class LedgerStore {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** Newest first. */
  async list(
    customerId: number,
    { kind, start_date: from, end_date: before }: LedgerFilter,
    { limit, offset }: { readonly limit: number; readonly offset: number },
  ): Promise<Rows<LedgerEntryView>> {
    const matching = this.#store.db
      .selectFrom('ledger_entry')
      .innerJoin('wallet', 'wallet.id', 'ledger_entry.wallet_id')
      .where('wallet.customer_id', '=', customerId)
      .$if(kind !== undefined, (query) => query.where('kind', '=', kind ?? 'adjust'))
      .$if(from !== undefined, (query) => query.where('created_at', '>=', from ?? 0))
      .$if(before !== undefined, (query) => query.where('created_at', '<', before ?? 0))
    const some = matching.select('ledger_entry.id').limit(MAX_COUNTED).as('some')
    const total = await first(
      this.#store,
      this.#store.db.selectFrom(some).select((row) => row.fn.countAll<number>().as('n')),
    )
    const rows = matching
      // Not all columns: a balance beyond 2^53 is no number.
      .select(['ledger_entry.id', 'kind', 'amount_micros', 'ref', 'actor', 'note', 'created_at'])
      .select(exactSum('balance_after_micros').as('balance_after'))
      .orderBy('ledger_entry.id', 'desc')
      .limit(limit)
      .offset(offset)
    return {
      total: total?.n ?? 0,
      rows: (offset >= MAX_LISTED ? [] : await all(this.#store, rows)).map((row) => ({
        id: row.id,
        kind: row.kind,
        amount: moneyToNumber(row.amount_micros),
        amount_exact: moneyToDecimal(row.amount_micros),
        balance_after: moneyToNumber(BigInt(row.balance_after)),
        balance_after_exact: moneyToDecimal(BigInt(row.balance_after)),
        ref: row.ref,
        actor: row.actor,
        note: row.note,
        created_at: timeToText(row.created_at),
      })),
    }
  }
}
