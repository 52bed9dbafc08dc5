/** Resources name each other by id or by name, in REST bodies and in seed files alike. */
import type { Store } from '../../schema/open.ts'
import { first } from '../../schema/query.ts'
import { ApiError, badRequest } from '../http/api-error.ts'
import type { Reference } from './fields.ts'
import type { Reach } from './resource.ts'

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
  readonly reach: Reach
}

/**
 * The id behind a reference. What the writer cannot see does not exist for him, except what the row
 * refers to already (`current`), so that a tenant may change the rest of it. Throws 400.
 */
export function resolve(
  store: Store,
  kind: Exclude<Referable, 'tenant'>,
  reference: Reference | null,
  owner: Owner,
  current?: number | null,
): number | null {
  if (reference === null) return null
  const row = first(
    store,
    store.db
      .selectFrom(kind)
      .select(['id', 'tenant_id'])
      .where(typeof reference === 'number' ? 'id' : nameColumns[kind], '=', reference),
  )
  if (row !== undefined && row.id === current) return row.id
  const isVisible = owner.reach.tenantId === null || row?.tenant_id === owner.reach.tenantId
  if (row === undefined || !isVisible)
    throw badReference(kind, `there is no ${kind} ${JSON.stringify(reference)}`)
  if (isForeign(row.tenant_id, owner))
    throw badReference(kind, `${kind} ${JSON.stringify(reference)} belongs to another tenant`)
  return row.id
}

/** Whether a row of `tenantId` may not be referred to, though the writer sees it. */
export const isForeign = (tenantId: number | null, owner: Owner): boolean =>
  owner.tenantId !== 'any' && tenantId !== null && tenantId !== owner.tenantId

/** The tenant that a body's row shall belong to: the writer's own, or for a global writer the one it names. */
export function tenantOf(
  store: Store,
  reference: Reference | null | undefined,
  reach: Reach,
): number | null {
  if (reference === null || reference === undefined) return reach.tenantId
  const column = typeof reference === 'number' ? 'id' : 'slug'
  const row = first(store, store.db.selectFrom('tenant').select('id').where(column, '=', reference))
  if (reach.tenantId !== null && row?.id !== reach.tenantId)
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
