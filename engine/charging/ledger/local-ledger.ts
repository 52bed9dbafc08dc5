/** The ledger on the SQLite of this process, for ended calls: in the transaction that is open on the handle. */
import { sql } from 'kysely'
import { compile, type Param } from '../../../schema/sql/sync-query.ts'
import { exactSum } from '../../../schema/columns.ts'
import type { EntryKind } from '../../../schema/contracts/field-values.ts'
import type { LedgerEntry } from '../../../schema/contracts/charging.ts'
import type { LocalStore } from '../../../schema/open.ts'
import type { DuplicatePosting, Posting } from './posting.ts'
import type { Flag } from '../../../schema/tables/kinds.ts'

export interface LocalLedger {
  post(entry: LedgerEntry): Posting
  find(kind: EntryKind, ref: string): DuplicatePosting | undefined
  /** The balance inside the open transaction; null: there is no such wallet. */
  balance(walletId: number | null): bigint | null
  /** Marks a wallet as depleted. False: it is already marked. */
  deplete(walletId: number): boolean
}

export function localLedger(store: LocalStore): LocalLedger {
  const statements = prepare(store)
  const find: LocalLedger['find'] = (kind, ref) => {
    const row = statements.find.get({ kind, ref })
    if (row === undefined) return undefined
    return {
      kind: 'duplicate',
      walletId: row.wallet_id,
      amountMicros: row.amount_micros,
      balanceMicros: BigInt(row.balance_after),
    }
  }
  const post = (entry: LedgerEntry): Posting => {
    const { changes, lastInsertRowid } = statements.insert.run({
      walletId: entry.walletId,
      kind: entry.kind,
      amount: BigInt(entry.amountMicros),
      ref: entry.ref,
      actor: entry.actor,
      note: entry.note,
      at: entry.at,
    })
    if (changes === 0) return find(entry.kind, entry.ref) ?? { kind: 'unknown_wallet' }
    const wallet = statements.change.get({
      walletId: entry.walletId,
      amount: BigInt(entry.amountMicros),
      at: entry.at,
    })
    if (wallet === undefined) throw new Error(`wallet ${entry.walletId} vanished`)
    return {
      kind: 'posted',
      balanceMicros: BigInt(wallet.balance),
      entryId: Number(lastInsertRowid),
    }
  }
  return {
    find,
    balance: (walletId) => {
      const wallet = statements.balance.get({ walletId })
      return wallet === undefined ? null : BigInt(wallet.balance)
    },
    deplete: (walletId) => statements.deplete.run({ walletId }).changes === 1,
    post,
  }
}

function prepare(store: LocalStore) {
  return {
    insert: compile(store, (db, param: Param<EntryValues>) =>
      db
        .insertInto('ledger_entry')
        .columns([
          'wallet_id',
          'kind',
          'amount_micros',
          'balance_after_micros',
          'ref',
          'actor',
          'note',
          'created_at',
        ])
        .expression((eb) =>
          eb
            .selectFrom('wallet')
            .select((wallet) => [
              'wallet.id',
              wallet.val(param('kind')).as('kind'),
              sql<number>`${param('amount')}`.as('amount_micros'),
              sumWith(param('amount')).as('balance_after_micros'),
              wallet.val(param('ref')).as('ref'),
              wallet.val(param('actor')).as('actor'),
              wallet.val(param('note')).as('note'),
              wallet.val(param('at')).as('created_at'),
            ])
            .where('wallet.id', '=', param('walletId')),
        )
        .onConflict((conflict) => conflict.columns(['kind', 'ref']).doNothing()),
    ),
    change: compile(store, (db, param: Param<{ walletId: number; amount: bigint; at: number }>) =>
      db
        .updateTable('wallet')
        .set({
          balance_micros: sumWith(param('amount')),
          is_depleted: depletedAfter(param('amount')),
          updated_at: param('at'),
        })
        .where('id', '=', param('walletId'))
        .returning(exactSum('balance_micros').as('balance')),
    ),
    balance: compile(store, (db, param: Param<{ walletId: number | null }>) =>
      db
        .selectFrom('wallet')
        .select(exactSum('balance_micros').as('balance'))
        .where('id', 'is', param('walletId')),
    ),
    deplete: compile(store, (db, param: Param<{ walletId: number }>) =>
      db
        .updateTable('wallet')
        .set({ is_depleted: 1 })
        .where('id', '=', param('walletId'))
        .where('is_depleted', '=', 0),
    ),
    find: compile(store, (db, param: Param<{ kind: EntryKind; ref: string }>) =>
      db
        .selectFrom('ledger_entry')
        .select([
          'wallet_id',
          'amount_micros',
          exactSum('balance_after_micros').as('balance_after'),
        ])
        .where('kind', '=', param('kind'))
        .where('ref', '=', param('ref')),
    ),
  }
}

/** In 64 bits: SQLite adds integers exactly. */
const sumWith = (amountMicros: bigint) => sql<bigint>`wallet.balance_micros + ${amountMicros}`

/** A credit ends the depletion if it leaves something to spend. */
const depletedAfter = (amountMicros: bigint) => sql<Flag>`CASE
  WHEN ${amountMicros} > 0 AND balance_micros + ${amountMicros} +
    (SELECT credit_limit_micros FROM customer WHERE customer.id = wallet.customer_id) > 0
  THEN 0 ELSE is_depleted END`

interface EntryValues {
  readonly walletId: number
  readonly kind: EntryKind
  /** A bigint: a number would turn the sum in SQL into floating point. */
  readonly amount: bigint
  readonly ref: string
  readonly actor: string
  readonly note: string | null
  readonly at: number
}
