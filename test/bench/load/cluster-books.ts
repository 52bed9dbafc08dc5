/** Whether the books of a cluster are right: wallets, ledger, shares and records, beside what the callers have seen. */
import type { PostgresStatements } from '../../../schema/sql/postgres-statements.ts'
import type { SeenCall } from './cluster-load.ts'

/** What was looked at, what was seen, and whether it is right. */
export type Row = readonly [what: string, seen: string, isRight: boolean]

const BELOW_LIMIT = 'wallets below their limit'

/** Each gives one row for each fault. Sums are texts: they may be greater than numbers are exact. */
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

/** When nothing goes on any more: no node holds money, and each answered call has its record. */
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

interface StoredAnswer {
  readonly id: string
  readonly records: number
  readonly cause: string
  readonly by: string
  readonly recovered: number
  readonly seconds: number
}

const textOf = ({ cause, by, seconds }: Pick<StoredAnswer, 'cause' | 'by' | 'seconds'>): string =>
  `${seconds} s, ${cause} by ${by}`

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

  /** What must hold at any moment. */
  whileServing(): Promise<readonly Row[]> {
    return this.#rows(faultsOfBooks)
  }

  /** What is wrong with a wallet that is below its limit now. */
  async belowLimit(): Promise<string | undefined> {
    const [fault] = await this.#all<Fault>(faultsOfBooks[BELOW_LIMIT])
    return fault && `${fault.id}: ${fault.seen} (${fault.wanted})`
  }

  /** By which guards callers with funds were refused with 503. The guard of overload leaves no record. */
  async guards(seen: readonly SeenCall[], funded: ReadonlySet<string>): Promise<Row> {
    const rows = await this.#all<{ readonly id: string; readonly guard: string | null }>(
      'SELECT call_id AS id, denial_code AS guard FROM cdr WHERE sip_code = 503',
    )
    const guards = new Map(rows.map(({ id, guard }) => [id, guard ?? 'none']))
    const counts: Record<string, number> = {}
    for (const { status, caller, callId } of seen) {
      if (status !== 503 || !funded.has(caller)) continue
      const guard = guards.get(callId) ?? 'overload'
      counts[guard] = (counts[guard] ?? 0) + 1
    }
    return ['of customers with funds: refused with 503, by guard', JSON.stringify(counts), true]
  }

  /** @param seen by the callers. @param funded numbers of customers whose funds last. */
  async atRest(seen: readonly SeenCall[], funded: ReadonlySet<string>): Promise<readonly Row[]> {
    const books = await this.#rows({
      ...faultsOfBooks,
      ...faultsAtRest,
      'records of customers with funds at another price': `
        SELECT call_uuid AS id, cost_micros::text AS seen, (billsec * ${this.#microsPerSecond})::text AS wanted
        FROM cdr WHERE cost_micros <> billsec * ${this.#microsPerSecond}
          AND caller_id_number IN (${['', ...funded].map((number) => `'${number}'`).join(', ')})`,
    })
    return [await this.#sums(), ...books, ...(await this.#records(seen))]
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

  async #sums(): Promise<Row> {
    const [sums] = await this.#all<{ readonly wallets: string; readonly ledger: string }>(
      `SELECT (SELECT sum(balance_micros)::text FROM wallet) AS wallets,
        (SELECT sum(amount_micros)::text FROM ledger_entry) AS ledger`,
    )
    const isRight = sums !== undefined && sums.wallets === sums.ledger
    return [
      'sum of wallets = sum of ledger, micro-units',
      `${sums?.wallets} = ${sums?.ledger}`,
      isRight,
    ]
  }

  async #records(seen: readonly SeenCall[]): Promise<readonly Row[]> {
    const rows = await this.#all<StoredAnswer>(
      `SELECT call_id AS id, count(*) AS records, min(hangup_cause) AS cause, min(hangup_by) AS by,
         max(is_recovered) AS recovered, max(billsec) AS seconds
       FROM cdr WHERE disposition = 'ANSWERED' GROUP BY 1`,
    )
    const records = new Map(rows.map((row) => [row.id, row.records]))
    const whats = new Map(seen.map(({ callId, what }) => [callId, what]))
    const answered = seen.filter(({ what }) => what === 'answered').map(({ callId }) => callId)
    const isAnswered = new Set(answered)
    const wrong = answered.filter((callId) => records.get(callId) !== 1)
    const more = rows.filter(({ id }) => !isAnswered.has(id))
    const recovered = rows.filter((row) => row.recovered > 0)
    return [
      ['answered calls', String(isAnswered.size), isAnswered.size > 0],
      [
        'answered calls without exactly one record',
        told(wrong, (callId) => `${callId}: ${records.get(callId) ?? 0}`),
        wrong.length === 0,
      ],
      // Its node has stored the answer, and its caller was gone, or never had it.
      [
        'records of answers that no caller has seen',
        told(more, ({ id, ...row }) => `${id}: ${whats.get(id) ?? 'nothing'}, ${textOf(row)}`),
        true,
      ],
      [
        'answered calls that could not go on after a crash',
        told(recovered, ({ id, ...row }) => `${id}: ${textOf(row)}`),
        true,
      ],
    ]
  }

  async #all<R>(sql: string): Promise<readonly R[]> {
    return this.#statements.prepare<R>(sql).all([])
  }
}
