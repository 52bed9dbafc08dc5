/**
 * Customers: payers of calls, with their numbers, limits and wallets (SPECIFICATION.md §13). Money
 * moves through the ledger only.
 */
import { count, decimal } from '../http/view-fields.ts'
import { type RawBuilder, sql } from 'kysely'
import { z } from 'zod'
import { exactSum, moneyToDecimal, moneyToNumber, parseMoney } from '../../schema/columns.ts'
import type { Store } from '../../schema/storage/store.ts'
import { execute, first } from '../../schema/sql/query.ts'
import {
  hashPassword,
  hashPasswordNow,
  MAX_PASSWORD_LENGTH,
  MIN_PASSWORD_LENGTH,
} from '../auth/passwords.ts'
import { type BeyondScope, fieldsWhere, type WrittenRow } from '../auth/requires.ts'
import { ApiError } from '../http/api-error.ts'
import { currency, money as amount, numberOrUserName } from '../http/fields.ts'
import type { Row } from '../http/field-columns.ts'
import * as field from '../http/field-table.ts'
import { refuseBraked, refuseUncounted, refuseUncountedCustomer } from './braked.ts'
import { callerIdentity, ownNumber, refuseForeignCaller } from './caller-fields.ts'
import { putNumbers, releaseNumbers } from './customer-numbers.ts'
import { changesProtection, lossFields, lossWriter } from './loss-fields.ts'
import { badReference } from './references.ts'
import {
  type Definition,
  type ResourceDeps,
  ResourceStore,
  type ViewOf,
  type Writing,
} from './resource.ts'
import { rowWith } from './table-rows.ts'
import { refuseForeignNumbers } from './tenancy.ts'

/** Whether a wallet needs money: it is below its threshold, or its next call would be refused. */
export interface WalletFigures {
  readonly balanceMicros: bigint
  readonly thresholdMicros: number
  readonly creditMicros: number
  /** Held for live calls. */
  readonly reservedMicros: bigint
  /**
   * The amount that the customer's last call lacked the money for; 0: it was not refused for money.
   */
  readonly refusedMicros: number
}

export function isBalanceLow(wallet: WalletFigures): boolean {
  const { balanceMicros, thresholdMicros, creditMicros, reservedMicros, refusedMicros } = wallet
  if (balanceMicros < thresholdMicros) return true
  const availableMicros = balanceMicros + BigInt(creditMicros) - reservedMicros
  return availableMicros <= 0n || availableMicros < refusedMicros
}

/** `refusedMicros` of a row of `customer`: the last call is one step in the index. */
export const refusedMicros = sql<number | null>`(
  SELECT CASE WHEN denial_code = 'insufficient_funds' THEN required_micros END FROM cdr
  WHERE cdr.customer_id = customer.id ORDER BY start_stamp DESC LIMIT 1)`

/**
 * `isBalanceLow` in SQL over rows of `customer` and `wallet`, without reservations for live calls.
 */
const hasLowBalance: RawBuilder<boolean> = sql<boolean>`(
  wallet.balance_micros < customer.low_balance_micros
  OR wallet.balance_micros + customer.credit_limit_micros <= 0
  OR wallet.balance_micros + customer.credit_limit_micros < coalesce(${refusedMicros}, 0))`

