/** The payment provider's webhook, and the alerts about payments. */
import { Hono } from 'hono'
import { z } from 'zod'
import type { Log } from '../../../schema/contracts/log.ts'
import type { OcsPort } from '../../../schema/contracts/ocs.ts'
import type { Store } from '../../../schema/open.ts'
import { openToAll, requiresGlobal } from '../../auth/requires.ts'
import { ApiError, badRequest, notFound } from '../../http/api-error.ts'
import { parseJson, readBody } from '../../http/body.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { offsetOf, ok, pageMeta, pageQuery, queryId } from '../../http/envelope.ts'
import { validate } from '../../http/validate.ts'
import { idParam } from '../../resources/resource-routes.ts'
import { AlertStore } from './alert-store.ts'
import { readPaymentEvent } from './payment-event.ts'
import { Payments } from './payments.ts'
import { isSignedByStripe } from './stripe-signature.ts'

export interface PaymentRoutesDeps {
  readonly store: Store
  readonly ocs: OcsPort
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly log: Log
  readonly settings: {
    /** Undefined: no provider is set up. */
    readonly paymentWebhookSecret: string | undefined
  }
}

/** Mounted under `/api/client`, on both listeners. */
export function paymentWebhookRoutes(deps: PaymentRoutesDeps) {
  const payments = new Payments(deps)
  const { paymentWebhookSecret: secret } = deps.settings
  return new Hono<ControlEnv>().post('/payments/webhook', openToAll(), async (c) => {
    if (secret === undefined)
      throw new ApiError(503, 'payments_not_configured', 'No payment provider is set up')
    const body = await readBody(c)
    if (!isSignedByStripe(body, c.req.header('stripe-signature'), secret, deps.now()))
      throw new ApiError(400, 'invalid_signature', 'The signature is missing, wrong or too old')
    const parsed = parseJson(body.toString('utf8'))
    const event = parsed.kind === 'value' ? readPaymentEvent(parsed.value) : undefined
    if (event === undefined) throw badRequest('The body is not an event')
    return ok(c, {
      received: true,
      event_id: event.eventId,
      outcome: await payments.receive(event),
    })
  })
}

const alertQuery = z.strictObject({
  ...pageQuery,
  state: z.enum(['open', 'resolved']).optional(),
  kind: z
    .enum([
      'unknown_customer',
      'currency_mismatch',
      'amount_mismatch',
      'unreadable_event',
      'balance_out_of_range',
      'refund',
      'dispute',
      'subscription_ended',
    ])
    .optional(),
  customer_id: queryId.optional(),
})

/** Mounted under `/api/v1`. A payment without a customer has no tenant, so only a global credential sees alerts. */
export function alertRoutes({ store, now }: Pick<PaymentRoutesDeps, 'store' | 'now'>) {
  const alerts = new AlertStore(store)
  return new Hono<ControlEnv>()
    .get(
      '/billing/alerts',
      requiresGlobal('wallets:read'),
      validate('query', alertQuery),
      async (c) => {
        const { page, limit, ...filter } = c.req.valid('query')
        const slice = { limit, offset: offsetOf({ page, limit }) }
        const { rows, total } = await alerts.list(filter, slice)
        return ok(c, rows, pageMeta({ page, limit }, total))
      },
    )
    .post(
      '/billing/alerts/:id/resolve',
      requiresGlobal('wallets:write'),
      validate('param', idParam('Alert')),
      async (c) => {
        const alert = await alerts.resolve(c.req.valid('param').id, c.var.principal.actor, now())
        if (alert === undefined) throw notFound('Alert')
        return ok(c, alert)
      },
    )
}
