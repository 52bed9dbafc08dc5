/** The payment provider's webhook, and the alerts about payments. */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { Hono } from 'hono'
import { z } from 'zod'
import type { OcsPort } from '../../schema/contracts/charging.ts'
import { openToAll, requiresGlobal } from '../auth/requires.ts'
import { repeatable } from '../auth/idempotency.ts'
import { ApiError, badRequest, conflict, notFound } from '../http/api-error.ts'
import { readBody, parseJson } from '../http/body.ts'
import type { ControlEnv } from '../http/control-env.ts'
import { ok, offsetOf, pageMeta, pageQuery, queryId } from '../http/envelope.ts'
import type { Platform } from '../http/platform.ts'
import { validate, describeRoute } from '../http/validate.ts'
import { AlertStore } from './alert-store.ts'
import { readPaymentEvent } from './payment-event.ts'
import { type Assigned, Payments, type PaymentsDeps } from './payments.ts'
import { money, reference } from '../http/fields.ts'
import { badReference, resolve } from '../resources/references.ts'
import { requestScope } from '../auth/tenants.ts'
import { moneyToDecimal } from '../../schema/columns.ts'
import { idParam } from '../resources/resource-routes.ts'
import { amount, currency } from '../resources/rate-routes.ts'
import { data, list } from '../http/operation.ts'
import { decimal, exampleTime, moment } from '../http/view-fields.ts'

const alertKinds = [
  'unknown_customer',
  'currency_mismatch',
  'amount_mismatch',
  'not_arrived',
  'unreadable_event',
  'balance_out_of_range',
  'resolved_before',
  'refund',
  'dispute',
  'subscription_ended',
] as const

const alertView = z
  .strictObject({
    id: z.int(),
    kind: z.enum(alertKinds),
    event_id: z.string(),
    event_kind: z.string(),
    customer_id: z.int().nullable(),
    reference: z.string().nullable(),
    amount: amount.nullable(),
    amount_exact: decimal.nullable(),
    currency: currency.nullable(),
    detail: z.string(),
    created_at: moment,
    resolved_at: moment.nullable(),
    resolved_by: z.string().nullable(),
    assignable: z.boolean().describe('It can be assigned to a customer, who is credited.'),
  })
  .meta({ id: 'BillingAlert' })

const exampleAlert = {
  id: 1,
  kind: 'unknown_customer',
  event_id: 'evt_1',
  event_kind: 'invoice.paid',
  customer_id: null,
  reference: 'pi_1',
  amount: 10,
  amount_exact: '10.00',
  currency: 'USD',
  detail: 'no customer',
  created_at: exampleTime,
  resolved_at: null,
  resolved_by: null,
  assignable: true,
}

const settledAlert = {
  ...exampleAlert,
  resolved_at: exampleTime,
  resolved_by: 'user:ada',
  assignable: false,
}

export type PaymentRoutesDeps = PaymentsDeps & {
  readonly ocs: OcsPort
  readonly settings: Pick<Platform['settings'], 'paymentWebhookSecret'>
}

/** Mounted under `/api/client`, on both listeners. */
export function paymentWebhookRoutes(deps: PaymentRoutesDeps) {
  const payments = new Payments(deps)
  const { paymentWebhookSecret: secret } = deps.settings
  return new Hono<ControlEnv>().post(
    '/payments/webhook',
    describeRoute({
      id: 'receivePaymentEvent',
      tag: 'Payments',
      summary: 'Receive a payment event, signed as Stripe signs its events',
      bodyType: 'application/json',
      body: { id: 'evt_1', type: 'invoice.paid', data: { object: { id: 'in_1' } } },
      answer: data(
        z.strictObject({
          received: z.literal(true),
          event_id: z.string(),
          outcome: z.enum(['credited', 'duplicate', 'ignored', 'alert']),
        }),
        { received: true, event_id: 'evt_1', outcome: 'credited' },
      ),
      refusals: [503],
    }),
    openToAll(),
    async (c) => {
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
    },
  )
}

const alertQuery = z.strictObject({
  ...pageQuery,
  state: z.enum(['open', 'resolved']).optional(),
  kind: z.enum(alertKinds).optional(),
  customer_id: queryId.optional(),
})

/**
 * Mounted under `/api/v1`. A payment without a customer has no tenant, so only a global credential
 * sees alerts.
 */
export function alertRoutes(deps: PaymentsDeps) {
  const alerts = new AlertStore(deps.store)
  return new Hono<ControlEnv>()
    .route('/', listBillingAlertsRoute(alerts))
    .route('/', resolveBillingAlertRoute(deps, alerts))
    .route('/', assignPaymentRoute(deps, alerts))
}

const listBillingAlertsRoute = (alerts: AlertStore) =>
  new Hono<ControlEnv>().get(
    '/billing/alerts',
    describeRoute({
      id: 'listBillingAlerts',
      tag: 'Payments',
      summary: 'List billing alerts: payments that need attention',
      answer: list(alertView, exampleAlert),
    }),
    requiresGlobal('wallets:read'),
    validate('query', alertQuery),
    async (c) => {
      const { page, limit, ...filter } = c.req.valid('query')
      const slice = { limit, offset: offsetOf({ page, limit }) }
      const { rows, total } = await alerts.list(filter, slice)
      return ok(c, rows, pageMeta({ page, limit }, total))
    },
  )

