/**
 * Parses a payment provider's event. The payload changes with the provider's versions, so only the
 * few fields that matter here are read.
 */
import { z } from 'zod'
import { MAX_AMOUNT_UNITS } from '../../schema/columns.ts'

/** How an event names the customer; the first given field decides. */
export interface CustomerHint {
  /** `metadata.customer_id` or `client_reference_id`: the id, or else the name. */
  readonly idOrName: string | null
  readonly email: string | null
}

export interface Payment {
  /** Names of this payment; the first one names its ledger entry. */
  readonly references: readonly [string, ...string[]]
  readonly customer: CustomerHint
  readonly amountMicros: number
  /** ISO 4217 in capitals. */
  readonly currency: string
}

/**
 * A payment by a slow method, such as a direct debit: another event tells when the money arrives.
 */
export type ExpectedPayment = Pick<Payment, 'references' | 'customer'>

/** An event about an earlier payment or a subscription. */
export interface Notice {
  readonly alert: 'refund' | 'dispute' | 'subscription_ended'
  readonly reference: string
  /** Names of that payment. */
  readonly references: readonly [string, ...string[]]
  readonly customer: CustomerHint
  readonly amountMicros: number | null
  readonly currency: string | null
  readonly detail: string
}

interface EventIdentity {
  readonly eventId: string
  readonly kind: string
}

export type PaymentEvent =
  | (EventIdentity & { readonly meaning: 'paid'; readonly payment: Payment })
  | (EventIdentity & { readonly meaning: 'expected'; readonly expected: ExpectedPayment })
  | (EventIdentity & { readonly meaning: 'failed'; readonly references: Payment['references'] })
  | (EventIdentity & { readonly meaning: 'notice'; readonly notice: Notice })
  /** Nothing was paid, and nothing will be. */
  | (EventIdentity & { readonly meaning: 'nothing' })
  /** A kind that is not handled here. */
  | (EventIdentity & { readonly meaning: 'unknown' })
  /** A kind that is handled here, in an unknown shape. */
  | (EventIdentity & { readonly meaning: 'unreadable'; readonly problem: string })

const envelope = z.object({
  id: z.string().min(1).max(255),
  type: z.string().min(1).max(255),
  data: z.object({ object: z.record(z.string(), z.unknown()) }),
})

/** Undefined: not an event at all. */
export function readPaymentEvent(body: unknown): PaymentEvent | undefined {
  const parsed = envelope.safeParse(body)
  if (!parsed.success) return undefined
  const { id: eventId, type: kind, data } = parsed.data
  const read = readerOf(kind)
  if (read === undefined) return { eventId, kind, meaning: 'unknown' }
  const result = read(data.object)
  return { eventId, kind, ...result }
}

type Meaning =
  | { readonly meaning: 'paid'; readonly payment: Payment }
  | { readonly meaning: 'expected'; readonly expected: ExpectedPayment }
  | { readonly meaning: 'failed'; readonly references: Payment['references'] }
  | { readonly meaning: 'notice'; readonly notice: Notice }
  | { readonly meaning: 'nothing' }
  | { readonly meaning: 'unreadable'; readonly problem: string }

type Reader = (object: Record<string, unknown>) => Meaning

const nothing: Meaning = { meaning: 'nothing' }

/** The id of another object, or that object itself where the provider expands it. */
const link = z
  .union([z.string().max(255), z.object({ id: z.string().max(255) })])
  .nullish()
  .transform((value) => (typeof value === 'string' ? value : (value?.id ?? null)))

const id = z.string().min(1).max(255)
const amount = z.int().min(0).max(900_000_000_000)
const currency = z
  .string()
  .regex(/^[A-Za-z]{3}$/)
  .transform((code) => code.toUpperCase())
const metadata = z
  .record(z.string(), z.unknown())
  .nullish()
  .transform((values) => text(values?.['customer_id']))
const email = z.string().max(254).nullish()

const text = (value: unknown): string | null =>
  (typeof value === 'string' || typeof value === 'number') && value !== '' ? String(value) : null

const session = z.object({
  id,
  payment_intent: link,
  invoice: link,
  payment_status: z.string(),
  amount_total: amount.nullish(),
  currency: currency.nullish(),
  client_reference_id: z.string().max(255).nullish(),
  customer_email: email,
  customer_details: z.object({ email }).nullish(),
  metadata,
})

type Session = z.output<typeof session>

const namesOfSession = ({ payment_intent, invoice, id: own }: Session) => [
  payment_intent,
  invoice,
  own,
]

/**
 * An unpaid session uses a slow payment method. It alone says whose the payment is: Stripe copies
 * neither its metadata nor its reference to the payment intent, which follows when the money
 * arrives.
 */
const readSession = reader(session, (object) => {
  if (!object.amount_total || object.currency == null) return nothing
  const names = namesOfSession(object)
  const customer = {
    idOrName: object.metadata ?? text(object.client_reference_id),
    email: object.customer_details?.email ?? object.customer_email ?? null,
  }
  switch (object.payment_status) {
    case 'paid':
      return paid(names, customer, object.amount_total, object.currency)
    case 'unpaid': {
      const references = distinct(names)
      return { meaning: 'expected', expected: { references, customer } }
    }
    default:
      return nothing
  }
})

const readFailedSession = reader(session, (object) => ({
  meaning: 'failed',
  references: distinct(namesOfSession(object)),
}))

const intent = z.object({
  id,
  amount_received: amount,
  currency,
  invoice: link,
  latest_charge: link,
  metadata,
})

/**
 * Identified by metadata only: the intent of an invoice has none, and in newer versions does not
 * name the invoice either, so an address alone would credit one payment twice.
 */