const fields = field.table(
  {
    id: { ...field.id, example: 7 },
    name: field.required(field.name, { example: 'Acme' }),
    tenant: field.tenant(),
    email: field.optional({
      ...field.asText(z.email().max(254)),
      stored: () => ({
        read: ({ email }: Row) => email,
        write: (email) => ({ email: typeof email === 'string' ? email.toLowerCase() : null }),
      }),
    }),
    password: field.written(
      z
        .string()
        .min(MIN_PASSWORD_LENGTH)
        .max(MAX_PASSWORD_LENGTH)
        .meta({ format: 'password' })
        .nullish(),
      { about: 'Write only: the login of the edge. Null removes the login.' },
    ),
    has_password: field.shown(z.boolean(), { example: false }),
    is_active: field.of(field.yesOrNo, { default: true }),
    rate_plan: field.refersTo('rate_plan', { example: 'retail' }),
    rate_plan_id: field.idOf({ example: 1 }),
    numbers: field.required(
      { body: z.array(numberOrUserName).max(1_000).nullish(), view: z.array(z.string()) },
      {
        about: 'Its single numbers of `/numbers`. Absent: they stay as they are; null: none.',
        example: ['4930100'],
      },
    ),
    default_number: field.optional(ownNumber, {
      about: 'The number that its calls show outside, unless another one is said.',
      example: '+4930100',
    }),
    caller_identity: callerIdentity,
    credit_limit: field.of(field.amount, {
      column: 'credit_limit_micros',
      default: 0,
      about: 'How far the balance may go below zero.',
    }),
    max_concurrent_calls: field.of(field.limit, {
      default: 0,
      about: '0: unlimited, here and in the next three fields.',
      example: 10,
    }),
    max_cps: field.of(field.limit, { default: 0, about: 'Calls per second.', example: 2 }),
    max_daily_spend: field.of(field.amount, { column: 'max_daily_spend_micros', default: 0 }),
    max_call_seconds: field.of({ body: z.int().min(0).max(86_400), view: count }, { default: 0 }),
    low_balance_threshold: field.of(field.amount, {
      column: 'low_balance_micros',
      default: 0,
      example: 5,
    }),
    is_balance_low: field.shown(
      z
        .boolean()
        .describe('The balance is below the threshold, or the next call would be refused.'),
      { example: false },
    ),
    time_zone: field.optional(field.timeZone, {
      about:
        'IANA name: of its statements and reports, and of its prices where a plan of the same ' +
        "tenant names none. Null: the tenant's, else UTC. Days of `max_daily_spend` are UTC.",
      example: 'Europe/Berlin',
    }),
    effective_time_zone: field.shown(
      z.string().nullable().describe("Its own zone, else the tenant's. Null: none, so UTC."),
      { example: 'Europe/Berlin' },
    ),
    ...lossFields('Goes before its plan.'),
    currency: field.required(
      { body: currency.nullish(), view: z.string().describe('ISO 4217.') },
      {
        isStoredElsewhere: true,
        isLeftOut: true,
        about: "Absent: the rate plan's, or USD.",
        example: 'USD',
      },
    ),
    balance: field.required(
      { body: amount().optional(), view: decimal.describe('Exact amount.') },
      {
        isStoredElsewhere: true,
        isLeftOut: true,
        isOnlyAtCreation: true,
        about: 'Credited once, the first time that it is given.',
        example: '25.00',
      },
    ),
    balance_number: field.shown(z.number(), { example: 25 }),
    created_at: field.createdAt,
    updated_at: field.updatedAt,
  },
  { schemaId: 'Customer' },
)

export const customerBody = fields.body
type CustomerBody = z.output<typeof customerBody>

type CustomerWriting = Writing<typeof customerBody, typeof fields.view>
export type CustomerView = ViewOf<typeof fields.view>

