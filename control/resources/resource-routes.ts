/** The five routes of every resource: create, list, get, update, delete. */
import type { ChangeDeps, ChangeKind } from '../changes/kinds.ts'
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { transaction } from '../../schema/sql/query.ts'
import { readApart } from '../../schema/sql/read-apart.ts'
import type { EnginePort } from '../../schema/contracts/engine-port.ts'
import { requires, type BeyondScope, refuseBeyondScope, scopesToUndo, type Written } from '../auth/requires.ts'
import type { Principal } from '../auth/principal.ts'
import { creationsOf, recordChange, writeQuery, writesOf } from '../changes/change.ts'
import { notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { created, ok, type Settled, offsetOf, pageMeta, pageQuery } from '../http/envelope.ts'
import { validate } from '../http/validate.ts'
import { patched, patchOf } from './patch.ts'
import { inTermsOf } from './references.ts'
import type { Resource, Rows, Slice } from './resource.ts'
import { type RequestScope, requestScope } from '../auth/tenants.ts'

export interface ResourceRoutesDeps<View> {
  readonly world: ChangeDeps
  /** As which what is written is entered as a change, and undone. */
  readonly kind: ChangeKind
  /** Below `/api/v1`: `/routing/carriers`. */
  readonly path: string
  /** Requires its `:read` and `:write`. */
  readonly scope:
    'tenants' | 'dispatcher' | 'carriers' | 'routes' | 'customers' | 'rates' | 'agents'
  readonly resource: Resource<z.ZodObject, View>
  /** Puts the change into effect, before its response is sent. */
  readonly changed: (change: {
    readonly id: number
    readonly before?: View
    readonly after?: View
  }) => Promise<void>
  /** Looks up `resource.destinations` before a write. */
  readonly lookUp?: EnginePort['lookUp']
  /** Adds computed fields to a row for a response. */
  readonly show?: (view: View) => View
  /** Adds to rows that are read what other nodes know of them. */
  readonly withOthers?: (c: Context<ControlEnv>, views: readonly View[]) => Promise<readonly View[]>
  /**
   * Fields that require another scope than `scope`: returns those that a write has changed, checked inside
   * its transaction.
   */
  readonly beyond?: (written: Written<View>) => readonly BeyondScope[]
  /** Further query fields of the list, passed to `resource.list`. */
  readonly filters?: Readonly<Record<string, z.ZodType>>
}

export function resourceRoutes<View>(deps: ResourceRoutesDeps<View>) {
  const { world, kind, path, resource, changed, beyond, show = (view) => view } = deps
  const { store, now } = world
  // A view is the row of a table, not a promise.
  const shown = (view: View) => show(view) as Settled<View>
  const withOthers = deps.withOthers ?? (async (_, views) => views)
  const shownByAll = async (c: Context<ControlEnv>, views: readonly View[]) =>
    (await withOthers(c, views.map(show))) as readonly Settled<View>[]
  const read = requires(`${deps.scope}:read`)
  const write = requires(`${deps.scope}:write`)
  const patch = patchOf(resource.body, resource.onlyAtCreation)
  /** One transaction, rolled back when the principal may not write what `work` wrote. */
  const asAllowed = <T extends Written<View>>(
    principal: Principal,
    work: () => Promise<T>,
  ): Promise<T> =>
    transaction(store, async () => {
      const written = await work()
      if (beyond !== undefined) refuseBeyondScope(principal, beyond(written))
      return written
    })
  const entered = writesOf(world, kind, resource.noun)
  const createdAs = creationsOf(world, kind, resource.noun)
  const writeScope = `${deps.scope}:write` as const
  const query = z.strictObject({
    ...pageQuery,
    search: z.string().max(100).optional(),
    ...deps.filters,
  })

  return new Hono<ControlEnv>()
    .post(
      path,
      write,
      validate('query', writeQuery),
      validate('json', resource.body),
      async (c) => {
        const given = c.req.valid('json')
        const { reason = null } = c.req.valid('query')
        const { principal } = c.var
        const secret = await resource.hashSecret?.(given)
        const scope = await lookedUp(deps, requestScope(principal, now), async () => given)
        const insertion = async () => {
          const id = await inTermsOf(given, () => resource.insert(given, scope, secret))
          return { given, id, after: found(await resource.find(scope, id), resource.noun) }
        }
        const { written, changeId } = await createdAs(c, { given, reason }, async () => {
          const written = await asAllowed(principal, insertion)
          return { id: written.id, written, scopes: [writeScope] }
        })
        const { id, after } = written
        await changed({ id, after })
        recordChange(c, changeId, { before: null, after }, reason)
        return created(c, `/api/v1${path}/${id}`, shown(after))
      },
    )

    .get(path, read, validate('query', query), async (c) => {
      const { page, limit, search, ...filters } = c.req.valid('query')
      const slice = { limit, offset: offsetOf({ page, limit }), search, ...filters }
      const { rows, total } = await listed(deps, requestScope(c.var.principal, now), slice)
      return ok(c, await shownByAll(c, rows), pageMeta({ page, limit }, total))
    })

    .get(`${path}/:id`, read, validate('param', idParam(resource.noun)), async (c) => {
      const { id } = c.req.valid('param')
      const view = await resource.find(requestScope(c.var.principal, now), id)
      const [whole] = await shownByAll(c, [found(view, resource.noun)])
      return ok(c, found(whole, resource.noun))
    })

    .patch(
      `${path}/:id`,
      write,
      validate('param', idParam(resource.noun)),
      validate('query', writeQuery),
      validate('json', patch),
      async (c) => {
        const { id } = c.req.valid('param')
        const changes = c.req.valid('json')
        const { reason = null } = c.req.valid('query')
        const { principal } = c.var
        const secret = await resource.hashSecret?.(changes)
        const asker = requestScope(c.var.principal, now)
        const bodyNow = async () =>
          patched(resource.body, found(await resource.document(asker, id), resource.noun), changes)
        const scope = await lookedUp(deps, asker, bodyNow)
        const replacement = async () => {
          const before = found(await resource.find(scope, id), resource.noun)
          // Read again: another request may have changed it meanwhile.
          const body = await bodyNow()
          await inTermsOf(changes, () => resource.replace(id, body, scope, secret))
          const after = found(await resource.find(scope, id), resource.noun)
          return { given: changes, before, after }
        }
        const { written, changeId } = await entered(c, id, { given: changes, reason }, async () => {
          const written = await asAllowed(principal, replacement)
          return { written, scopes: scopesToUndo(principal, writeScope, written, beyond) }
        })
        const { before, after } = written
        await changed({ id, before, after })
        recordChange(c, changeId, { before, after }, reason)
        return ok(c, shown(after))
      },
    )

    .delete(
      `${path}/:id`,
      write,
      validate('param', idParam(resource.noun)),
      validate('query', writeQuery),
      async (c) => {
        const { id } = c.req.valid('param')
        const { reason = null } = c.req.valid('query')
        const scope = requestScope(c.var.principal, now)
        const removal = async () => {
          const before = await resource.find(scope, id)
          if ((await resource.remove(id, scope)) === 'absent') throw notFound(resource.noun)
          return { written: found(before, resource.noun), scopes: [writeScope] }
        }
        const { written, changeId } = await entered(c, id, { given: {}, reason }, removal)
        await changed({ id, before: written })
        recordChange(c, changeId, { before: written, after: null }, reason)
        return ok(c, { id, deleted: true })
      },
    )
}

const listed = <View>(
  { resource, world }: Pick<ResourceRoutesDeps<View>, 'resource' | 'world'>,
  scope: RequestScope,
  slice: Slice,
): Promise<Rows<View>> => readApart(world.store, scope.tenantId, () => resource.list(scope, slice))

const lookedUp = async <View>(
  { resource, lookUp }: Pick<ResourceRoutesDeps<View>, 'resource' | 'lookUp'>,
  scope: RequestScope,
  body: () => Promise<z.output<z.ZodObject>>,
): Promise<RequestScope> =>
  resource.destinations === undefined
    ? scope
    : withLookUp(scope, lookUp, resource.destinations(await body()))

/** Adds the DNS results of these URIs to the scope. */
export async function withLookUp(
  scope: RequestScope,
  lookUp: EnginePort['lookUp'] | undefined,
  uris: readonly string[],
): Promise<RequestScope> {
  if (lookUp === undefined || uris.length === 0) return scope
  return { ...scope, ...(await lookUp(uris)) }
}

/** Anything that is not an id is 404, like an id of another tenant. */
export const idParam = (noun: string) => z.strictObject({ id: id(noun) })

export const id = (noun: string) =>
  z.string().transform((text) => {
    if (/^[1-9]\d{0,14}$/.test(text)) return Number(text)
    throw notFound(noun)
  })

export function found<T>(row: T | undefined, noun: string): T {
  if (row === undefined) throw notFound(noun)
  return row
}
