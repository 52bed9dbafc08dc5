/**
 * Whether the books of a cluster are right: wallets, ledger, shares and records, beside what the
 * callers have seen.
 */
import type { PostgresStatements } from '../../../../schema/sql/postgres-statements.ts'
import type { Row } from '../rows.ts'

const BELOW_LIMIT = 'wallets below their limit'

/**
 * Each gives one row for each fault. Sums are texts: they may be greater than numbers are exact.
 */
const faultsOfBooks = {
  'wallets whose balance is not the sum of their ledger': `
    SELECT w.id::text AS id, w.balance_micros::text AS seen,
      (SELECT coalesce(sum(amount_micros), 0)::text FROM ledger_entry WHERE wallet_id = w.id) AS wanted
    FROM wallet w WHERE w.balance_micros <>
      (SELECT coalesce(sum(amount_micros), 0) FROM ledger_entry WHERE wallet_id = w.id)`,
  [BELOW_LIMIT]: `
    SELECT c.name AS id, w.balance_micros::text AS seen, (-c.credit_limit_micros)::text AS wanted
    FROM wallet w JOIN customer c ON c.id = w.customer_id
    WHERE w.balance_micros < -c.credit_limit_micros`,
  'wallets of which nodes hold more than there is': `
    SELECT w.id::text AS id, held.amount::text AS seen, w.balance_micros::text AS wanted
    FROM wallet w JOIN customer c ON c.id = w.customer_id
    JOIN (SELECT resource, sum(amount) AS amount FROM share WHERE kind = 'wallet' GROUP BY resource) held
      ON held.resource = w.id::text
    WHERE held.amount > greatest(w.balance_micros + c.credit_limit_micros, 0)`,
  'calls with two records': `
    SELECT call_id AS id, count(*)::text AS seen, '1' AS wanted FROM cdr GROUP BY call_id HAVING count(*) > 1`,
  'records that are not debited once': `
    SELECT c.call_uuid AS id, c.cost_micros::text AS seen,
      (SELECT coalesce(string_agg((-amount_micros)::text, ' + '), '') FROM ledger_entry
        WHERE kind = 'debit' AND ref = c.call_uuid) AS wanted
    FROM cdr c WHERE c.cost_micros > 0 AND 1 <> (
      SELECT count(*) FROM ledger_entry l
      WHERE l.kind = 'debit' AND l.ref = c.call_uuid AND l.amount_micros = -c.cost_micros)`,
  'debits without their record': `
    SELECT l.ref AS id, l.amount_micros::text AS seen, '' AS wanted FROM ledger_entry l
    WHERE l.kind = 'debit' AND NOT EXISTS (
      SELECT 1 FROM cdr c WHERE c.call_uuid = l.ref AND c.cost_micros = -l.amount_micros)`,
}

/**
 * When nothing goes on any more: no instance holds money, and each answered call has its record.
 */
const faultsAtRest = {
  'wallets of which nodes still hold a share': `
    SELECT resource AS id, amount::text AS seen, '0' AS wanted FROM share
    WHERE kind = 'wallet' AND amount <> 0`,
}

interface Fault {
  readonly id: string
  readonly seen: string
  readonly wanted: string
}

/** How many, and the first of them. */
const told = <T>(all: readonly T[], one: (each: T) => string): string =>
  [String(all.length), ...all.slice(0, 5).map(one)].join('  ')

export class ClusterBooks {
  readonly #statements: PostgresStatements
  readonly #microsPerSecond: number

  /** @param microsPerSecond what all calls cost. */
  constructor(statements: PostgresStatements, microsPerSecond: number) {
    this.#statements = statements
    this.#microsPerSecond = microsPerSecond
  }

  /** The rules that must hold at any moment. */
  whileServing(): Promise<readonly Row[]> {
    return this.#rows(faultsOfBooks)
  }

  /** Describes a wallet that is below its limit now; undefined: none is. */
  async belowLimit(): Promise<string | undefined> {
    const [fault] = await this.#all<Fault>(faultsOfBooks[BELOW_LIMIT])
    return fault && `${fault.id}: ${fault.seen} (${fault.wanted})`
  }

  /** @param answered Call-IDs of the calls that their callers saw answered. */
  async atRest(answered: readonly string[]): Promise<readonly Row[]> {
    const books = await this.#rows({
      ...faultsOfBooks,
      ...faultsAtRest,
      'records at another price': `
        SELECT call_uuid AS id, cost_micros::text AS seen, (billsec * ${this.#microsPerSecond})::text AS wanted
        FROM cdr WHERE cost_micros <> billsec * ${this.#microsPerSecond}`,
    })
    return [...books, ...(await this.#records(answered))]
  }

  async #rows(queries: Readonly<Record<string, string>>): Promise<readonly Row[]> {
    const rows: Row[] = []
    for (const [what, sql] of Object.entries(queries)) {
      const faults = await this.#all<Fault>(sql)
      const text = told(faults, ({ id, seen, wanted }) => `${id}: ${seen} (${wanted})`)
      rows.push([what, text, faults.length === 0])
    }
    return rows
  }

  async #records(answered: readonly string[]): Promise<readonly Row[]> {
    const rows = await this.#all<{ id: string; records: number; recovered: number }>(
      `SELECT call_id AS id, count(*) AS records, max(is_recovered) AS recovered
       FROM cdr WHERE disposition = 'ANSWERED' GROUP BY 1`,
    )
    const records = new Map(rows.map((row) => [row.id, row.records]))
    const seen = new Set(answered)
    const wrong = answered.filter((callId) => records.get(callId) !== 1)
    const text = told(wrong, (callId) => `${callId}: ${records.get(callId) ?? 0}`)
    const unseen = rows.filter(({ id }) => !seen.has(id)).length
    const recovered = rows.filter((row) => row.recovered > 0).length
    return [
      ['answered calls', String(answered.length), answered.length > 0],
      ['answered calls without exactly one record', text, wrong.length === 0],
      // Its instance has stored the answer, and its caller was gone, or never had it.
      ['records of answers that no caller has seen', String(unseen), true],
      ['answered calls that could not go on after a crash', String(recovered), true],
    ]
  }

  async #all<R>(sql: string): Promise<readonly R[]> {
    return this.#statements.prepare<R>(sql).all([])
  }
}
