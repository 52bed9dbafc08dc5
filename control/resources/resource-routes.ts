/** The five routes of every resource: create, list, get, update, delete. */
import type { ChangeDeps } from '../changes/kinds.ts'
import { type Context, Hono } from 'hono'
import { z } from 'zod'
import { readApart, transaction } from '../../schema/sql/query.ts'
import type { EnginePort } from '../../schema/contracts/engine.ts'
import { requires, refuseBeyondScope, scopesToUndo, type WrittenRow } from '../auth/requires.ts'
import { repeatable } from '../auth/idempotency.ts'
import type { Principal } from '../auth/principal.ts'
import { creationsOf, recordChange, writeQuery, writesOf } from '../changes/change.ts'
import { notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import {
  created,
  ok,
  type WithoutPromises,
  offsetOf,
  pageMeta,
  pageQuery,
} from '../http/envelope.ts'
import { refuseOtherVersion, showVersion, versioned } from '../http/precondition.ts'
import { describeRoute, validate } from '../http/validate.ts'
import { resourceOperations } from '../http/resource-operations.ts'
import { patched, patchOf } from './patch.ts'
import { inTermsOf } from './references.ts'
import {
  type Definition,
  kindOf,
  resourceDeps,
  storeOf,
  type Versioned,
  type ViewOf,
} from './resource.ts'
import { type RequestScope, requestScope } from '../auth/tenants.ts'

export interface RouteOptions<View extends z.ZodObject, Live> {
  /** Adds computed fields to a row for a response. */
  readonly show?: (view: ViewOf<View>) => Live
  /** Adds figures of other instances to rows that are read. */
  readonly withOthers?: (c: Context<ControlEnv>, views: readonly Live[]) => Promise<readonly Live[]>
  /** Further query fields of the list, for `matching` of its store. */
  readonly filters?: Readonly<Record<string, z.ZodType>>
  /** The body of a new row, where it has other required fields. */
  readonly newBody?: z.ZodObject
  /** Fields of the PATCH that differ from those of the body. */
  readonly patchFields?: Readonly<Record<string, z.ZodType>>
  /** Reads the secret that the response of a creation shows, and no other one. */
  readonly secretOf?: (id: number) => Promise<string | undefined>
  /** Responses have no envelope (SPECIFICATION.md §4.1). */
  readonly isBare?: boolean
}

export function resourceRoutes<
  Body extends z.ZodObject,
  View extends z.ZodObject,
  Live extends object = ViewOf<View>,
>(deps: ChangeDeps, definition: Definition<Body, View>, options: RouteOptions<View, Live> = {}) {
  const routes = routesOf(deps, definition, options)
  return new Hono<ControlEnv>()
    .route('/', createRoute(routes))
    .route('/', listRoute(routes))
    .route('/', getRoute(routes))
    .route('/', updateRoute(routes))
    .route('/', deleteRoute(routes))
}

type Routes<Body extends z.ZodObject, View extends z.ZodObject, Live extends object> = ReturnType<
  typeof routesOf<Body, View, Live>
>

/** Parts that the five routes share. */
function routesOf<Body extends z.ZodObject, View extends z.ZodObject, Live extends object>(
  deps: ChangeDeps,
  definition: Definition<Body, View>,
  options: RouteOptions<View, Live>,
) {
  const { noun, path, scope, fields } = definition
  const { isBare = false, withOthers = async (_, views) => views } = options
  const resource = storeOf(definition, resourceDeps(deps))
  const described = { example: fields.example, ...definition.described }
  const show = (view: ViewOf<View>): WithoutPromises<Live> =>
    (options.show === undefined ? view : options.show(view)) as WithoutPromises<Live>
  const beyond = (written: WrittenRow<ViewOf<View>>) => definition.beyond?.(written) ?? []
  return {
    deps,
    definition,
    options,
    noun,
    path,
    isBare,
    resource,
    show,
    beyond,
    read: requires(`${scope}:read`),
    write: requires(`${scope}:write`),
    writeScope: `${scope}:write` as const,
    described: resourceOperations(noun, fields.view, described, isBare),
    showAll: async (c: Context<ControlEnv>, views: readonly ViewOf<View>[]) =>
      (await withOthers(c, views.map(show))) as readonly WithoutPromises<Live>[],
    answer: <T extends object>(c: Context<ControlEnv>, data: WithoutPromises<T>) =>
      isBare ? c.json(data) : ok(c, data),
    lookedUp: (asker: RequestScope, whole: z.output<Body>) =>
      withLookUp(asker, deps.engine.lookUp, resource.destinations(whole)),
    /** One transaction, rolled back when the principal may not write what `work` wrote. */
    asAllowed: <T extends WrittenRow<ViewOf<View>>>(
      principal: Principal,
      work: () => Promise<T>,
    ): Promise<T> =>
      transaction(deps.store, async () => {
        const written = await work()
        refuseBeyondScope(principal, beyond(written))
        return written
      }),
    existing: async (asker: RequestScope, rowId: number) =>
      found(await resource.versioned(asker, rowId), noun),
    refuseOther: (c: Context<ControlEnv>, { view, version }: Versioned<ViewOf<View>>) => {
      const isReader = c.get('principal').scopes.has(`${scope}:read`)
      refuseOtherVersion(c, { version, shown: isReader ? () => show(view) : undefined })
    },
  }
}

function createRoute<Body extends z.ZodObject, View extends z.ZodObject, Live extends object>(
  routes: Routes<Body, View, Live>,
) {
  const { deps, definition, noun, path, resource, show, existing } = routes
  const enterCreation = creationsOf(deps, kindOf(definition), noun)
  return new Hono<ControlEnv>().post(
    path,
    routes.write,
    describeRoute(routes.described.create),
    validate('query', writeQuery),
    validate('json', routes.options.newBody ?? definition.fields.body),
    repeatable(routes.options.secretOf && { shownOnce: 'secret' }),
    async (c) => {
      const given = c.req.valid('json') as z.output<Body>
      const { reason = null } = c.req.valid('query')
      const { principal } = c.var
      const secret = await resource.hashSecret(given)
      const scope = await routes.lookedUp(requestScope(principal, deps.now), given)
      const insertion = async () => {
        const rowId = await inTermsOf(given, () => resource.insert(given, scope, secret))
        return { given, id: rowId, after: (await existing(scope, rowId)).view }
      }
      const { written, changeId } = await enterCreation(c, { given, reason }, async () => {
        const inserted = await routes.asAllowed(principal, insertion)
        return { id: inserted.id, written: inserted, scopes: [routes.writeScope] }
      })
      const { id: rowId, after } = written
      await definition.follow?.(deps, { id: rowId, after })
      recordChange(c, changeId, { before: null, after }, reason)
      const location = `/api/v1${path}/${rowId}`
      const secretShown = await routes.options.secretOf?.(rowId)
      if (secretShown !== undefined) {
        c.header('Cache-Control', 'no-store')
        return c.json(
          { success: true, data: Object.assign({}, show(after), { secret: secretShown }) },
          { status: 201, headers: { Location: location } },
        )
      }
      if (!routes.isBare) return created(c, location, show(after))
      c.header('Location', location)
      return c.json(show(after), 201)
    },
  )
}

function listRoute<Body extends z.ZodObject, View extends z.ZodObject, Live extends object>(
  routes: Routes<Body, View, Live>,
) {
  const { deps, options, path, resource, isBare } = routes
  const query = z.strictObject({
    ...pageQuery,
    search: z.string().max(100).optional(),
    ...options.filters,
  })
  return new Hono<ControlEnv>().get(
    path,
    routes.read,
    describeRoute(routes.described.list),
    validate('query', query),
    async (c) => {
      const { page, limit, search, ...filters } = c.req.valid('query')
      const slice = { limit, offset: offsetOf({ page, limit }), search, ...filters }
      const scope = requestScope(c.var.principal, deps.now)
      const list = () => resource.list(scope, slice)
      const { rows, total } = await readApart(deps.store, scope.tenantId, list)
      const data = await routes.showAll(c, rows)
      const meta = pageMeta({ page, limit }, total)
      return isBare ? c.json({ data, total, meta }) : ok(c, data, meta)
    },
  )
}

function getRoute<Body extends z.ZodObject, View extends z.ZodObject, Live extends object>(
  routes: Routes<Body, View, Live>,
) {
  const { deps, noun, path } = routes
  return new Hono<ControlEnv>().get(
    `${path}/:id`,
    routes.read,
    versioned(),
    describeRoute(routes.described.get),
    validate('param', idParam(noun)),
    async (c) => {
      const asker = requestScope(c.var.principal, deps.now)
      const { view, version } = await routes.existing(asker, c.req.valid('param').id)
      showVersion(c, version)
      const [whole] = await routes.showAll(c, [view])
      return routes.answer(c, found(whole, noun))
    },
  )
}

function updateRoute<Body extends z.ZodObject, View extends z.ZodObject, Live extends object>(
  routes: Routes<Body, View, Live>,
) {
  const { deps, definition, options, noun, path, resource, existing } = routes
  const { body, onlyAtCreation } = definition.fields
  const enterWrite = writesOf(deps, kindOf(definition), noun)
  return new Hono<ControlEnv>().patch(
    `${path}/:id`,
    routes.write,
    versioned(),
    describeRoute(routes.described.update),
    validate('param', idParam(noun)),
    validate('query', writeQuery),
    validate('json', patchOf(body, onlyAtCreation).extend(options.patchFields ?? {})),
    async (c) => {
      const { id: rowId } = c.req.valid('param')
      const given = c.req.valid('json')
      const { reason = null } = c.req.valid('query')
      const { principal } = c.var
      const secret = await resource.hashSecret(given as z.output<Body>)
      const asker = requestScope(principal, deps.now)
      const bodyNow = async () =>
        patched(body, found(await resource.document(asker, rowId), noun), given)
      const scope =
        definition.destinations === undefined
          ? asker
          : await routes.lookedUp(asker, await bodyNow())
      const replacement = async () => {
        const before = await existing(scope, rowId)
        routes.refuseOther(c, before)
        // Read again: another request may have changed it meanwhile.
        const whole = await bodyNow()
        await inTermsOf(given, () => resource.replace(rowId, whole, scope, secret))
        const { view: after, version } = await existing(scope, rowId)
        return { given, before: before.view, after, version }
      }
      const { written, changeId } = await enterWrite(c, rowId, { given, reason }, async () => {
        const replaced = await routes.asAllowed(principal, replacement)
        const scopes = scopesToUndo(principal, routes.writeScope, replaced, routes.beyond)
        return { written: replaced, scopes }
      })
      const { before, after, version } = written
      await definition.follow?.(deps, { id: rowId, before, after })
      recordChange(c, changeId, { before, after }, reason)
      showVersion(c, version)
      return routes.answer(c, routes.show(after))
    },
  )
}

function deleteRoute<Body extends z.ZodObject, View extends z.ZodObject, Live extends object>(
  routes: Routes<Body, View, Live>,
) {
  const { deps, definition, noun, path, resource } = routes
  const enterWrite = writesOf(deps, kindOf(definition), noun)
  return new Hono<ControlEnv>().delete(
    `${path}/:id`,
    routes.write,
    versioned(),
    describeRoute(routes.described.remove),
    validate('param', idParam(noun)),
    validate('query', writeQuery),
    async (c) => {
      const { id: rowId } = c.req.valid('param')
      const { reason = null } = c.req.valid('query')
      const scope = requestScope(c.var.principal, deps.now)
      const removal = async () => {
        const before = await resource.versioned(scope, rowId)
        if (before !== undefined) routes.refuseOther(c, before)
        if ((await resource.remove(rowId, scope)) === 'absent') throw notFound(noun)
        return { written: found(before?.view, noun), scopes: [routes.writeScope] }
      }
      const { written, changeId } = await enterWrite(c, rowId, { given: {}, reason }, removal)
      await definition.follow?.(deps, { id: rowId, before: written })
      recordChange(c, changeId, { before: written, after: null }, reason)
      return routes.answer(c, { id: rowId, deleted: true })
    },
  )
}

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
