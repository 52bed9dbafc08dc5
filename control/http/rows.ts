/**
 * Helpers for rows: search conditions, children of their parents, and writes in one transaction.
 */
import { type AliasableExpression, type RawBuilder, type SelectQueryBuilder, sql } from 'kysely'
import type { Store } from '../../schema/storage/store.ts'
import { type Tables, all, first, transaction } from '../../schema/sql/query.ts'
import { failureOf, type Unique } from '../../schema/sql/failure.ts'
import { ApiError } from './api-error.ts'
import { likePattern } from './envelope.ts'
import { matchesLike } from './text-match.ts'

/**
 * Matches rows with `part` in any of the columns, without regard to case; all rows without a
 * search.
 */
export function contains(
  columns: readonly string[],
  part: string | undefined,
): RawBuilder<boolean> {
  if (part === undefined) return sql<boolean>`true`
  const each = columns.map((column) => matchesLike(sql.ref<string>(column), part, likePattern))
  return sql<boolean>`(${sql.join(each, sql` OR `)})`
}

/** Compares with null as well: `where('tenant_id', same(tenantId), tenantId)`. */
export const same = (value: number | null): 'is' | '=' => (value === null ? 'is' : '=')

/** One page of the rows that a query selects, and the number of all of them. */
export async function pageOf<DB, TB extends keyof DB, Row>(
  store: Store,
  query: SelectQueryBuilder<DB, TB, Row>,
  { limit, offset }: { readonly limit: number; readonly offset: number },
): Promise<{ readonly rows: readonly Row[]; readonly total: number }> {
  const rows = await all(store, query.limit(limit).offset(offset))
  const count = query
    .clearSelect()
    .clearOrderBy()
    .select(sql`count(*)`.as('n'))
    .$castTo<{ readonly n: number }>()
  return { rows, total: (await first(store, count))?.n ?? 0 }
}

/** Counts the rows of a query that ends at `MAX_COUNTED`. */
export async function countOf(
  store: Pick<Store, 'statements' | 'db'>,
  rows: AliasableExpression<{ readonly id: number }>,
): Promise<number> {
  const some = store.db.selectFrom(rows.as('some'))
  const query = some.select((row) => row.fn.countAll<number>().as('n'))
  return (await first(store, query))?.n ?? 0
}

/** Groups rows by the id of their parent, keeping their order. */
export function grouped<Row, Parent>(
  rows: readonly Row[],
  parentOf: (row: Row) => Parent,
): ReadonlyMap<Parent, readonly Row[]> {
  const groups = new Map<Parent, Row[]>()
  for (const row of rows) {
    const parent = parentOf(row)
    const group = groups.get(parent)
    if (group === undefined) groups.set(parent, [row])
    else group.push(row)
  }
  return groups
}

/**
 * Runs `work` in one transaction. Throws 409 for a duplicate and for a row that is still
 * referenced.
 */
export async function write<T>(store: Tables, work: () => Promise<T>): Promise<T> {
  try {
    return await transaction(store, work)
  } catch (error) {
    throw asConflict(error) ?? error
  }
}

/** Maps column names to the field names of the body. */
const fieldNames: Readonly<Record<string, string>> = {
  'tenant_domain.domain': 'domains',
  'tenant_number.prefix': 'numbers',
  'dispatcher_node.transport': 'host',
  'routing_webhook.carrier_id': 'carrier',
  'routing_webhook.set_id': 'set',
  "index 'rate_identity'": 'prefix',
  "index 'ai_agent_extension'": 'extension',
  "index 'rate_plan_name'": 'name',
  "index 'customer_name'": 'name',
  "index 'customer_email'": 'email',
  "index 'carrier_name'": 'name',
  "index 'outbound_route_name'": 'name',
  "index 'inbound_route_name'": 'name',
  "index 'routing_webhook_tenant'": 'tenant',
  "index 'ai_agent_name'": 'name',
  "index 'stir_key_name'": 'name',
  "index 'alert_channel_name'": 'name',
  "index 'alert_rule_name'": 'name',
  "index 'dispatcher_set_name'": 'endpoint_name',
}

/** Where a name that is taken is not what is wrong. */
const hints: Readonly<Record<string, string>> = {
  "index 'routing_webhook_tenant'":
    'has one for all its other calls: change that one, or name a carrier or a set',
}

/** The database checks unique indexes and foreign keys, so that no race inserts a second row. */
function asConflict(error: unknown): ApiError | undefined {
  const failure = failureOf(error)
  if (failure?.kind === 'unique') return duplicate(failure.unique)
  if (failure?.kind === 'reference')
    return new ApiError(409, 'in_use', 'Still referenced by other resources')
  return undefined
}

function duplicate(unique: Unique): ApiError {
  const taken = 'index' in unique ? `index '${unique.index}'` : (unique.columns.at(-1) ?? '')
  const path = fieldNames[taken] ?? taken.replace(/^.*\./, '')
  return new ApiError(409, 'duplicate', `Another resource has this ${path.replaceAll('_', ' ')}`, {
    details: [{ path, message: hints[taken] ?? 'is already taken' }],
  })
}