export const customers: Definition<typeof customerBody, typeof fields.view> = {
  noun: 'Customer',
  table: 'customer',
  path: '/customers',
  scope: 'customers',
  fields,
  hasOwnRoutes: true,
  children: {
    numbers: {
      table: 'customer_number',
      parent: 'customer_id',
      order: 'number',
      view: (row: Row) => row['number'],
    },
  },
  joins: sql`LEFT JOIN wallet ON wallet.customer_id = customer.id`,
  selected: sql`coalesce(wallet.currency, 'USD') AS currency,
    ${exactSum('wallet.balance_micros')} AS balance_text, ${refusedMicros} AS refused_micros,
    (SELECT owner.time_zone FROM tenant AS owner WHERE owner.id = customer.tenant_id)
      AS tenant_time_zone`,
  found: {
    title: 'customer.name',
    beside: ['customer.email'],
    starts: ['customer.name', 'customer.email'],
    isKnownById: true,
    screen: 'customers',
    page: 'customer.id',
    isOfBilling: true,
  },
  search: ['customer.name', 'customer.email'],
  order: ['customer.name'],
  limits: ['customers'],
  childLimits: ['numbers'],
  store: (deps) => new CustomerStore(customers, deps),
  async check(writing) {
    const { body, before, scope, columns, deps } = writing
    const losses = await lossWriter('customer', writing)
    const money = await currencyOf(writing)
    const planId = columns['rate_plan_id']
    if (before === undefined) {
      const added = { planId: typeof planId === 'number' ? planId : null, currency: money ?? 'USD' }
      await refuseUncountedCustomer(deps.store, added, scope)
    } else {
      const counted = { column: 'id', value: before.id } as const
      if (planId !== before.rate_plan_id || (money ?? before.currency) !== before.currency)
        await refuseUncounted(deps.store, counted, 'caps', scope)
      const kept = numbersIn(body, before.numbers)
      if (before.numbers.some((number) => !kept.includes(number)))
        await refuseUncounted(deps.store, counted, 'all', scope)
    }
    return { ...losses, ...passwordColumn(writing) }
  },
  async written(id, writing) {
    const { body, before, scope, tenantId, deps } = writing
    const { store, ledger } = deps
    const own = before?.numbers ?? []
    const given = numbersIn(body, own)
    await refuseForeignNumbers(store, scope, given, own)
    await refuseForeignCaller(store, scope, body, before, [
      ['default_number', body.default_number, before?.default_number],
    ])
    await putNumbers(store, { customerId: id, tenantId, now: scope.now }, given)
    const money = await currencyOf(writing)
    if (before === undefined) {
      const wallet = { customer_id: id, currency: money ?? 'USD', updated_at: scope.now }
      await execute(store, store.db.insertInto('wallet').values(wallet))
    } else {
      if (body.credit_limit > (parseMoney(before.credit_limit) ?? 0)) await ledger?.endDepletion(id)
      if (money !== null && money !== before.currency) await changeCurrency(store, id, money)
    }
    await creditOnce(id, body.balance, scope, deps)
  },
  /** Calls and ledger entries refer to their customer for good. */
  async removing({ id }, scope, { store }) {
    if (
      (await rowWith(store, 'cdr', { customer_id: id })) !== undefined ||
      (await hasEntries(store, id))
    )
      throw new ApiError(409, 'in_use', 'The customer has a history: deactivate it instead')
    await refuseBraked(store, 'customer', id, scope)
    await releaseNumbers(store, id, scope.now)
    await execute(store, store.db.deleteFrom('wallet').where('customer_id', '=', id))
  },
  async follow({ ocs, engine }, { id }) {
    await ocs?.reloadCustomers({ of: 'customer', ids: [id] })
    await engine.reloadNumbers({ of: 'customer', ids: [id] })
    await engine.reloadCallerPolicies([id])
  },
  beyond: worthMoney,
  described: {
    tag: 'Customers',
    body: { name: 'Acme', rate_plan: 'retail', numbers: ['4930100'], balance: '25.00' },
    patch: { max_concurrent_calls: 20 },
  },
}

/** Absent numbers stay; null are none. */
const numbersIn = ({ numbers }: CustomerBody, own: readonly string[]): readonly string[] =>
  numbers === undefined ? own : (numbers ?? [])

class CustomerStore extends ResourceStore<typeof customerBody, typeof fields.view> {
  protected override matching({ is_balance_low: isLow }: Row) {
    return isLow === true ? [hasLowBalance] : []
  }

  protected override computed(row: Row): Row {
    return walletOf(row, this.deps)
  }

  override async hashSecret({ password }: CustomerBody): Promise<string | undefined> {
    return password == null ? undefined : hashPassword(password)
  }
}

/**
 * Setting a price needs the scope of prices or of money; a login shows wallet and calls, so it
 * needs theirs.
 */
