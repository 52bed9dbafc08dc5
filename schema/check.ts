/** Checks a database: SQLite's own checks, and that its money adds up. Reads only. */
import Sqlite from 'better-sqlite3'
import { migrate } from './migrate.ts'
import { migrations, newestVersion } from './migrations/index.ts'
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
  ...wrongSchema(sqlite),
  ...brokenReferences(sqlite),
  ...wrongBalances({ sqlite }),
]

function brokenPages(sqlite: Sqlite.Database): string[] {
  const rows = sqlite.prepare<[], string>(`PRAGMA integrity_check(${limit})`).pluck().all()
  return rows.filter((row) => row !== 'ok')
}

/** A trigger that was added, or is missing, changes money without a word. */
function wrongSchema(sqlite: Sqlite.Database): string[] {
  const version = Number(sqlite.pragma('user_version', { simple: true }))
  const fresh = new Sqlite(':memory:')
  try {
    migrate(fresh, 0, migrations.slice(0, version))
    const [found, expected] = [schemaOf(sqlite), schemaOf(fresh)]
    const own = `schema version ${version} of this program`
    const lost = [...expected].flatMap(([name, sql]) => {
      if (!found.has(name)) return [`${name} is missing: it is in ${own}`]
      return found.get(name) === sql ? [] : [`${name} is not as in ${own}`]
    })
    const added = [...found.keys()].filter((name) => !expected.has(name))
    return [...lost, ...added.map((name) => `${name} is not in ${own}`)].slice(0, limit)
  } finally {
    fresh.close()
  }
}

/** SQL by type and name. Statistics, the table of given ids and the indexes of constraints are SQLite's own. */
function schemaOf(sqlite: Sqlite.Database): ReadonlyMap<string, string> {
  const rows = sqlite
    .prepare<[], { type: string; name: string; sql: string }>(
      `SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL
        AND NOT (type = 'table' AND (name = 'sqlite_sequence' OR name GLOB 'sqlite_stat[1-4]'))
        ORDER BY type, name`,
    )
    .all()
  return new Map(rows.map(({ type, name, sql }) => [`${type} ${name}`, sql]))
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
