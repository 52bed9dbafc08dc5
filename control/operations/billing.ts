import { z } from 'zod'
import { entryKinds } from '../../schema/contracts/field-values.ts'
import { customers } from '../resources/customers.ts'
import type { LedgerEntryView } from '../money/ledger-store.ts'
import { ratePlans } from '../resources/rates/rate-plans.ts'
import { rates } from '../resources/rates/rates.ts'
import { bare, data, list, type Operations, text } from '../http/openapi/operation.ts'
import { resourceOperations } from '../http/openapi/resource-operations.ts'
import { count, decimal, exampleTime, moment } from '../http/view-fields.ts'

const amount = z.number()
const currency = z.string().describe('ISO 4217.')

const walletFields = z.strictObject({
  customer_id: z.int(),
  currency,
  balance: decimal,
  balance_number: amount,
  credit_limit: amount,
  reserved: decimal.describe('Amount reserved for live calls.'),
  available: decimal,
  open_calls: count,
})
const wallet = walletFields.meta({ id: 'Wallet' })

export const ledgerFields = z.strictObject({
  id: z.int(),
  kind: z.enum(entryKinds),
  amount: amount.describe('Amount added to the balance; negative for a charge.'),
  amount_exact: decimal,
  balance_after: amount,
  balance_after_exact: decimal,
  ref: z.string(),
  actor: z.string(),
  note: z.string().nullable(),
  created_at: moment,
})
const ledgerEntry: z.ZodType<LedgerEntryView> = ledgerFields.meta({ id: 'LedgerEntry' })

const exampleWallet = {
  customer_id: 7,
  currency: 'USD',
  balance: '25.00',
  balance_number: 25,
  credit_limit: 0,
  reserved: '0.00',
  available: '25.00',
  open_calls: 0,
}

const customerOperations: Operations = {
  ...resourceOperations({
    path: '/api/v1/customers',
    noun: 'customer',
    plural: 'customers',
    tag: 'Customers',
    view: customers.view,
    example: {
      id: 7,
      name: 'Acme',
      tenant: null,
      email: null,
      has_password: false,
      is_active: true,
      rate_plan_id: 1,
      rate_plan: 'retail',
      numbers: ['4930100'],
      credit_limit: 0,
      max_concurrent_calls: 10,
      max_cps: 2,
      max_daily_spend: 0,
      max_call_seconds: 0,
      low_balance_threshold: 5,
      is_balance_low: false,
      currency: 'USD',
      balance: '25.00',
      balance_number: 25,
      created_at: exampleTime,
      updated_at: exampleTime,
    },
    body: { name: 'Acme', rate_plan: 'retail', numbers: ['4930100'], balance: '25.00' },
    patch: { max_concurrent_calls: 20 },
  }),
  'GET /api/v1/customers/:id/wallet': {
    id: 'getWallet',
    tag: 'Customers',
    summary: 'Get the wallet of a customer',
    answer: data(wallet, exampleWallet),
  },
  'GET /api/v1/customers/:id/ledger': {
    id: 'listLedgerEntries',
    tag: 'Customers',
    summary: 'List ledger entries: every change of the balance',
    answer: list(ledgerEntry, {
      id: 1,
      kind: 'topup',
      amount: 25,
      amount_exact: '25.00',
      balance_after: 25,
      balance_after_exact: '25.00',
      ref: 'pi_1',
      actor: 'payment',
      note: null,
      created_at: exampleTime,
    }),
  },
  'POST /api/v1/customers/:id/wallet/adjust': {
    id: 'adjustWallet',
    tag: 'Customers',
    summary: 'Adjust the balance manually',
    body: { amount: '10.00', kind: 'topup', reason: 'bank transfer 4711' },
    answer: data(
      walletFields
        .extend({
          kind: z.enum(['topup', 'adjust', 'refund']),
          amount,
          amount_exact: decimal,
          reason: z.string(),
        })
        .meta({ id: 'WalletMove' }),
      {
        ...exampleWallet,
        kind: 'topup',
        amount: 10,
        amount_exact: '10.00',
        reason: 'bank transfer 4711',
      },
    ),
    refusals: [409],
  },
}

export const price = z
  .strictObject({
    number: z.string(),
    at: moment,
    rate_plan_id: z.int().optional().describe('Not shown to customers.'),
    prefix: z.string(),
    currency,
    blocked: z.boolean(),
    rate_per_minute: amount,
    rate_per_minute_exact: decimal,
    first_rate_per_minute: amount,
    first_increment: count,
    increment: z.int(),
    effective_from: moment.nullable(),
    effective_to: moment.nullable(),
    duration: count,
    charged_seconds: count,
    parts: z.array(z.strictObject({ part: z.string(), seconds: count, amount_exact: decimal })),
    decimals: z.int(),
    cost: amount.nullable(),
    cost_exact: decimal.nullable(),
  })
  .meta({ id: 'Price' })

const exampleRate = {
  id: 1,
  rate_plan_id: 1,
  rate_plan: 'retail',
  prefix: '49',
  description: 'Germany',
  rate_per_minute: 0.1,
  rate_per_minute_exact: '0.10',
  connect_fee: 0.4,
  connect_fee_exact: '0.40',
  first_increment: 60,
  first_rate_per_minute: 0.2,
  first_rate_per_minute_exact: '0.20',
  increment: 1,
  blocked: false,
  effective_from: null,
  effective_to: null,
}

