/** Checks a database: SQLite's own checks, and that its money adds up. Reads only. */
import type Sqlite from 'better-sqlite3'
import { newestVersion } from './migrations/index.ts'
import type { LocalStore, Store } from './open.ts'

/** Maximum faults reported; more add nothing. */
const limit = 20

/** Returns one line per fault; empty when there is none. */
export function findDamage(sqlite: Sqlite.Database): string[] {
  const version = Number(sqlite.pragma('user_version', { simple: true }))
  if (version < newestVersion)
    return [`schema version ${version} is older than this program's ${newestVersion}: run migrate`]
  return findFaults(sqlite)
}

/** The same for a database of an older version as well. */
export const findFaults = (sqlite: Sqlite.Database): string[] => [
  ...brokenPages(sqlite),
  ...brokenReferences(sqlite),
  ...wrongBalances({ sqlite }),
]

function brokenPages(sqlite: Sqlite.Database): string[] {
  const rows = sqlite.prepare<[], string>(`PRAGMA integrity_check(${limit})`).pluck().all()
  return rows.filter((row) => row !== 'ok')
}

function brokenReferences(sqlite: Sqlite.Database): string[] {
  const rows = sqlite
    .prepare<[], { table: string; rowid: number | null; parent: string }>(
      'PRAGMA foreign_key_check',
    )
    .all()
  return rows
    .slice(0, limit)
    .map(({ table, rowid, parent }) => `row ${rowid} of ${table} refers to no row of ${parent}`)
}

/** A balance is the sum of its ledger entries, and equals the balance in the newest entry. */
const wrongBalances = (store: Pick<LocalStore, 'sqlite'>): string[] =>
  store.sqlite.prepare<[], WrongBalance>(wrongBalance).all().map(toldBalance)

/** The same on any database. */
export async function wrongBalancesIn({
  statements,
}: Pick<Store, 'statements'>): Promise<string[]> {
  return (await statements.prepare<WrongBalance>(wrongBalance).all([])).map(toldBalance)
}

interface WrongBalance {
  readonly id: number
  readonly balance: string
  readonly total: string
}

const wrongBalance = `SELECT wallet.id AS id, CAST(wallet.balance_micros AS TEXT) AS balance,
    CAST(coalesce(sum(ledger_entry.amount_micros), 0) AS TEXT) AS total
  FROM wallet LEFT JOIN ledger_entry ON ledger_entry.wallet_id = wallet.id
  GROUP BY wallet.id, wallet.balance_micros
  HAVING wallet.balance_micros <> coalesce(sum(ledger_entry.amount_micros), 0) LIMIT ${limit}`

const toldBalance = ({ id, balance, total }: WrongBalance): string =>
  `wallet ${id} holds ${balance} micro-units, its ledger adds up to ${total}`
