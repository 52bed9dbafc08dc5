/** `/routing-webhooks`: the five routes, the rotation of the secret, and a test question. */
import { Hono } from 'hono'
import { z } from 'zod'
import { transaction } from '../../schema/sql/query.ts'
import { newSecret } from '../../schema/secrets/webhook-signature.ts'
import { repeatable } from '../auth/idempotency.ts'
import { requires } from '../auth/requires.ts'
import { requestScope } from '../auth/tenants.ts'
import type { ChangeDeps } from '../changes/kinds.ts'
import { notFound } from '../http/api-error.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok } from '../http/envelope.ts'
import { numberOrUserName } from '../http/fields.ts'
import { data } from '../http/operation.ts'
import { rotateBody } from '../http/signing-secret.ts'
import { describeRoute, validate } from '../http/validate.ts'
import { inviteDecision } from './hook-schemas.ts'
import { resourceDeps, storeOf } from './resource.ts'
import { found, idParam, resourceRoutes } from './resource-routes.ts'
import {
  exampleRoutingWebhookSecret,
  rotateSecret,
  routingWebhooks,
  routingWebhookWithSecret,
  secretOf,
  withFigures,
} from './routing-webhooks.ts'

const { noun, path } = routingWebhooks
const write = requires('webhooks:write')

export function routingWebhookRoutes(deps: ChangeDeps) {
  return new Hono<ControlEnv>()
    .route(
      '/',
      resourceRoutes(deps, routingWebhooks, {
        show: (webhook) => withFigures(webhook, deps.engine.routingWebhooks),
        secretOf: (id) => secretOf(deps.store, id),
      }),
    )
    .route('/', rotateRoute(deps))
    .route('/', testRoute(deps))
}

function rotateRoute(deps: ChangeDeps) {
  const { store, now, engine } = deps
  const webhooks = storeOf(routingWebhooks, resourceDeps(deps))
  return new Hono<ControlEnv>().post(
    `${path}/:id/rotate`,
    describeRoute({
      id: 'rotateRoutingWebhookSecret',
      tag: 'Webhooks',
      summary: 'Rotate the secret. The old one stays valid during the overlap.',
      body: { overlap_seconds: 86_400 },
      answer: data(routingWebhookWithSecret, exampleRoutingWebhookSecret),
    }),
    write,
    validate('param', idParam(noun)),
    validate('json', rotateBody),
    repeatable({ shownOnce: 'secret' }),
    async (c) => {
      const { id } = c.req.valid('param')
      const { overlap_seconds: overlap } = c.req.valid('json')
      const scope = requestScope(c.var.principal, now)
      const times = { now: now(), oldExpiresAt: now() + overlap * 1_000 }
      const secret = newSecret(deps.randomBytes)
      const { before, after } = await transaction(store, async () => {
        const earlier = found(await webhooks.find(scope, id), noun)
        await rotateSecret(store, id, secret, times)
        return {
          before: earlier,
          after: found(await webhooks.find(scope, id), noun),
        }
      })
      await engine.routingWebhooks.reload()
      c.set('change', { before, after })
      c.header('Cache-Control', 'no-store')
      return ok(c, { ...withFigures(after, engine.routingWebhooks), secret })
    },
  )
}

const testBody = z.strictObject({
  from: numberOrUserName.describe('Number of the caller.'),
  to: numberOrUserName.describe('Number that is called.'),
})

const testView = z
  .strictObject({
    outcome: z.enum(['decided', 'nothing', 'failed']),
    decision: inviteDecision.nullable(),
    reason: z.string().nullable().describe('Why it has failed.'),
    fallback: z.enum(['continue', 'refuse']).describe('What would hold after a failure.'),
    ms: z.number().min(0),
  })
  .meta({ id: 'RoutingWebhookTest' })

export type WebhookTest = z.output<typeof testView>

const exampleTest = {
  outcome: 'decided',
  decision: { set: 2, tags: { crm: 'gold' } },
  reason: null,
  fallback: 'continue',
  ms: 21.4,
}

function testRoute(deps: ChangeDeps) {
  const { now, engine } = deps
  const webhooks = storeOf(routingWebhooks, resourceDeps(deps))
  return new Hono<ControlEnv>().post(
    `${path}/:id/test`,
    describeRoute({
      id: 'testRoutingWebhook',
      tag: 'Webhooks',
      summary: 'Ask about a call that does not exist. Nothing is kept or counted.',
      body: { from: '4930100', to: '4940200' },
      answer: data(testView, exampleTest),
    }),
    write,
    validate('param', idParam(noun)),
    validate('json', testBody),
    repeatable(),
    async (c) => {
      const { id } = c.req.valid('param')
      found(await webhooks.find(requestScope(c.var.principal, now), id), noun)
      const result = await engine.routingWebhooks.test(id, c.req.valid('json'))
      if (result === undefined) throw notFound(noun)
      return ok(c, result)
    },
  )
}
