/** `/alert-channels` with its test, and `/alerts`: the log. */
import { Hono } from 'hono'
import { z } from 'zod'
import { readApart } from '../../schema/sql/query.ts'
import { repeatable } from '../auth/idempotency.ts'
import { requires } from '../auth/requires.ts'
import { requestScope } from '../auth/tenants.ts'
import type { ChangeDeps } from '../changes/kinds.ts'
import { conflict } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { endingMeta, offsetOf, ok, pageQuery, queryId } from '../http/envelope.ts'
import { data, list } from '../http/operation.ts'
import { describeRoute, validate } from '../http/validate.ts'
import { alertChannels, channelSecret } from '../resources/alert-channels.ts'
import { resourceDeps, storeOf } from '../resources/resource.ts'
import { found, idParam, resourceRoutes } from '../resources/resource-routes.ts'
import { alertFields, findAlert, listAlerts } from './alert-log.ts'
import type { Alerts } from './alerts.ts'

type AlertRoutesDeps = ChangeDeps & { readonly alerts: Alerts }

const read = requires('webhooks:read')
const write = requires('webhooks:write')
const { view: alertView, example: exampleAlert } = alertFields

export function alertNoticeRoutes(deps: AlertRoutesDeps) {
  return new Hono<ControlEnv>()
    .route(
      '/',
      resourceRoutes(deps, alertChannels, {
        secretOf: async (id) => generatedSecret(deps, id),
      }),
    )
    .route('/', testRoute(deps))
    .route('/', listRoute(deps))
    .route('/', getRoute(deps))
}

const testView = z
  .strictObject({
    is_delivered: z.boolean(),
    error: z.string().nullable().describe('Why it was not delivered, or to whom it was not.'),
  })
  .meta({ id: 'AlertChannelTest' })

export type AlertChannelTest = z.output<typeof testView>

function testRoute(deps: AlertRoutesDeps) {
  const channels = storeOf(alertChannels, resourceDeps(deps))
  return new Hono<ControlEnv>().post(
    `${alertChannels.path}/:id/test`,
    describeRoute({
      id: 'testAlertChannel',
      tag: 'Alerts',
      summary: 'Send a test by the channel now, and say what became of it',
      answer: data(testView, { is_delivered: true, error: null }),
      refusals: [409],
    }),
    write,
    validate('param', idParam(alertChannels.noun)),
    repeatable(),
    async (c) => {
      const { id } = c.req.valid('param')
      found(await channels.find(requestScope(c.var.principal, deps.now), id), alertChannels.noun)
      const outcome = found(await deps.alerts.test(id), alertChannels.noun)
      if (outcome === 'busy') throw conflict('test_running', 'A test is under way')
      const isSent = outcome.kind === 'sent'
      const error = isSent ? (outcome.refused ?? null) : outcome.reason
      return ok(c, { is_delivered: isSent, error })
    },
  )
}

const listRoute = ({ store, now }: AlertRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/alerts',
    describeRoute({
      id: 'listAlerts',
      tag: 'Alerts',
      summary: 'List alerts, newest first',
      answer: list(alertView, exampleAlert),
    }),
    read,
    validate(
      'query',
      z.strictObject({
        ...pageQuery,
        state: z.enum(['waiting', 'open', 'closed']).optional(),
        rule_id: queryId.optional(),
      }),
    ),
    async (c) => {
      const { state, rule_id, ...page } = c.req.valid('query')
      const scope = requestScope(c.var.principal, now)
      const query = { state, rule_id, limit: page.limit, offset: offsetOf(page) }
      const { rows, total } = await readApart(store, scope.tenantId, () =>
        listAlerts(store, scope, query),
      )
      return ok(c, rows, endingMeta(page, total))
    },
  )

const getRoute = ({ store, now }: AlertRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/alerts/:id',
    describeRoute({
      id: 'getAlert',
      tag: 'Alerts',
      summary: 'Get an alert',
      answer: data(alertView, exampleAlert),
    }),
    read,
    validate('param', idParam('Alert')),
    async (c) => {
      const scope = requestScope(c.var.principal, now)
      return ok(c, found(await findAlert(store, scope, c.req.valid('param').id), 'Alert'))
    },
  )

/** Only the signing secret of a webhook is one that others have to enter. */
async function generatedSecret({ store }: AlertRoutesDeps, id: number) {
  const secret = await channelSecret(store, id)
  return secret?.startsWith('whsec_') === true ? secret : undefined
}
