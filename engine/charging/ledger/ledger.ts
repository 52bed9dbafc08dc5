/**
 * The only way money moves: one append-only entry, and the wallet's balance with it. Payments add
 * one entry, ended calls many at once; both use these statements, with their wallets locked.
 */
import { toFlag, type Flag } from '../../../schema/columns.ts'
import type { EntryKind } from '../../../schema/contracts/field-values.ts'
import type { LedgerEntry, LedgerPort } from '../../../schema/contracts/charging.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { execute } from '../../../schema/sql/query.ts'
import { lockedWallets, lockWait } from '../../../schema/sql/row-locks.ts'
import type { JsonRow } from '../../../schema/sql/statements.ts'
import type { DuplicatePosting, Posting } from './posting.ts'

/** A batch of calls waits for so long at a locked wallet: it holds the others meanwhile. */
const BATCH_LOCK_MS = 200
/** A payment waits for so long at a locked wallet: it holds a connection meanwhile. */
const LOCK_MS = 1_000

/** A wallet that nothing else changes until the end of the transaction. */
export interface LockedWallet {
  readonly id: number
  readonly balanceMicros: bigint
  readonly isDepleted: boolean
}

interface WalletRow {
  readonly id: number
  readonly balance: string
  readonly is_depleted: Flag
}

interface EntryRow {
  readonly ref: string
  readonly wallet_id: number
  readonly amount_micros: number
  readonly balance: string
}

interface NewEntry {
  readonly id: number
  readonly ref: string
}

export class Ledger implements LedgerPort {
  readonly #store: Store
  readonly #statements: ReturnType<typeof walletStatements>

  constructor(store: Store) {
    this.#store = store
    this.#statements = walletStatements(store)
  }

  /** Adds one entry, in the transaction of the caller. */
  async post(entry: LedgerEntry): Promise<Posting> {
    const wallet = await this.lock(entry.walletId)
    return wallet === undefined ? { kind: 'unknown_wallet' } : this.add(wallet, entry)
  }

  async find(kind: EntryKind, ref: string): Promise<DuplicatePosting | undefined> {
    const [row] = await this.#statements.entry[kind]([{ ref }])
    return row && toDuplicate(row)
  }

  /** Entries of a kind, by their references. */
  async findAll(
    kind: EntryKind,
    refs: readonly string[],
  ): Promise<ReadonlyMap<string, DuplicatePosting>> {
    const rows = await this.#statements.entries[kind](refs.map((ref) => ({ ref })))
    return new Map(rows.map((row) => [row.ref, toDuplicate(row)]))
  }

  /** Locks a wallet until the end of the transaction. Undefined: there is no such wallet. */
  async lock(walletId: number): Promise<LockedWallet | undefined> {
    const [row] = await this.#statements.lock([{ id: walletId }])
    return row && toLocked(row)
  }

  /** Locks wallets in the order of their ids: two processes do not wait for each other. */
  async lockAll(ids: readonly number[]): Promise<readonly LockedWallet[]> {
    const rows = await this.#statements.lockBatch(ids.map((id) => ({ id })))
    return rows.map(toLocked)
  }

  /** Wallets that another transaction has locked now. Waits for none. */
  async lockedElsewhere(ids: readonly number[]): Promise<ReadonlySet<number>> {
    const rows = (await this.#statements.lockedElsewhere?.all([JSON.stringify(ids)])) ?? []
    return new Set(rows.map(({ id }) => id))
  }

  /** Inserts entries of locked wallets. Resolves with their ids by reference. */
  async enter(rows: readonly JsonRow[]): Promise<ReadonlyMap<string, number>> {
    const entered = await this.#statements.enter(rows)
    return new Map(entered.map(({ ref, id }) => [ref, id]))
  }

  /** Sets balances of locked wallets, and adds `spent_micros` to what calls cost on `spent_on`. */
  async change(wallets: readonly JsonRow[]): Promise<void> {
    await this.#statements.change(wallets)
  }

  /** Adds an entry to a locked wallet, unless one of its kind and reference exists. */
  async add(wallet: LockedWallet, entry: LedgerEntry): Promise<Posting> {
    const { kind, ref, amountMicros, at } = entry
    const balanceMicros = wallet.balanceMicros + BigInt(amountMicros)
    const [added] = await this.#statements.enterOnce([
      {
        wallet_id: wallet.id,
        kind,
        amount_micros: amountMicros,
        balance_after_micros: String(balanceMicros),
        ref,
        actor: entry.actor,
        note: entry.note,
        created_at: at,
      },
    ])
    if (added === undefined) return (await this.find(kind, ref)) ?? { kind: 'unknown_wallet' }
    const isDepleted =
      wallet.isDepleted && !(amountMicros > 0 && (await this.#isSpendable(wallet, balanceMicros)))
    await this.#statements.changeOne([
      {
        id: wallet.id,
        balance_micros: String(balanceMicros),
        is_depleted: toFlag(isDepleted),
        spent_micros: 0,
        spent_on: 0,
        updated_at: at,
      },
    ])
    return { kind: 'posted', balanceMicros, entryId: added.id }
  }

  /** A credit ends the depletion if it leaves something to spend. */
  async #isSpendable({ id }: LockedWallet, balanceMicros: bigint): Promise<boolean> {
    const [row] = await this.#statements.credit([{ id }])
    return balanceMicros + BigInt(row?.credit ?? 0) > 0n
  }

  /** Marks a locked wallet: its depletion is reported. */
  async deplete({ id }: LockedWallet): Promise<void> {
    const { db } = this.#store
    await execute(
      this.#store,
      db.updateTable('wallet').set({ is_depleted: 1 }).where('id', '=', id),
    )
  }

  async endDepletion(customerId: number): Promise<void> {
    const wallets = this.#store.db.updateTable('wallet').set({ is_depleted: 0 })
    await execute(this.#store, wallets.where('customer_id', '=', customerId))
  }
}

