/**
 * `/saved-views`: filters, order and columns of a screen of the console, kept by a name. They
 * follow their user to other browsers, and are seen by nobody else.
 */
import { Hono } from 'hono'
import { z } from 'zod'
import type { Principal } from '../auth/principal.ts'
import { requiresCredential } from '../auth/requires.ts'
import { ApiError, conflict, notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok, pageMeta } from '../http/envelope.ts'
import { name, text } from '../http/fields.ts'
import { data, list } from '../http/operation.ts'
import type { Platform } from '../http/platform.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { MAX_VIEWS, SavedViewStore, viewedScreens } from './saved-view-store.ts'

/** Long enough for a filter of each kind. */
const MAX_QUERY = 2_000

const screen = z.enum(viewedScreens).describe('The screen of the console.')
const query = text(MAX_QUERY).describe('Query of the address of the screen, without `?`.')
const viewName = name.max(60, 'must be at most 60 characters')

const savedView = z.strictObject({ screen, name: z.string(), query }).meta({ id: 'SavedView' })
const viewPath = z.strictObject({ screen, name: viewName })
const viewBody = z.strictObject({ query })

const path = '/saved-views'
const example = {
  screen: 'calls' as const,
  name: 'Failed of Acme',
  query: 'period=today&disposition=FAILED&customer_id=7',
}

type SavedViewDeps = Pick<Platform, 'store' | 'now'>

export function savedViewRoutes({ store, now }: SavedViewDeps) {
  const views = new SavedViewStore(store, now)
  return new Hono<ControlEnv>()
    .route('/', listSavedViewsRoute(views))
    .route('/', saveViewRoute(views))
    .route('/', removeSavedViewRoute(views))
}

const listSavedViewsRoute = (views: SavedViewStore) =>
  new Hono<ControlEnv>().get(
    path,
    describeRoute({
      id: 'listSavedViews',
      tag: 'Users',
      summary: `List the views that the signed-in user keeps, ${MAX_VIEWS} at most`,
      answer: list(savedView, example),
    }),
    requiresCredential(),
    async (c) => {
      const { principal } = c.var
      // A key keeps none.
      const rows = principal.kind === 'user' ? await views.list(principal.userId) : []
      return ok(c, rows, pageMeta({ page: 1, limit: MAX_VIEWS }, rows.length))
    },
  )

const saveViewRoute = (views: SavedViewStore) =>
  new Hono<ControlEnv>().put(
    `${path}/:screen/:name`,
    describeRoute({
      id: 'saveView',
      tag: 'Users',
      summary: 'Keep a view of the signed-in user by this name, in place of an earlier one',
      body: { query: example.query },
      answer: data(savedView, example),
      refusals: [409],
    }),
    requiresCredential(),
    validate('param', viewPath),
    validate('json', viewBody),
    async (c) => {
      const userId = userOf(c.var.principal)
      const view = { ...c.req.valid('param'), ...c.req.valid('json') }
      const outcome = await views.save(userId, view)
      if (outcome === 'full')
        throw conflict('too_many_views', `A user keeps at most ${MAX_VIEWS} views: delete one`)
      c.set('change', { before: outcome.before ?? null, after: view })
      return ok(c, view)
    },
  )

const removeSavedViewRoute = (views: SavedViewStore) =>
  new Hono<ControlEnv>().delete(
    `${path}/:screen/:name`,
    describeRoute({
      id: 'removeSavedView',
      tag: 'Users',
      summary: 'Delete a view of the signed-in user',
      answer: data(savedView, example),
      refusals: [404],
    }),
    requiresCredential(),
    validate('param', viewPath),
    async (c) => {
      const removed = await views.remove(userOf(c.var.principal), c.req.valid('param'))
      if (removed === undefined) throw notFound('View')
      c.set('change', { before: removed, after: null })
      return ok(c, removed)
    },
  )

/** The user whose views they are. */
function userOf(principal: Principal): number {
  if (principal.kind === 'user') return principal.userId
  throw new ApiError(403, 'insufficient_scope', 'Views belong to users: a key has none')
}
