/** Resources name each other by id or by name, in REST bodies and in seed files alike. */
import type { Store } from '../../schema/open.ts'
import { all, first } from '../../schema/query.ts'
import { ApiError, badRequest } from '../http/api-error.ts'
import type { Reference } from './fields.ts'
import type { RequestScope } from './resource.ts'

const nameColumns = {
  tenant: 'slug',
  customer: 'name',
  rate_plan: 'name',
  carrier: 'name',
} as const

type Referable = keyof typeof nameColumns

/** `"carrier": "loop"`, `"carrier": 3` and `"carrier_id": 3` mean the same; two that differ are refused. */
export function either(
  field: string,
  named: Reference | null | undefined,
  numbered: Reference | null | undefined,
): Reference | null {
  if (named != null && numbered != null && named !== numbered)
    throw badRequest('The body is not valid', [
      { path: `${field}_id`, message: `is given besides ${field}: give one of them` },
    ])
  return named ?? numbered ?? null
}

/** Whose row refers: a tenant's to its own and to the platform's rows, `any` where the row has no tenant itself. */
export interface Owner {
  readonly tenantId: number | null | 'any'
  readonly scope: RequestScope
}

/** What a reference may mean: a row, and whose it is. */
interface Candidate {
  readonly id: number
  readonly tenant_id: number | null
}

/**
 * The id behind a reference. A name means the tenant's own row before the platform's. What the writer cannot see does
 * not exist for it, except what the row refers to already (`current`), so that a tenant may change the rest of it. Throws 400.
 */
export function resolve(
  store: Store,
  kind: Exclude<Referable, 'tenant'>,
  reference: Reference | null,
  owner: Owner,
  current?: number | null,
): number | null {
  if (reference === null) return null
  const rows = all(
    store,
    store.db
      .selectFrom(kind)
      .select(['id', 'tenant_id'])
      .where(typeof reference === 'number' ? 'id' : nameColumns[kind], '=', reference),
  )
  return chosen(rows, { path: kind, noun: kind, reference }, owner, current).id
}

/** What is looked for, as an error names it. */
export interface Wanted {
  readonly path: string
  readonly noun: string
  readonly reference: Reference
}

/** The one of `rows`, all of which have the wanted name or id, that the reference means. Throws 400. */
export function chosen<Row extends Candidate>(
  rows: readonly Row[],
  { path, noun, reference }: Wanted,
  owner: Owner,
  current?: number | null,
): Row {
  const { tenantId: reader } = owner.scope
  const visible = reader === null ? rows : rows.filter((row) => row.tenant_id === reader)
  const allowed = visible.filter((row) => !isForeign(row.tenant_id, owner))
  const home = owner.tenantId === 'any' ? reader : owner.tenantId
  const preferred =
    allowed.find((row) => row.tenant_id === home) ??
    rows.find(({ id }) => id === current) ??
    allowed.find((row) => row.tenant_id === null)
  const [only, second] = preferred === undefined ? allowed : [preferred]
  if (only !== undefined && second === undefined) return only
  const shown = JSON.stringify(reference)
  if (second !== undefined) throw badReference(path, `several tenants have a ${noun} ${shown}`)
  throw badReference(
    path,
    visible.length === 0
      ? `there is no ${noun} ${shown}`
      : `${noun} ${shown} belongs to another tenant`,
  )
}

/** The row of this name that a seed file means: that of the tenant which the element names, or else the platform's. */
export function identified(
  store: Store,
  kind: 'rate_plan' | 'customer' | 'carrier' | 'outbound_route' | 'inbound_route' | 'ai_agent',
  { name, tenant }: { readonly name: string; readonly tenant?: Reference | null | undefined },
): number | undefined {
  const query = store.db
    .selectFrom(kind)
    .select('id')
    .where('name', '=', name)
    .where('tenant_id', 'is', tenantOf(store, tenant, everywhere))
  return first(store, query)?.id
}

/** As far as a seed file reaches. */
export const everywhere: RequestScope = { tenantId: null, actor: '', now: 0 }

/** Whether a row of `tenantId` may not be referred to, though the writer sees it. */
const isForeign = (tenantId: number | null, owner: Owner): boolean =>
  owner.tenantId !== 'any' && tenantId !== null && tenantId !== owner.tenantId

/** The tenant that a body's row shall belong to: the writer's own, or for a global writer the one it names. */
export function tenantOf(
  store: Store,
  reference: Reference | null | undefined,
  scope: RequestScope,
): number | null {
  if (reference === null || reference === undefined) return scope.tenantId
  const column = typeof reference === 'number' ? 'id' : 'slug'
  const row = first(store, store.db.selectFrom('tenant').select('id').where(column, '=', reference))
  if (scope.tenantId !== null && row?.id !== scope.tenantId)
    throw new ApiError(403, 'wrong_tenant', 'The credential belongs to another tenant')
  if (row === undefined)
    throw badReference('tenant', `there is no tenant ${JSON.stringify(reference)}`)
  return row.id
}

export const badReference = (path: string, message: string): ApiError =>
  badRequest('The body is not valid', [{ path, message }])

/** Does `work` for a body as it was given: what is wrong with its `carrier_id` is told at that path, not at `carrier`. */
export function inTermsOf<T>(given: Readonly<Record<string, unknown>>, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof ApiError) || error.details === undefined) throw error
    const { status, code, message, headers, details } = error
    throw new ApiError(status, code, message, {
      headers,
      details: details.map(({ path, message: what }) => ({
        path: given[path] == null && given[`${path}_id`] != null ? `${path}_id` : path,
        message: what,
      })),
    })
  }
}