const resolveBillingAlertRoute = ({ now }: PaymentsDeps, alerts: AlertStore) =>
  new Hono<ControlEnv>().post(
    '/billing/alerts/:id/resolve',
    describeRoute({
      id: 'resolveBillingAlert',
      tag: 'Payments',
      summary: 'Resolve a billing alert',
      answer: data(alertView, settledAlert),
    }),
    requiresGlobal('wallets:write'),
    validate('param', idParam('Alert')),
    repeatable(),
    async (c) => {
      const alert = await alerts.resolve(c.req.valid('param').id, c.var.principal.actor, now())
      if (alert === undefined) throw notFound('Alert')
      return ok(c, alert)
    },
  )

function assignPaymentRoute(deps: PaymentsDeps, alerts: AlertStore) {
  const payments = new Payments(deps)
  return new Hono<ControlEnv>().post(
    '/billing/alerts/:id/assign',
    describeRoute({
      id: 'assignPayment',
      tag: 'Payments',
      summary: 'Assign an uncredited payment to a customer, who is credited once',
      body: { customer: 7 },
      answer: data(alertView, settledAlert),
      refusals: [409],
    }),
    requiresGlobal('wallets:write'),
    validate('param', idParam('Alert')),
    validate('json', assignBody),
    repeatable(),
    async (c) => {
      const { id } = c.req.valid('param')
      const { customer, amount = null } = c.req.valid('json')
      const scope = requestScope(c.var.principal, deps.now)
      const customerId = await resolve(deps.store, 'customer', customer, { tenantId: 'any', scope })
      if (customerId === null) throw badReference('customer', 'is required')
      const before = await alerts.view(id)
      const order = { customerId, amountMicros: amount, actor: scope.actor }
      const assigned = await payments.assign(id, order)
      if (assigned === undefined) throw notFound('Alert')
      const alert = assignedAlert(assigned)
      if (assigned.kind === 'assigned' && assigned.isNew)
        c.set('change', { before, after: { ...alert, customer_id: customerId } })
      return ok(c, alert)
    },
  )
}

const assignBody = z.strictObject({
  customer: reference.describe('Id or exact name.'),
  amount: money({ min: 0.000001 })
    .optional()
    .describe(
      'Amount to credit, in the currency of the wallet. Absent: that of the payment, which ' +
        'needs the same currency and no refund.',
    ),
})

/** Throws 409 for what was not assigned. */
function assignedAlert(assigned: Assigned) {
  switch (assigned.kind) {
    case 'assigned':
      return assigned.alert
    case 'not_assignable':
      throw conflict('not_assignable', 'The alert is not about a payment that waits to be credited')
    case 'credited_before':
      throw conflict(
        'credited_before',
        `The payment is credited to customer ${assigned.customerId}. Nothing was changed`,
      )
    case 'resolved_before':
      throw conflict(
        'resolved_before',
        `${assigned.by} has resolved the alert. Nothing was changed: adjust the wallet, if ` +
          'the payment was not credited by hand',
      )
    case 'other_currency':
      throw conflict(
        'currency_mismatch',
        `The wallet is in ${assigned.walletCurrency ?? 'no currency'}: give the amount in ` +
          'that currency',
      )
    case 'refunded':
      throw conflict(
        'payment_refunded',
        `${moneyToDecimal(assigned.refundMicros)} of the payment was refunded: give the ` +
          'amount to credit',
      )
    case 'balance_out_of_range':
      throw conflict(
        'balance_out_of_range',
        'The balance would exceed the largest that can be stored',
      )
  }
}

/** Applies to past and future times; Stripe's own library accepts any future time. */
const toleranceSeconds = 300
/** Longer headers, or more signatures, are not Stripe's. */
const maxHeaderLength = 4_096

/**
 * Stripe's webhook signatures: `Stripe-Signature: t=<unix seconds>,v1=<hex>[,v1=…]`, each `v1` an
 * HMAC-SHA256 over `<t>.<body as received>` with the whole secret as key. During a rotation there
 * are several; one valid signature is enough.
 *
 * @param now milliseconds UTC.
 */
export function isSignedByStripe(
  body: Buffer,
  header: string | undefined,
  secret: string,
  now: number,
): boolean {
  const signed = parseHeader(header)
  if (signed === undefined) return false
  const isFresh = Math.abs(Math.floor(now / 1_000) - Number(signed.time)) <= toleranceSeconds
  const expected = createHmac('sha256', secret).update(`${signed.time}.`).update(body).digest()
  // Every signature is compared, so that timing does not reveal a position in the list.
  const isRight = signed.signatures.map((hex) => isSame(hex, expected)).includes(true)
  return isFresh && isRight
}

interface SignedHeader {
  readonly time: string
  readonly signatures: readonly string[]
}

function parseHeader(header: string | undefined): SignedHeader | undefined {
  if (header === undefined || header.length > maxHeaderLength) return undefined
  let time: string | undefined
  const signatures: string[] = []
  for (const item of header.split(',')) {
    const [name, value = ''] = item.split('=', 2)
    if (name === 't' && time !== undefined) return undefined
    if (name === 't') time = value
    if (name === 'v1') signatures.push(value)
  }
  return time !== undefined && /^\d{1,12}$/.test(time) ? { time, signatures } : undefined
}

function isSame(hex: string, expected: Buffer): boolean {
  if (!/^[0-9a-f]{64}$/.test(hex)) return false
  return timingSafeEqual(Buffer.from(hex, 'hex'), expected)
}