const entryColumns = [
  'wallet_id',
  'kind',
  'amount_micros',
  'balance_after_micros',
  'ref',
  'actor',
  'note',
  'created_at',
]

const walletColumns = [
  'id',
  'balance_micros',
  'is_depleted',
  'spent_micros',
  'spent_on',
  'updated_at',
]

/**
 * Compares a column with that of the rows that are given. A statement of one row says so:
 * PostgreSQL expects a hundred rows, would read the whole table for them, and a serializable
 * payment that has read it conflicts with those of all other customers.
 */
const isGiven = (column: string, given: 'one' | 'many'): string =>
  `${given === 'one' ? '=' : 'IN'} (SELECT ${column} FROM given)`

function walletStatements({ statements }: Pick<Store, 'statements'>) {
  const { isShared } = statements
  const enter = (unless: string) =>
    statements.prepareRows<NewEntry>({
      table: 'ledger_entry',
      columns: entryColumns,
      sql: `INSERT INTO ledger_entry (${entryColumns.join()})
        SELECT ${entryColumns.join()} FROM given WHERE true ${unless} RETURNING id, ref`,
    })
  const entriesOf = (kind: EntryKind, given: 'one' | 'many') =>
    statements.prepareRows<EntryRow>({
      table: 'ledger_entry',
      columns: ['ref'],
      sql: `SELECT ref, wallet_id, amount_micros, CAST(balance_after_micros AS TEXT) AS balance
        FROM ledger_entry WHERE kind = '${kind}' AND ref ${isGiven('ref', given)}`,
    })
  const allKinds = (given: 'one' | 'many') => ({
    topup: entriesOf('topup', given),
    debit: entriesOf('debit', given),
    adjust: entriesOf('adjust', given),
    refund: entriesOf('refund', given),
  })
  const lock = (waitMs: number, given: 'one' | 'many') =>
    statements.prepareRows<WalletRow>({
      table: 'wallet',
      columns: ['id'],
      sql: `SELECT id, CAST(balance_micros AS TEXT) AS balance, is_depleted FROM wallet
        WHERE id ${isGiven('id', given)}
          ${isShared ? `AND (SELECT ${lockWait(waitMs)}) IS NOT NULL` : ''} ORDER BY id`,
      locks: true,
    })
  const change = (given: 'one' | 'many') =>
    statements.prepareRows({
      table: 'wallet',
      columns: walletColumns,
      sql: `UPDATE wallet SET balance_micros = given.balance_micros,
          is_depleted = given.is_depleted, updated_at = given.updated_at,
          spent_micros = CASE WHEN wallet.spent_on >= given.spent_on
            THEN wallet.spent_micros ELSE 0 END + given.spent_micros,
          spent_on = CASE WHEN wallet.spent_on >= given.spent_on
            THEN wallet.spent_on ELSE given.spent_on END
        FROM given WHERE wallet.id = given.id
          ${given === 'one' ? `AND wallet.id ${isGiven('id', 'one')}` : ''}`,
    })
  return {
    entry: allKinds('one'),
    entries: allKinds('many'),
    enter: enter(''),
    enterOnce: enter('ON CONFLICT (kind, ref) DO NOTHING'),
    lock: lock(LOCK_MS, 'one'),
    lockBatch: lock(BATCH_LOCK_MS, 'many'),
    // On SQLite nobody asks for it.
    lockedElsewhere: isShared
      ? statements.prepare<{ readonly id: number }>(lockedWallets)
      : undefined,
    credit: statements.prepareRows<{ readonly credit: number }>({
      table: 'wallet',
      columns: ['id'],
      sql: `SELECT customer.credit_limit_micros AS credit FROM customer
        WHERE id = (SELECT customer_id FROM wallet WHERE id = (SELECT id FROM given))`,
    }),
    change: change('many'),
    changeOne: change('one'),
  }
}

const toDuplicate = ({ wallet_id, amount_micros, balance }: EntryRow): DuplicatePosting => ({
  kind: 'duplicate',
  walletId: wallet_id,
  amountMicros: amount_micros,
  balanceMicros: BigInt(balance),
})

const toLocked = ({ id, balance, is_depleted: isDepleted }: WalletRow): LockedWallet => ({
  id,
  balanceMicros: BigInt(balance),
  isDepleted: isDepleted === 1,
})