function worthMoney({ given, before, after }: WrittenRow<CustomerView>): readonly BeyondScope[] {
  const login = ['wallets:read', 'cdrs:read'] as const
  const setsPassword = typeof given['password'] === 'string'
  return fieldsWhere(
    [after.balance !== (before?.balance ?? '0.00'), 'balance', ['wallets:write']],
    [after.credit_limit !== (before?.credit_limit ?? 0), 'credit_limit', ['wallets:write']],
    [before !== undefined && after.currency !== before.currency, 'currency', ['wallets:write']],
    [
      after.rate_plan_id !== (before?.rate_plan_id ?? null),
      'rate_plan',
      ['wallets:write', 'rates:write'],
    ],
    [changesProtection(after, before), 'loss_protection', ['wallets:write', 'rates:write']],
    [
      after.time_zone !== (before?.time_zone ?? null),
      'time_zone',
      ['wallets:write', 'rates:write'],
    ],
    ...login.map((scope) => [setsPassword, 'password', [scope]] as const),
  )
}

function walletOf(row: Row, { reservedOf }: ResourceDeps): Row {
  const { balance_text: balance } = row
  const balanceMicros = BigInt(typeof balance === 'string' ? balance : 0)
  return {
    has_password: row['password_hash'] !== null,
    balance: moneyToDecimal(balanceMicros),
    balance_number: moneyToNumber(balanceMicros),
    effective_time_zone: row['time_zone'] ?? row['tenant_time_zone'],
    is_balance_low: isBalanceLow({
      balanceMicros,
      reservedMicros: reservedOf(Number(row['id'])),
      thresholdMicros: Number(row['low_balance_micros']),
      creditMicros: Number(row['credit_limit_micros']),
      refusedMicros: Number(row['refused_micros'] ?? 0),
    }),
  }
}

/** The plan decides the currency; null: neither body nor plan names one. */
async function currencyOf({ body, columns, deps }: CustomerWriting): Promise<string | null> {
  const planId = columns['rate_plan_id']
  if (typeof planId !== 'number') return body.currency ?? null
  const plans = deps.store.db.selectFrom('rate_plan').select('currency')
  const plan = await first(deps.store, plans.where('id', '=', planId))
  if (plan !== undefined && body.currency != null && body.currency !== plan.currency)
    throw badReference('currency', `the rate plan is in ${plan.currency}`)
  return body.currency ?? plan?.currency ?? null
}

/** Without a password in the body the stored one stays; null removes it. */
function passwordColumn({ body: { password }, secretHash }: CustomerWriting): Row {
  const hash = secretHash ?? (typeof password === 'string' ? hashPasswordNow(password) : password)
  return hash === undefined ? {} : { password_hash: hash }
}

async function changeCurrency(store: Store, id: number, money: string): Promise<void> {
  if (await hasEntries(store, id))
    throw new ApiError(409, 'currency_fixed', 'The wallet already holds another currency')
  const wallets = store.db.updateTable('wallet').set({ currency: money })
  await execute(store, wallets.where('customer_id', '=', id))
}

/** Posts the opening balance. Safe to repeat: the ledger takes one opening entry per customer. */
async function creditOnce(
  id: number,
  amountMicros: number | undefined,
  scope: CustomerWriting['scope'],
  { store, ledger }: ResourceDeps,
): Promise<void> {
  if (amountMicros === undefined || amountMicros === 0) return
  const walletId = await rowWith(store, 'wallet', { customer_id: id })
  if (walletId === undefined || ledger === undefined)
    throw new Error(`customer ${id} has no wallet`)
  await ledger.post({
    walletId,
    kind: 'topup',
    amountMicros,
    ref: `opening:${id}`,
    actor: scope.actor,
    note: 'opening balance',
    at: scope.now,
  })
}

async function hasEntries(store: Store, customerId: number): Promise<boolean> {
  const walletId = await rowWith(store, 'wallet', { customer_id: customerId })
  if (walletId === undefined) return false
  return (await rowWith(store, 'ledger_entry', { wallet_id: walletId })) !== undefined
}