export const examplePrice = {
  number: '4930100',
  at: exampleTime,
  rate_plan_id: 1,
  prefix: '49',
  currency: 'USD',
  blocked: false,
  rate_per_minute: 0.1,
  rate_per_minute_exact: '0.10',
  first_rate_per_minute: 0.2,
  first_increment: 60,
  increment: 1,
  effective_from: null,
  effective_to: null,
  duration: 20,
  charged_seconds: 60,
  parts: [
    { part: 'connect_fee', seconds: 0, amount_exact: '0.40' },
    { part: 'first_increment', seconds: 60, amount_exact: '0.20' },
    { part: 'further_increments', seconds: 0, amount_exact: '0.00' },
  ],
  decimals: 4,
  cost: 0.6,
  cost_exact: '0.60',
}

const rateOperations: Operations = {
  ...resourceOperations({
    path: '/api/v1/rate-plans',
    noun: 'rate plan',
    plural: 'rate plans',
    tag: 'Rates',
    view: ratePlans.view,
    example: {
      id: 1,
      name: 'retail',
      tenant: null,
      currency: 'USD',
      decimals: 4,
      created_at: exampleTime,
    },
    body: { name: 'retail', currency: 'USD' },
    patch: { decimals: 2 },
  }),
  ...resourceOperations({
    path: '/api/v1/rates',
    noun: 'rate',
    plural: 'rates',
    tag: 'Rates',
    view: rates.view,
    example: exampleRate,
    body: { rate_plan: 'retail', prefix: '49', rate_per_minute: '0.10', connect_fee: '0.40' },
    patch: { rate_per_minute: '0.12' },
  }),
  'GET /api/v1/rates/lookup': {
    id: 'lookUpRate',
    tag: 'Rates',
    summary: 'Look up the price of a call, with its parts',
    answer: data(price, examplePrice),
    refusals: [404],
  },
  'GET /api/v1/rates/export': {
    id: 'exportRates',
    tag: 'Rates',
    summary: 'Export the rates of a plan as CSV',
    answer: text('text/csv', 'prefix,description,rate_per_minute\n49,Germany,0.10\n'),
  },
  'POST /api/v1/rates/import': {
    id: 'importRates',
    tag: 'Rates',
    summary: 'Import rates from CSV. All rows are imported, or none.',
    bodyType: 'text/csv',
    body: 'prefix,rate_per_minute\n49,0.10\n',
    answer: data(
      z
        .strictObject({ imported: count, created: count, updated: count, removed: count })
        .meta({ id: 'ImportReport' }),
      { imported: 1, created: 1, updated: 0, removed: 0 },
    ),
    refusals: [409, 415],
  },
}

const grant = {
  granted_seconds: z.int().nullable().describe('Null when unlimited.'),
  reserved: amount,
}

/** Any status other than 200 denies the call. */
const charging: Operations = {
  'GET /api/ocs/authorize': {
    id: 'authorizeCall',
    tag: 'Charging',
    summary: 'Authorize a call and reserve money for it',
    answer: bare(
      z
        .strictObject({
          authorized: z.literal(true),
          call_uuid: z.string(),
          customer_id: z.int().nullable(),
          rate_prefix: z.string().nullable(),
          rate_per_minute: amount,
          connect_fee: amount,
          currency: currency.nullable(),
          max_duration_seconds: z.int().nullable(),
          ...grant,
        })
        .meta({ id: 'Authorization' }),
      {
        authorized: true,
        call_uuid: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11',
        customer_id: 7,
        rate_prefix: '49',
        rate_per_minute: 0.1,
        connect_fee: 0.4,
        currency: 'USD',
        max_duration_seconds: 14_700,
        granted_seconds: 60,
        reserved: 0.6,
      },
    ),
    refusals: [402, 404, 503],
  },
  'POST /api/ocs/extend': {
    id: 'extendCall',
    tag: 'Charging',
    summary: 'Extend the grant of a live call',
    body: { call_uuid: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11', used_seconds: 50 },
    answer: bare(z.strictObject({ call_uuid: z.string(), ...grant }), {
      call_uuid: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11',
      granted_seconds: 120,
      reserved: 0.7,
    }),
    refusals: [402, 404],
  },
  'POST /api/ocs/cdr': {
    id: 'reportCall',
    tag: 'Charging',
    summary: 'Report an ended call. Safe to repeat.',
    body: {
      call_uuid: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11',
      caller: '4930100',
      callee: '4940200',
      billsec: 20,
    },
    answer: bare(
      z
        .strictObject({
          call_uuid: z.string(),
          cost: amount,
          cost_exact: decimal,
          currency: currency.nullable(),
          balance_after: amount.nullable(),
          duplicate: z.boolean(),
        })
        .meta({ id: 'ChargedCall' }),
      {
        call_uuid: '0b4c1c1e-7f0a-4a37-9d1f-0f6a5f5e9c11',
        cost: 0.6,
        cost_exact: '0.60',
        currency: 'USD',
        balance_after: 24.4,
        duplicate: false,
      },
    ),
    refusals: [409],
  },
}

const alertKinds = [
  'unknown_customer',
  'currency_mismatch',
  'amount_mismatch',
  'unreadable_event',
  'balance_out_of_range',
  'refund',
  'dispute',
  'subscription_ended',
]
const alert = z
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
}

const payments: Operations = {
  'POST /api/client/payments/webhook': {
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
  },
  'GET /api/v1/billing/alerts': {
    id: 'listBillingAlerts',
    tag: 'Payments',
    summary: 'List billing alerts: payments that need attention',
    answer: list(alert, exampleAlert),
  },
  'POST /api/v1/billing/alerts/:id/resolve': {
    id: 'resolveBillingAlert',
    tag: 'Payments',
    summary: 'Resolve a billing alert',
    answer: data(alert, { ...exampleAlert, resolved_at: exampleTime, resolved_by: 'user:ada' }),
  },
}

export const billingOperations: Operations = {
  ...customerOperations,
  ...rateOperations,
  ...charging,
  ...payments,
}
