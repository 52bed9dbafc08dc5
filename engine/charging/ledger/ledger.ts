/**
 * The only way money moves: one append-only entry, and the wallet's balance with it. `settlement/`
 * writes the debits of calls with statements of its own.
 */
import { sql } from 'kysely'
import { exactSum, fromFlag, toFlag } from '../../../schema/columns.ts'
import type { EntryKind } from '../../../schema/contracts/field-values.ts'
import type { LedgerEntry, LedgerPort } from '../../../schema/contracts/charging.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { execute, first } from '../../../schema/sql/query.ts'
import { lockWait } from '../../../schema/sql/row-locks.ts'
import type { DuplicatePosting, Posting } from './posting.ts'

/** Nothing changes it until the end of the transaction. */
export interface LockedWallet {
  readonly id: number
  readonly balanceMicros: bigint
  readonly creditLimitMicros: number
  readonly isDepleted: boolean
}

export interface Ledger extends LedgerPort {
  post(entry: LedgerEntry): Promise<Posting>
  find(kind: EntryKind, ref: string): Promise<DuplicatePosting | undefined>
  /** Inside a transaction. Undefined: there is no such wallet. */
  lock(walletId: number): Promise<LockedWallet | undefined>
  /** Adds an entry to a locked wallet. */
  add(wallet: LockedWallet, entry: LedgerEntry): Promise<Posting>
  /** Marks a locked wallet: its depletion is reported. */
  deplete(wallet: LockedWallet): Promise<void>
}

export function createLedger(store: Store): Ledger {
  const ledger: Ledger = {
    find: (kind, ref) => find(store, kind, ref),
    lock: (walletId) => lock(store, walletId),
    add: (wallet, entry) => add(store, wallet, entry),
    post: async (entry) => {
      const wallet = await lock(store, entry.walletId)
      return wallet === undefined ? { kind: 'unknown_wallet' } : add(store, wallet, entry)
    },
    deplete: async ({ id }) => {
      await execute(
        store,
        store.db.updateTable('wallet').set({ is_depleted: 1 }).where('id', '=', id),
      )
    },
    endDepletion: async (customerId) => {
      await execute(
        store,
        store.db
          .updateTable('wallet')
          .set({ is_depleted: 0 })
          .where('customer_id', '=', customerId),
      )
    },
  }
  return ledger
}

async function find(
  store: Store,
  kind: EntryKind,
  ref: string,
): Promise<DuplicatePosting | undefined> {
  const row = await first(
    store,
    store.db
      .selectFrom('ledger_entry')
      .select(['wallet_id', 'amount_micros', exactSum('balance_after_micros').as('balance_after')])
      .where('kind', '=', kind)
      .where('ref', '=', ref),
  )
  return (
    row && {
      kind: 'duplicate',
      walletId: row.wallet_id,
      amountMicros: row.amount_micros,
      balanceMicros: BigInt(row.balance_after),
    }
  )
}

/**
 * A move of money waits for so long at a wallet that another transaction has locked: it holds a
 * connection meanwhile.
 */
const LOCK_WAIT_MS = 1_000

/** An UPDATE locks the row on every database, and returns what was committed last. */
async function lock(store: Store, walletId: number): Promise<LockedWallet | undefined> {
  const isBounded = store.statements.isShared
    ? sql<boolean>`(SELECT ${sql.raw(lockWait(LOCK_WAIT_MS))}) IS NOT NULL`
    : sql<boolean>`TRUE`
  const row = await first(
    store,
    store.db
      .updateTable('wallet')
      .set((wallet) => ({ updated_at: wallet.ref('updated_at') }))
      .where('id', '=', walletId)
      .where(isBounded)
      .returning([
        'is_depleted',
        exactSum('balance_micros').as('balance'),
        sql<number>`(SELECT credit_limit_micros FROM customer WHERE customer.id = wallet.customer_id)`.as(
          'credit',
        ),
      ]),
  )
  return (
    row && {
      id: walletId,
      balanceMicros: BigInt(row.balance),
      creditLimitMicros: row.credit,
      isDepleted: fromFlag(row.is_depleted),
    }
  )
}

async function add(store: Store, wallet: LockedWallet, entry: LedgerEntry): Promise<Posting> {
  const balanceMicros = wallet.balanceMicros + BigInt(entry.amountMicros)
  const row = await first(
    store,
    store.db
      .insertInto('ledger_entry')
      .values({
        wallet_id: wallet.id,
        kind: entry.kind,
        amount_micros: entry.amountMicros,
        balance_after_micros: balanceMicros,
        ref: entry.ref,
        actor: entry.actor,
        note: entry.note,
        created_at: entry.at,
      })
      .onConflict((conflict) => conflict.columns(['kind', 'ref']).doNothing())
      .returning('id'),
  )
  if (row === undefined)
    return (await find(store, entry.kind, entry.ref)) ?? { kind: 'unknown_wallet' }
  // A credit ends the depletion if it leaves something to spend.
  const isCredit = entry.amountMicros > 0 && balanceMicros + BigInt(wallet.creditLimitMicros) > 0n
  await execute(
    store,
    store.db
      .updateTable('wallet')
      .set({
        balance_micros: balanceMicros,
        is_depleted: toFlag(wallet.isDepleted && !isCredit),
        updated_at: entry.at,
      })
      .where('id', '=', wallet.id),
  )
  return { kind: 'posted', balanceMicros, entryId: row.id }
}
