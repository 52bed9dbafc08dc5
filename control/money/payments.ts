/**
 * Credits what customers paid through a payment provider. Events arrive late, twice and in any order, and
 * one payment raises several. The transaction that credits stores the event and every name of the payment,
 * so a payment counts once.
 */
import type { OcsPort } from '../../schema/contracts/charging.ts'
import { all, execute, first, transaction } from '../../schema/sql/query.ts'
import { type Alert, AlertStore } from './alert-store.ts'
import type { Platform } from '../http/platform.ts'
import type { CustomerHint, Notice, Payment, PaymentEvent } from './payment-event.ts'
import type { PaymentEventTable } from '../../schema/tables/money.ts'

type PaymentsDeps = Pick<Platform, 'store' | 'now' | 'log'> & {
  readonly ocs: Pick<OcsPort, 'move'>
}

export type PaymentOutcome = PaymentEventTable['outcome']

/** In the ledger, and of alerts that a later event resolves. */
const actor = 'payment'

export class Payments {
  readonly #deps: PaymentsDeps
  readonly #alerts: AlertStore

  constructor(deps: PaymentsDeps) {
    this.#deps = deps
    this.#alerts = new AlertStore(deps.store)
  }

  /**
   * Handles an event, once, however often it comes: it is stored with what it has moved. When it resolves, the result
   * is durable and the next authorization sees it.
   */
  async receive(event: PaymentEvent): Promise<PaymentOutcome> {
    // Unknown kinds are not stored: the provider has many.
    if (event.meaning === 'unknown') return 'ignored'
    return transaction(this.#deps.store, () => this.#settle(event))
  }

  async #settle(event: PaymentEvent): Promise<PaymentOutcome> {
    if (await this.#isSettled(event.eventId)) return 'duplicate'
    const outcome = await this.#judge(event)
    await this.#remember(event, outcome)
    return outcome
  }

  async #judge(event: PaymentEvent): Promise<PaymentOutcome> {
    switch (event.meaning) {
      case 'paid':
        return this.#credit(event, event.payment)
      case 'notice':
        return this.#note(event, event.notice)
      case 'unreadable':
        return this.#alert(event, { kind: 'unreadable_event', detail: event.problem })
      case 'nothing':
      case 'unknown':
        return 'ignored'
    }
  }

