/** Resolves references between resources by id or by name, in REST bodies and in seed files. */
import { type RequestScope } from '../auth/tenants.ts'
import { type Tables, all, first } from '../../schema/sql/query.ts'
import { didYouMean } from '../../schema/rules/names.ts'
import { ApiError, badRequest } from '../http/api-error.ts'
import type { Referable, Reference } from '../http/fields.ts'

/**
 * `"carrier": "loop"`, `"carrier": 3` and `"carrier_id": 3` are equivalent; two different ones are
 * rejected.
 */
export function either(field: string, ...spellings: readonly unknown[]): Reference | null {
  const [named, numbered] = spellings.map((spelling) => referenceIn(spelling))
  if (named != null && numbered != null && named !== numbered)
    throw badRequest('The body is invalid', [
      { path: `${field}_id`, message: `conflicts with ${field}: give one of them` },
    ])
  return named ?? numbered ?? null
}

const referenceIn = (spelling: unknown): Reference | null =>
  typeof spelling === 'string' || typeof spelling === 'number' ? spelling : null

/**
 * The owner of the referring row. A tenant can refer to its own and to platform rows; `any` for
 * rows without a tenant.
 */
export interface Owner {
  readonly tenantId: number | null | 'any'
  readonly scope: RequestScope
}

/** A candidate row for a reference, and its owner. */
interface Candidate {
  readonly id: number
  readonly tenant_id: number | null
}

/**
 * Returns the id of a reference, of a set its number. A name matches the tenant's own row before
 * the platform's. Rows that the writer cannot see do not exist for it, except the current one
 * (`current`), so that a tenant can change the rest of the row. Throws 400 at `path`, which is the
 * kind unless it is given.
 */
export async function resolve(
  store: Tables,
  kind: Referable,
  reference: Reference | null,
  owner: Owner & { readonly path?: string; readonly current?: number | null | undefined },
): Promise<number | null> {
  if (reference === null) return null
  const { current, path = kind } = owner
  const wanted = { path, noun: kind === 'dispatcher_set' ? 'dispatcher set' : kind, reference }
  const rows = await all(store, candidates(store, kind, reference))
  // Rows of others must not be revealed.
  const isThere = rows.some((row) => isVisible(row, owner) || row.id === current)
  if (!isThere && kind !== 'dispatcher_set' && typeof reference === 'string')
    throw noSuch(
      wanted,
      didYouMean(reference, await namesLike(store, kind, reference, owner.scope)),
    )
  return chosen(rows, wanted, owner, current).id
}

function candidates({ db }: Tables, kind: Referable, reference: Reference) {
  const isNumber = typeof reference === 'number'
  return kind === 'dispatcher_set'
    ? db
        .selectFrom(kind)
        .select(['set_id as id', 'tenant_id'])
        .where(isNumber ? 'set_id' : 'endpoint_name', '=', reference)
    : db
        .selectFrom(kind)
        .select(['id', 'tenant_id'])
        .where(isNumber ? 'id' : 'name', '=', reference)
}

const isVisible = ({ tenant_id }: Candidate, { scope: { tenantId } }: Owner): boolean =>
  tenantId === null || tenant_id === tenantId

/** Names to compare a wrong one with: a table may have a hundred thousand. */
const MAX_NAMES = 500

/**
 * Names that the writer sees: those with the same beginning, which an index finds, and the first
 * ones.
 */
async function namesLike(
  store: Tables,
  kind: Exclude<Referable, 'dispatcher_set'>,
  wrong: string,
  { tenantId }: RequestScope,
): Promise<readonly string[]> {
  let query = store.db.selectFrom(kind).select('name').limit(MAX_NAMES)
  if (tenantId !== null) query = query.where('tenant_id', '=', tenantId)
  const beginning = wrong.slice(0, 2)
  const alike = query
    .where('name', '>=', beginning)
    .where('name', '<', `${beginning}\uffff`)
    .orderBy('name')
  const rows = [...(await all(store, alike)), ...(await all(store, query.orderBy('id')))]
  return rows.map(({ name }) => name)
}

/** The reference, as an error message names it. */
export interface ReferenceName {
  readonly path: string
  readonly noun: string
  readonly reference: Reference
}

/**
 * Chooses from `rows`, which all match the name or id, the one that the reference means. Throws
 * 400.
 */
export function chosen<Row extends Candidate>(
  rows: readonly Row[],
  { path, noun, reference }: ReferenceName,
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
  if (visible.length === 0) throw noSuch({ path, noun, reference })
  throw badReference(path, `${noun} ${shown} belongs to another tenant`)
}

const noSuch = ({ path, noun, reference }: ReferenceName, offer = ''): ApiError =>
  badReference(path, `there is no ${noun} ${JSON.stringify(reference)}${offer && `.${offer}`}`)

/** Whether a row of `tenantId` must not be referred to, although the writer sees it. */
const isForeign = (tenantId: number | null, owner: Owner): boolean =>
  owner.tenantId !== 'any' && tenantId !== null && tenantId !== owner.tenantId

/** Returns the tenant of a body's row: the writer's own, or the one that a global writer names. */
export async function tenantOf(
  store: Tables,
  named: unknown,
  scope: RequestScope,
): Promise<number | null> {
  const reference = referenceIn(named)
  if (reference === null) return scope.tenantId
  const column = typeof reference === 'number' ? 'id' : 'slug'
  const row = await first(
    store,
    store.db.selectFrom('tenant').select('id').where(column, '=', reference),
  )
  if (scope.tenantId !== null && row?.id !== scope.tenantId)
    throw new ApiError(403, 'wrong_tenant', 'The credential belongs to another tenant')
  if (row === undefined) throw badReference('tenant', `unknown tenant ${JSON.stringify(reference)}`)
  return row.id
}

export const badReference = (path: string, message: string): ApiError =>
  badRequest('The body is invalid', [{ path, message }])

/**
 * Runs `work` for a body as given: an error about its `carrier_id` has that path, not `carrier`.
 */
export async function inTermsOf<T>(
  given: Readonly<Record<string, unknown>>,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work()
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
