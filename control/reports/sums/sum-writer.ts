/**
 * Adds groups to the kept sums of their days. A day keeps so many groups of a scope; what comes beyond is added to one
 * group of others, so that callers with random numbers cannot make the sums grow.
 */
import type { Store } from '../../../schema/open.ts'
import { all } from '../../../schema/sql/query.ts'
import type { SqlValue } from '../../../schema/sql/sql-value.ts'
import type { PreparedStatement } from '../../../schema/sql/statements.ts'
import { ALL } from './dimensions.ts'
import type { Sums } from './sum.ts'
import type { Scope } from './tally.ts'

type Database = Pick<Store, 'db' | 'statements'>

/** Groups of one dimension and tenant that a day keeps. */
const MAX_GROUPS = 5_000
/** Of one dimension and customer. */
const MAX_GROUPS_OF_CUSTOMER = 500
/** Rows of one statement. */
const ROWS = 50

export class SumWriter {
  readonly #sums: Database
  readonly #statements = new Map<number, PreparedStatement<unknown>>()

  constructor(sums: Database) {
    this.#sums = sums
  }

  /** Inside the transaction of the caller. */
  async add(scopes: readonly Scope[]): Promise<void> {
    const kept = await this.#countsOf(new Set(scopes.map(({ day }) => day)))
    const rows: SqlValue[][] = []
    for (const scope of scopes) {
      const groups = await this.#bounded(scope, kept.get(nameOf(scope)) ?? 0)
      const { day, dimension, customerId, tenantId } = scope
      rows.push(...groups.rows([day, dimension, customerId, tenantId]))
    }
    for (let from = 0; from < rows.length; from += ROWS)
      await this.#write(rows.slice(from, from + ROWS))
  }

  async #write(rows: readonly SqlValue[][]): Promise<void> {
    const statement = this.#statementFor(rows.length)
    await statement.run(rows.flat())
  }

  #statementFor(count: number): PreparedStatement<unknown> {
    let statement = this.#statements.get(count)
    if (statement === undefined) {
      statement = this.#sums.statements.prepare(upsert(count, this.#sums.statements.isShared))
      this.#statements.set(count, statement)
    }
    return statement
  }

  /** Rows of each scope of these days. */
  async #countsOf(days: ReadonlySet<number>): Promise<ReadonlyMap<string, number>> {
    const counts = new Map<string, number>()
    for (const day of days) {
      const rows = await all(
        this.#sums,
        this.#sums.db
          .selectFrom('call_sum')
          .select(['dimension', 'customer_id', 'tenant_id'])
          .select(({ fn }) => [fn.countAll<number>().as('rows')])
          .where('day', '=', day)
          .groupBy(['dimension', 'customer_id', 'tenant_id']),
      )
      for (const { dimension, customer_id: customerId, tenant_id: tenantId, rows: count } of rows)
        counts.set(nameOf({ day, dimension, customerId, tenantId }), count)
    }
    return counts
  }

  async #bounded(scope: Scope, kept: number): Promise<Sums> {
    const most = scope.customerId === ALL ? MAX_GROUPS : MAX_GROUPS_OF_CUSTOMER
    if (kept + scope.groups.size <= most) return scope.groups
    return scope.groups.bounded(await this.#membersOf(scope), most)
  }

  async #membersOf({ day, dimension, customerId, tenantId }: Scope): Promise<Set<string>> {
    const rows = await all(
      this.#sums,
      this.#sums.db
        .selectFrom('call_sum')
        .select('member')
        .where('day', '=', day)
        .where('dimension', '=', dimension)
        .where('customer_id', '=', customerId)
        .where('tenant_id', '=', tenantId),
    )
    return new Set(rows.map(({ member }) => member))
  }
}

interface ScopeName {
  readonly day: number
  readonly dimension: string
  readonly customerId: number
  readonly tenantId: number
}

const nameOf = ({ day, dimension, customerId, tenantId }: ScopeName): string =>
  `${day} ${dimension} ${customerId} ${tenantId}`

const key = ['day', 'dimension', 'customer_id', 'tenant_id', 'member', 'currency']
const sums = [
  'calls',
  'answered',
  'denied',
  'failed',
  'billsec',
  'cost_micros',
  'pdd_ms',
  'pdd_calls',
]
const least = ['first_at', 'first_id']
const greatest = ['last_at', 'last_id', 'dearest']
/** `first_at, last_at, first_id, last_id, dearest`, as `Sums` writes them. */
const columns = [...key, ...sums, 'first_at', 'last_at', 'first_id', 'last_id', 'dearest']

function upsert(count: number, isShared: boolean): string {
  const place = (index: number): string => (isShared ? `$${index + 1}` : '?')
  const row = (index: number): string =>
    `(${columns.map((_, column) => place(index * columns.length + column)).join(', ')})`
  const set = (names: readonly string[], value: (own: string, other: string) => string) =>
    names.map((name) => `${name} = ${value(`call_sum.${name}`, `excluded.${name}`)}`)
  const sets = [
    ...set(sums, (own, other) => `${own} + ${other}`),
    ...set(least, (own, other) => `CASE WHEN ${other} < ${own} THEN ${other} ELSE ${own} END`),
    ...set(greatest, (own, other) => `CASE WHEN ${other} > ${own} THEN ${other} ELSE ${own} END`),
  ]
  return `INSERT INTO call_sum (${columns.join(', ')})
    VALUES ${Array.from({ length: count }, (_, index) => row(index)).join(', ')}
    ON CONFLICT (${key.join(', ')}) DO UPDATE SET ${sets.join(', ')}`
}