  async #credit(event: PaymentEvent, payment: Payment): Promise<PaymentOutcome> {
    const credited = await this.#find(payment.references)
    if (credited !== undefined) return this.#again(event, payment, credited)
    const customerId = await this.#customerOf(payment.customer)
    if (customerId === undefined) {
      const detail = `the payment does not identify a single customer (${shown(payment.customer)})`
      return this.#alert(event, { kind: 'unknown_customer', detail, ...factsOf(payment) })
    }
    const currency = await this.#currencyOf(customerId)
    if (currency !== payment.currency) {
      const detail = `the wallet is in ${currency ?? 'no currency'}`
      const facts = { customerId, detail, ...factsOf(payment) }
      return this.#alert(event, { kind: 'currency_mismatch', ...facts })
    }
    return this.#post(event, payment, customerId)
  }

  /** The stored currency: the memory of charging follows a moment later. */
  async #currencyOf(customerId: number): Promise<string | undefined> {
    const { store } = this.#deps
    const wallet = store.db.selectFrom('wallet').select('currency')
    return (await first(store, wallet.where('customer_id', '=', customerId)))?.currency
  }

  async #post(event: PaymentEvent, payment: Payment, customerId: number): Promise<PaymentOutcome> {
    // An operator may have credited it since: crediting it here too would double it.
    if (await this.#alerts.isTooLarge(payment.references))
      return this.#tooLarge(event, payment, customerId)
    const { amountMicros, references } = payment
    const ref = `payment:${references[0]}`
    const moved = await this.#deps.ocs.move({
      customerId,
      kind: 'topup',
      amountMicros,
      ref,
      actor,
      note: event.kind,
    })
    if (moved.kind === 'balance_out_of_range') return this.#tooLarge(event, payment, customerId)
    if (moved.kind !== 'moved') throw new Error(`${ref} cannot be credited: ${moved.kind}`)
    await this.#name(references, {
      payment: ref,
      customer_id: customerId,
      amount_micros: amountMicros,
    })
    await this.#alerts.settle(references, actor, this.#deps.now())
    this.#deps.store.statements.afterCommit(() =>
      this.#deps.log('info', 'billing: payment credited', { customerId, ref, amountMicros }),
    )
    return 'credited'
  }

  #tooLarge(event: PaymentEvent, payment: Payment, customerId: number): Promise<PaymentOutcome> {
    const detail =
      'the balance would exceed the largest that can be stored; it will not be credited'
    return this.#alert(event, {
      kind: 'balance_out_of_range',
      customerId,
      detail,
      ...factsOf(payment),
    })
  }

  /** Another event of a credited payment: it may add names, never money. */
  async #again(
    event: PaymentEvent,
    payment: Payment,
    credited: CreditedPayment,
  ): Promise<PaymentOutcome> {
    await this.#name(payment.references, credited)
    if (credited.amount_micros === payment.amountMicros) return 'duplicate'
    return this.#alert(event, {
      kind: 'amount_mismatch',
      customerId: credited.customer_id,
      detail: `${credited.payment} was credited with ${credited.amount_micros} micro-units`,
      ...factsOf(payment),
    })
  }

  async #note(event: PaymentEvent, notice: Notice): Promise<PaymentOutcome> {
    const { alert: kind, reference, amountMicros, currency, detail } = notice
    const customerId =
      (await this.#find(notice.references))?.customer_id ??
      (await this.#customerOf(notice.customer))
    return this.#alert(event, { kind, customerId, reference, amountMicros, currency, detail })
  }

  async #alert(
    { eventId, kind: eventKind }: PaymentEvent,
    facts: Pick<Alert, 'kind' | 'detail'> & { readonly customerId?: number | undefined } & Partial<
        Pick<Alert, 'reference' | 'amountMicros' | 'currency'>
      >,
  ): Promise<'alert'> {
    const { customerId = null, ...others } = facts
    const unknown = { reference: null, amountMicros: null, currency: null }
    const alert = { ...unknown, ...others, eventId, eventKind, customerId }
    await this.#alerts.raise(alert, this.#deps.now())
    this.#deps.store.statements.afterCommit(() =>
      this.#deps.log('warn', 'billing: alert', { ...alert }),
    )
    return 'alert'
  }

  /** An event that raised an alert is handled again when it is sent again: the cause may be gone. */
  async #isSettled(eventId: string): Promise<boolean> {
    const query = this.#deps.store.db
      .selectFrom('payment_event')
      .select('outcome')
      .where('event_id', '=', eventId)
    const outcome = (await first(this.#deps.store, query))?.outcome
    return outcome !== undefined && outcome !== 'alert'
  }

  async #remember({ eventId, kind }: PaymentEvent, outcome: PaymentOutcome): Promise<void> {
    const row = { event_id: eventId, kind, outcome, received_at: this.#deps.now() }
    await execute(
      this.#deps.store,
      this.#deps.store.db
        .insertInto('payment_event')
        .values(row)
        .onConflict((conflict) => conflict.column('event_id').doUpdateSet({ outcome })),
    )
  }

  #find(references: readonly string[]): Promise<CreditedPayment | undefined> {
    const query = this.#deps.store.db
      .selectFrom('payment_reference')
      .select(['payment', 'customer_id', 'amount_micros'])
      .where('reference', 'in', references)
    return first(this.#deps.store, query)
  }

  async #name(references: readonly string[], payment: CreditedPayment): Promise<void> {
    for (const reference of references)
      await execute(
        this.#deps.store,
        this.#deps.store.db
          .insertInto('payment_reference')
          .values({ reference, ...payment })
          .onConflict((conflict) => conflict.doNothing()),
      )
  }

  /**
   * A wrong id or name is not corrected by an address. Customers of several tenants may share a name or an
   * address: only one that identifies a single customer counts, so no tenant attracts another's payments.
   */
  async #customerOf({ idOrName, email }: CustomerHint): Promise<number | undefined> {
    if (idOrName === null)
      return email === null ? undefined : this.#only('email', email.toLowerCase())
    const byId = /^[1-9]\d{0,14}$/.test(idOrName)
      ? await this.#only('id', Number(idOrName))
      : undefined
    return byId ?? this.#only('name', idOrName)
  }

  async #only(
    column: 'id' | 'name' | 'email',
    value: number | string,
  ): Promise<number | undefined> {
    const { store } = this.#deps
    const query = store.db.selectFrom('customer').select('id').where(column, '=', value).limit(2)
    const [customer, second] = await all(store, query)
    return second === undefined ? customer?.id : undefined
  }
}

interface CreditedPayment {
  readonly payment: string
  readonly customer_id: number
  readonly amount_micros: number
}

const factsOf = ({ references, amountMicros, currency }: Payment) => ({
  reference: references[0],
  amountMicros,
  currency,
})

const shown = ({ idOrName, email }: CustomerHint): string => idOrName ?? email ?? 'no name given'
