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
import { describeRoute, validate } from '../http/validate.ts'
import { resourceOperations } from '../http/resource-operations.ts'
import { patched, patchOf } from './patch.ts'
import { inTermsOf } from './references.ts'
import { type Definition, resourceDeps, storeOf, type ViewOf } from './resource.ts'
import { type RequestScope, requestScope } from '../auth/tenants.ts'

export interface RouteOptions<View extends z.ZodObject, Live> {
  /** Adds computed fields to a row for a response. */
  readonly show?: (view: ViewOf<View>) => Live
  /** Adds figures of other nodes to rows that are read. */
  readonly withOthers?: (c: Context<ControlEnv>, views: readonly Live[]) => Promise<readonly Live[]>
  /** Further query fields of the list, for `matching` of the definition. */
  readonly filters?: Readonly<Record<string, z.ZodType>>
  /** The body of a new row, where it has other required fields. */
  readonly newBody?: z.ZodObject
  /** Fields of the PATCH that differ from those of the body. */
  readonly patchFields?: Readonly<Record<string, z.ZodType>>
  /** Responses have no envelope (SPECIFICATION.md §4.1). */
  readonly isBare?: boolean
}

export function resourceRoutes<
  Body extends z.ZodObject,
  View extends z.ZodObject,
  Live extends object = ViewOf<View>,
>(deps: ChangeDeps, definition: Definition<Body, View>, options: RouteOptions<View, Live> = {}) {
  const { store, engine, now } = deps
  const { noun, path, kind, fields } = definition
  const { body, view, onlyAtCreation } = fields
  const resource = storeOf(definition, resourceDeps(deps))
  const { isBare = false, withOthers = async (_, views) => views } = options
  const show = (view: ViewOf<View>): WithoutPromises<Live> =>
    (options.show === undefined ? view : options.show(view)) as WithoutPromises<Live>
  const showAll = async (c: Context<ControlEnv>, views: readonly ViewOf<View>[]) =>
    (await withOthers(c, views.map(show))) as readonly WithoutPromises<Live>[]
  const answer = <T extends object>(c: Context<ControlEnv>, data: WithoutPromises<T>) =>
    isBare ? c.json(data) : ok(c, data)
  const described = resourceOperations(
    noun,
    view,
    { example: fields.example, ...definition.described },
    isBare,
  )
  const read = requires(`${definition.scope}:read`)
  const write = requires(`${definition.scope}:write`)
  const writeScope = `${definition.scope}:write` as const
  const patch = patchOf(body, onlyAtCreation).extend(options.patchFields ?? {})
  const beyond = (written: WrittenRow<ViewOf<View>>) => definition.beyond?.(written) ?? []
  const lookedUp = (scope: RequestScope, whole: z.output<Body>) =>
    withLookUp(scope, engine.lookUp, resource.destinations(whole))
  /** One transaction, rolled back when the principal may not write what `work` wrote. */
  const asAllowed = <T extends WrittenRow<ViewOf<View>>>(
    principal: Principal,
    work: () => Promise<T>,
  ): Promise<T> =>
    transaction(store, async () => {
      const written = await work()
      refuseBeyondScope(principal, beyond(written))
      return written
    })
  const enterWrite = writesOf(deps, kind, noun)
  const enterCreation = creationsOf(deps, kind, noun)
  const query = z.strictObject({
    ...pageQuery,
    search: z.string().max(100).optional(),
    ...options.filters,
  })

  return new Hono<ControlEnv>()
    .post(
      path,
      write,
      describeRoute(described.create),
      validate('query', writeQuery),
      validate('json', options.newBody ?? body),
      repeatable(),
      async (c) => {
        const given = c.req.valid('json') as z.output<Body>
        const { reason = null } = c.req.valid('query')
        const { principal } = c.var
        const secret = await resource.hashSecret(given)
        const scope = await lookedUp(requestScope(principal, now), given)
        const insertion = async () => {
          const id = await inTermsOf(given, () => resource.insert(given, scope, secret))
          return { given, id, after: found(await resource.find(scope, id), noun) }
        }
        const { written, changeId } = await enterCreation(c, { given, reason }, async () => {
          const inserted = await asAllowed(principal, insertion)
          return { id: inserted.id, written: inserted, scopes: [writeScope] }
        })
        const { id, after } = written
        await definition.follow?.(deps, { id, after })
        recordChange(c, changeId, { before: null, after }, reason)
        const location = `/api/v1${path}/${id}`
        if (!isBare) return created(c, location, show(after))
        c.header('Location', location)
        return c.json(show(after), 201)
      },
    )

    .get(path, read, describeRoute(described.list), validate('query', query), async (c) => {
      const { page, limit, search, ...filters } = c.req.valid('query')
      const slice = { limit, offset: offsetOf({ page, limit }), search, ...filters }
      const scope = requestScope(c.var.principal, now)
      const list = () => resource.list(scope, slice)
      const { rows, total } = await readApart(store, scope.tenantId, list)
      const data = await showAll(c, rows)
      const meta = pageMeta({ page, limit }, total)
      return isBare ? c.json({ data, total, meta }) : ok(c, data, meta)
    })

    .get(
      `${path}/:id`,
      read,
      describeRoute(described.get),
      validate('param', idParam(noun)),
      async (c) => {
        const view = await resource.find(
          requestScope(c.var.principal, now),
          c.req.valid('param').id,
        )
        const [whole] = await showAll(c, [found(view, noun)])
        return answer(c, found(whole, noun))
      },
    )

    .patch(
      `${path}/:id`,
      write,
      describeRoute(described.update),
      validate('param', idParam(noun)),
      validate('query', writeQuery),
      validate('json', patch),
      async (c) => {
        const { id } = c.req.valid('param')
        const given = c.req.valid('json')
        const { reason = null } = c.req.valid('query')
        const { principal } = c.var
        const secret = await resource.hashSecret(given as z.output<Body>)
        const asker = requestScope(principal, now)
        const bodyNow = async () =>
          patched(body, found(await resource.document(asker, id), noun), given)
        const scope =
          definition.destinations === undefined ? asker : await lookedUp(asker, await bodyNow())
        const replacement = async () => {
          const before = found(await resource.find(scope, id), noun)
          // Read again: another request may have changed it meanwhile.
          const whole = await bodyNow()
          await inTermsOf(given, () => resource.replace(id, whole, scope, secret))
          return { given, before, after: found(await resource.find(scope, id), noun) }
        }
        const { written, changeId } = await enterWrite(c, id, { given, reason }, async () => {
          const replaced = await asAllowed(principal, replacement)
          const scopes = scopesToUndo(principal, writeScope, replaced, beyond)
          return { written: replaced, scopes }
        })
        const { before, after } = written
        await definition.follow?.(deps, { id, before, after })
        recordChange(c, changeId, { before, after }, reason)
        return answer(c, show(after))
      },
    )

    .delete(
      `${path}/:id`,
      write,
      describeRoute(described.remove),
      validate('param', idParam(noun)),
      validate('query', writeQuery),
      async (c) => {
        const { id } = c.req.valid('param')
        const { reason = null } = c.req.valid('query')
        const scope = requestScope(c.var.principal, now)
        const removal = async () => {
          const before = await resource.find(scope, id)
          if ((await resource.remove(id, scope)) === 'absent') throw notFound(noun)
          return { written: found(before, noun), scopes: [writeScope] }
        }
        const { written, changeId } = await enterWrite(c, id, { given: {}, reason }, removal)
        await definition.follow?.(deps, { id, before: written })
        recordChange(c, changeId, { before: written, after: null }, reason)
        return answer(c, { id, deleted: true })
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