const readIntent = reader(intent, (object) =>
  paid(
    [object.id, object.invoice, object.latest_charge],
    { idOrName: object.metadata, email: null },
    object.amount_received,
    object.currency,
  ),
)

const subscriptionMetadata = z
  .object({ metadata })
  .nullish()
  .transform((details) => details?.metadata ?? null)

const invoice = z.object({
  id,
  amount_paid: amount,
  currency,
  payment_intent: link,
  charge: link,
  payments: z
    .object({ data: z.array(z.object({ payment: z.object({ payment_intent: link }) })).max(100) })
    .nullish(),
  customer_email: email,
  metadata,
  subscription_details: subscriptionMetadata,
  parent: z.object({ subscription_details: subscriptionMetadata }).nullish(),
})

const readInvoice = reader(invoice, (object) => {
  const intents = object.payments?.data.map(({ payment }) => payment.payment_intent) ?? []
  return paid(
    [object.payment_intent, ...intents, object.id, object.charge],
    {
      idOrName:
        object.metadata ??
        object.subscription_details ??
        object.parent?.subscription_details ??
        null,
      email: object.customer_email ?? null,
    },
    object.amount_paid,
    object.currency,
  )
})

const subscription = z.object({ id, metadata })

const readSubscriptionEnd = reader(subscription, (object) =>
  notice('subscription_ended', object, { detail: `subscription ${object.id} ended` }),
)

const refund = z.object({
  id,
  charge: link,
  payment_intent: link,
  amount,
  amount_refunded: amount.nullish(),
  currency,
  reason: z.string().max(255).nullish(),
  status: z.string().max(64).nullish(),
  metadata,
})

const readReversal = (alert: 'refund' | 'dispute', kind: string): Reader =>
  reader(refund, (object) =>
    notice(alert, object, {
      // A charge has the refunded part as a field; a refund is that amount.
      amount: alert === 'refund' ? (object.amount_refunded ?? object.amount) : object.amount,
      detail: [kind, object.id, object.status, object.reason].filter(Boolean).join(' '),
    }),
  )

const readers: Readonly<Record<string, Reader>> = {
  'checkout.session.completed': readSession,
  'checkout.session.async_payment_succeeded': readSession,
  'checkout.session.async_payment_failed': readFailedSession,
  'payment_intent.succeeded': readIntent,
  'invoice.paid': readInvoice,
  'customer.subscription.deleted': readSubscriptionEnd,
  'charge.refunded': readReversal('refund', 'charge.refunded'),
  'refund.created': readReversal('refund', 'refund.created'),
  'refund.failed': readReversal('refund', 'refund.failed'),
}

function readerOf(kind: string): Reader | undefined {
  if (kind.startsWith('charge.dispute.')) return readReversal('dispute', kind)
  return Object.hasOwn(readers, kind) ? readers[kind] : undefined
}

function reader<T>(
  shape: z.ZodType<T>,
  mean: (object: T) => Meaning,
): (object: Record<string, unknown>) => Meaning {
  return (object) => {
    const parsed = shape.safeParse(object)
    if (parsed.success) return mean(parsed.data)
    const [issue] = parsed.error.issues
    return {
      meaning: 'unreadable',
      problem: `${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'not understood'}`,
    }
  }
}

function paid(
  names: readonly (string | null)[],
  customer: CustomerHint,
  minorUnits: number,
  currency: string,
): Meaning {
  const amountMicros = minorUnitsToMicros(minorUnits, currency)
  if (amountMicros === 0) return nothing
  if (amountMicros > maxAmountMicros)
    return { meaning: 'unreadable', problem: `an amount of ${minorUnits} ${currency}` }
  return {
    meaning: 'paid',
    payment: { references: distinct(names), customer, amountMicros, currency },
  }
}

/** Each object has an id of its own, so there is one. */
function distinct(names: readonly (string | null)[]): readonly [string, ...string[]] {
  const [first = '', ...others] = new Set(names.filter((name) => name !== null))
  return [first, ...others]
}

/** The same limit as everywhere in the API. */
const maxAmountMicros = MAX_AMOUNT_UNITS * 1_000_000

interface EventObject {
  readonly id: string
  readonly charge?: string | null
  readonly payment_intent?: string | null
  readonly currency?: string
  readonly metadata: string | null
}

function notice(
  alert: Notice['alert'],
  object: EventObject,
  { amount, detail }: { readonly amount?: number; readonly detail: string },
): Meaning {
  const { id, charge, payment_intent, currency = null, metadata } = object
  return {
    meaning: 'notice',
    notice: {
      alert,
      reference: id,
      references: distinct([payment_intent ?? null, charge ?? null, id]),
      customer: { idOrName: metadata, email: null },
      amountMicros:
        amount === undefined || currency === null ? null : minorUnitsToMicros(amount, currency),
      currency,
      detail,
    },
  }
}

/** Amounts as Stripe writes them, in the smallest unit of their currency. */

/** UGX and ISK have no decimals either, but Stripe writes them with two. */
const withoutDecimals: ReadonlySet<string> = new Set([
  'BIF',
  'CLP',
  'DJF',
  'GNF',
  'JPY',
  'KMF',
  'KRW',
  'MGA',
  'PYG',
  'RWF',
  'VND',
  'VUV',
  'XAF',
  'XOF',
  'XPF',
])

const withThreeDecimals: ReadonlySet<string> = new Set(['BHD', 'JOD', 'KWD', 'OMR', 'TND'])

/** @param currency ISO 4217 in capitals. */
function minorUnitsToMicros(amount: number, currency: string): number {
  if (withoutDecimals.has(currency)) return amount * 1_000_000
  return amount * (withThreeDecimals.has(currency) ? 1_000 : 10_000)
}
