/** Customers with their numbers and wallets, as rows. Money moves through the ledger only. */
import type { RequestScope } from '../../auth/tenants.ts'
import type { Selectable } from 'kysely'
import {
  exactSum,
  fromFlag,
  moneyToDecimal,
  moneyToNumber,
  timeToText,
  toFlag,
} from '../../../schema/columns.ts'
import type { LedgerPort } from '../../../schema/contracts/ocs.ts'
import type { CustomerTable } from '../../../schema/database.ts'
import type { Store } from '../../../schema/open.ts'
import { all, execute, first, insert } from '../../../schema/sql/query.ts'
import { hashPassword, hashPasswordNow } from '../../auth/passwords.ts'
import { ApiError } from '../../http/api-error.ts'
import { badReference, either, identified, resolve, tenantOf } from '../references.ts'
import type { Resource, Rows, Slice } from '../resource.ts'
import { contains, grouped, write } from '../../http/rows.ts'
import { refuseForeignNumbers } from '../tenancy.ts'
import { writeWithinLimits } from '../../auth/tenant-limits.ts'
import { customerBody, type CustomerBody } from './customer-body.ts'
import { refuseBraked, refuseUncounted, refuseUncountedCustomer } from '../guards/braked.ts'
import { hasLowBalance, isBalanceLow, refusedMicros } from './low-balance.ts'

interface Row extends Selectable<CustomerTable> {
  readonly slug: string | null
  readonly rate_plan: string | null
  readonly currency: string | null
  readonly balance_text: string | null
  readonly refused_micros: number | null
}

export interface CustomerView {
  readonly id: number
  readonly name: string
  readonly tenant: string | null
  readonly email: string | null
  readonly has_password: boolean
  readonly is_active: boolean
  readonly rate_plan_id: number | null
  readonly rate_plan: string | null
  readonly numbers: readonly string[]
  readonly credit_limit: number
  readonly max_concurrent_calls: number
  readonly max_cps: number
  readonly max_daily_spend: number
  readonly max_call_seconds: number
  readonly low_balance_threshold: number
  /** The balance is below the threshold, or the next call would be refused. */
  readonly is_balance_low: boolean
  readonly currency: string
  /** Decimal text, exact. */
  readonly balance: string
  readonly balance_number: number
  readonly created_at: string
  readonly updated_at: string
}

export class CustomerStore implements Resource<typeof customerBody, CustomerView> {
  readonly noun = 'Customer'
  readonly body = customerBody
  readonly onlyAtCreation = ['balance']
  readonly #store: Store
  readonly #ledger: LedgerPort
  readonly #reservedOf: (id: number) => bigint

  /**
   * @param ledger the only way to a balance.
   * @param reservedOf what is held for the live calls of a customer.
   */
  constructor(store: Store, ledger: LedgerPort, reservedOf: (id: number) => bigint = () => 0n) {
    this.#store = store
    this.#ledger = ledger
    this.#reservedOf = reservedOf
  }

  /** @param isLow only those with a low balance. */
  async list(
    scope: RequestScope,
    { limit, offset, search }: Slice,
    isLow = false,
  ): Promise<Rows<CustomerView>> {
    const matching = this.#visible(scope)
      .where((row) => contains(row, ['customer.name', 'customer.email'], search))
      .$if(isLow, (query) => query.where(hasLowBalance))
    const total = await first(
      this.#store,
      matching.select((row) => row.fn.countAll<number>().as('n')),
    )
    const rows = matching
      .selectAll('customer')
      .select(joined)
      .orderBy('customer.name')
      .limit(limit)
      .offset(offset)
    return { rows: await this.#views(await all(this.#store, rows)), total: total?.n ?? 0 }
  }

  async find(scope: RequestScope, id: number): Promise<CustomerView | undefined> {
    const row = await this.#row(scope, id)
    return row === undefined ? undefined : (await this.#views([row]))[0]
  }

  async identify(body: CustomerBody): Promise<number | undefined> {
    return identified(this.#store, 'customer', body)
  }

  async document(scope: RequestScope, id: number): Promise<CustomerBody | undefined> {
    const row = await this.#row(scope, id)
    if (row === undefined) return undefined
    return {
      name: row.name,
      tenant: row.slug,
      email: row.email,
      is_active: fromFlag(row.is_active),
      rate_plan_id: row.rate_plan_id,
      numbers: (await this.#numbersOf([id])).map(({ number }) => number),
      credit_limit: row.credit_limit_micros,
      max_concurrent_calls: row.max_concurrent_calls,
      max_cps: row.max_cps,
      max_daily_spend: row.max_daily_spend_micros,
      max_call_seconds: row.max_call_seconds,
      low_balance_threshold: row.low_balance_micros,
    }
  }

  async hashSecret({ password }: CustomerBody): Promise<string | undefined> {
    return password == null ? undefined : hashPassword(password)
  }

  async insert(body: CustomerBody, scope: RequestScope, passwordHash?: string): Promise<number> {
    return writeWithinLimits(this.#store, scope, ['customers'], async () => {
      const { tenantId, planId, currency } = await this.#refer(body, scope)
      await refuseUncountedCustomer(this.#store, { planId, currency: currency ?? 'USD' }, scope)
      const id = await insert(
        this.#store,
        this.#store.db
          .insertInto('customer')
          .values({
            ...columnsOf(body, passwordHash),
            tenant_id: tenantId,
            rate_plan_id: planId,
            created_at: scope.now,
            updated_at: scope.now,
          })
          .returning('id'),
      )
      await refuseForeignNumbers(this.#store, scope, body.numbers, [])
      await this.#putNumbers(id, body.numbers)
      await execute(
        this.#store,
        this.#store.db
          .insertInto('wallet')
          .values({ customer_id: id, currency: currency ?? 'USD', updated_at: scope.now }),
      )
      await this.#creditOnce(id, body.balance, scope)
      return id
    })
  }

  async replace(
    id: number,
    body: CustomerBody,
    scope: RequestScope,
    passwordHash?: string,
  ): Promise<void> {
    await write(this.#store, async () => {
      const before = await this.#row(scope, id)
      const { tenantId, planId, currency } = await this.#refer(body, scope, before?.rate_plan_id)
      const numbers = (await this.#numbersOf([id])).map(({ number }) => number)
      const counted = { column: 'id', value: id } as const
      if (
        before &&
        (planId !== before.rate_plan_id || (currency ?? before.currency) !== before.currency)
      )
        await refuseUncounted(this.#store, counted, 'caps', scope)
      if (numbers.some((number) => !body.numbers.includes(number)))
        await refuseUncounted(this.#store, counted, 'all', scope)
      await execute(
        this.#store,
        this.#store.db
          .updateTable('customer')
          .set({
            ...columnsOf(body, passwordHash),
            tenant_id: tenantId,
            rate_plan_id: planId,
            updated_at: scope.now,
          })
          .where('id', '=', id),
      )
      await refuseForeignNumbers(this.#store, scope, body.numbers, numbers)
      await this.#putNumbers(id, body.numbers)
      if (before && body.credit_limit > before.credit_limit_micros)
        await this.#ledger.endDepletion(id)
      if (currency !== null && currency !== before?.currency)
        await this.#changeCurrency(id, currency)
      await this.#creditOnce(id, body.balance, scope)
    })
  }

  /** Removes a customer without calls and ledger entries, since these refer to it for good. */
  async remove(id: number, scope: RequestScope): Promise<'removed' | 'absent'> {
    if ((await this.#row(scope, id)) === undefined) return 'absent'
    const { db } = this.#store
    return write(this.#store, async () => {
      const calls = db.selectFrom('cdr').select('id').where('customer_id', '=', id).limit(1)
      if ((await first(this.#store, calls)) !== undefined || (await this.#hasEntries(id)))
        throw new ApiError(409, 'in_use', 'The customer has a history: deactivate it instead')
      await refuseBraked(this.#store, 'customer', id, scope)
      await execute(this.#store, db.deleteFrom('wallet').where('customer_id', '=', id))
      await execute(this.#store, db.deleteFrom('customer').where('id', '=', id))
      return 'removed' as const
    })
  }

  /** Resolves references. The plan decides the currency; null: neither body nor plan names one. */
  async #refer(body: CustomerBody, scope: RequestScope, currentPlan?: number | null) {
    const tenantId = await tenantOf(this.#store, body.tenant, scope)
    const reference = either('rate_plan', body.rate_plan, body.rate_plan_id)
    const owner = { tenantId, scope }
    const planId = await resolve(this.#store, 'rate_plan', reference, owner, currentPlan)
    const plans = this.#store.db.selectFrom('rate_plan').select('currency')
    const plan =
      planId === null ? undefined : await first(this.#store, plans.where('id', '=', planId))
    if (plan !== undefined && body.currency != null && body.currency !== plan.currency)
      throw badReference('currency', `the rate plan is in ${plan.currency}`)
    return { tenantId, planId, currency: body.currency ?? plan?.currency ?? null }
  }

  async #changeCurrency(customerId: number, currency: string): Promise<void> {
    if (await this.#hasEntries(customerId))
      throw new ApiError(409, 'currency_fixed', 'The wallet already holds another currency')
    await execute(
      this.#store,
      this.#store.db.updateTable('wallet').set({ currency }).where('customer_id', '=', customerId),
    )
  }

  /** Posts the opening balance. Safe to repeat: the ledger takes one opening entry per customer. */
  async #creditOnce(
    customerId: number,
    balanceMicros: number | undefined,
    scope: RequestScope,
  ): Promise<void> {
    if (balanceMicros === undefined || balanceMicros === 0) return
    const wallets = this.#store.db.selectFrom('wallet').select('id')
    const wallet = await first(this.#store, wallets.where('customer_id', '=', customerId))
    if (wallet === undefined) throw new Error(`customer ${customerId} has no wallet`)
    await this.#ledger.post({
      walletId: wallet.id,
      kind: 'topup',
      amountMicros: balanceMicros,
      ref: `opening:${customerId}`,
      actor: scope.actor,
      note: 'opening balance',
      at: scope.now,
    })
  }

  async #hasEntries(customerId: number): Promise<boolean> {
    const entries = this.#store.db
      .selectFrom('ledger_entry')
      .innerJoin('wallet', 'wallet.id', 'ledger_entry.wallet_id')
      .select('ledger_entry.id')
      .where('wallet.customer_id', '=', customerId)
      .limit(1)
    return (await first(this.#store, entries)) !== undefined
  }

  async #putNumbers(customerId: number, numbers: readonly string[]): Promise<void> {
    const { db } = this.#store
    // A `+` makes no difference: the payer must not depend on it.
    const digits = numbers.map((number) => number.replace(/^\+/, ''))
    const others = db
      .selectFrom('customer_number')
      .select('number')
      .where('number', 'in', [...digits, ...digits.map((number) => `+${number}`)])
      .where('customer_id', '<>', customerId)
    const taken = await first(this.#store, others)
    if (taken !== undefined) throw numberTaken(digits.indexOf(taken.number.replace(/^\+/, '')))
    await execute(
      this.#store,
      db.deleteFrom('customer_number').where('customer_id', '=', customerId),
    )
    for (const number of new Set(numbers))
      await execute(
        this.#store,
        db.insertInto('customer_number').values({ number, customer_id: customerId }),
      )
  }

  async #views(rows: readonly Row[]): Promise<CustomerView[]> {
    const numbers = grouped(
      await this.#numbersOf(rows.map(({ id }) => id)),
      (number) => number.customer_id,
    )
    return rows.map((row) => {
      const own = numbers.get(row.id)?.map(({ number }) => number) ?? []
      return viewOf(row, own, this.#reservedOf(row.id))
    })
  }

  #numbersOf(customerIds: readonly number[]) {
    const query = this.#store.db
      .selectFrom('customer_number')
      .selectAll()
      .where('customer_id', 'in', customerIds)
      .orderBy('number')
    return all(this.#store, query)
  }

  async #row(scope: RequestScope, id: number): Promise<Row | undefined> {
    const query = this.#visible(scope)
      .selectAll('customer')
      .select(joined)
      .where('customer.id', '=', id)
    return first(this.#store, query)
  }

  #visible({ tenantId }: RequestScope) {
    return this.#store.db
      .selectFrom('customer')
      .leftJoin('tenant', 'tenant.id', 'customer.tenant_id')
      .leftJoin('rate_plan', 'rate_plan.id', 'customer.rate_plan_id')
      .leftJoin('wallet', 'wallet.customer_id', 'customer.id')
      .$if(tenantId !== null, (query) => query.where('customer.tenant_id', '=', tenantId))
  }
}

const joined = [
  'tenant.slug',
  'rate_plan.name as rate_plan',
  'wallet.currency',
  exactSum('wallet.balance_micros').as('balance_text'),
  refusedMicros.as('refused_micros'),
] as const

const numberTaken = (index: number): ApiError =>
  new ApiError(409, 'duplicate', 'Another customer has this number', {
    details: [{ path: `numbers.${index}`, message: 'is already taken' }],
  })

/** Without a password in the body the stored one stays; null removes it. */
function columnsOf(body: CustomerBody, passwordHash: string | undefined) {
  const { password } = body
  const secret =
    passwordHash ?? (typeof password === 'string' ? hashPasswordNow(password) : password)
  return {
    name: body.name,
    email: body.email?.toLowerCase() ?? null,
    ...(secret === undefined ? {} : { password_hash: secret }),
    is_active: toFlag(body.is_active),
    credit_limit_micros: body.credit_limit,
    max_concurrent_calls: body.max_concurrent_calls,
    max_cps: body.max_cps,
    max_daily_spend_micros: body.max_daily_spend,
    max_call_seconds: body.max_call_seconds,
    low_balance_micros: body.low_balance_threshold,
  }
}

function viewOf(row: Row, numbers: readonly string[], reservedMicros: bigint): CustomerView {
  const balanceMicros = BigInt(row.balance_text ?? 0)
  return {
    id: row.id,
    name: row.name,
    tenant: row.slug,
    email: row.email,
    has_password: row.password_hash !== null,
    is_active: fromFlag(row.is_active),
    rate_plan_id: row.rate_plan_id,
    rate_plan: row.rate_plan,
    numbers,
    credit_limit: moneyToNumber(row.credit_limit_micros),
    max_concurrent_calls: row.max_concurrent_calls,
    max_cps: row.max_cps,
    max_daily_spend: moneyToNumber(row.max_daily_spend_micros),
    max_call_seconds: row.max_call_seconds,
    low_balance_threshold: moneyToNumber(row.low_balance_micros),
    is_balance_low: isBalanceLow({
      balanceMicros,
      reservedMicros,
      thresholdMicros: row.low_balance_micros,
      creditMicros: row.credit_limit_micros,
      refusedMicros: row.refused_micros ?? 0,
    }),
    currency: row.currency ?? 'USD',
    balance: moneyToDecimal(balanceMicros),
    balance_number: moneyToNumber(balanceMicros),
    created_at: timeToText(row.created_at),
    updated_at: timeToText(row.updated_at),
  }
}
