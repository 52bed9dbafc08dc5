/**
 * Credits what customers paid through a payment provider. Events arrive late, twice and in any
 * order, and one payment raises several. The transaction that credits stores the event and every
 * name of the payment, so a payment counts once. One that cannot be credited is told: as an alert,
 * an event and a finding, until an event says what it lacked, or a person says whose it is.
 */
import { DAY_MS } from '../../schema/clock.ts'
import { moneyToDecimal } from '../../schema/columns.ts'
import type { OcsPort } from '../../schema/contracts/charging.ts'
import type { OutgoingEvent } from '../../schema/contracts/engine.ts'
import { all, execute, first, transaction } from '../../schema/sql/query.ts'
import { isUnstored } from '../../schema/storage/storage.ts'
import { type Alert, AlertStore, type AlertView, isAssignable } from './alert-store.ts'
import { type OpenPayment, OpenPayments } from './open-payments.ts'
import type { Platform } from '../http/platform.ts'
import type { CustomerHint, Notice, PaymentEvent } from './payment-event.ts'
import type { PaymentEventTable } from '../../schema/tables/money.ts'

export type PaymentsDeps = Pick<Platform, 'store' | 'now' | 'log'> & {
  readonly engine: Pick<Platform['engine'], 'tell'>
  readonly ocs: Pick<OcsPort, 'move'>
  /** Takes events in the open transaction. */
  readonly webhooks: { readonly write: (event: OutgoingEvent) => Promise<void> }
}

/** How often waiting payments are looked for. */
export const PAYMENTS_TICK_MS = 600_000
/** A direct debit takes up to two weeks. */
const LONG_WAIT_MS = 14 * DAY_MS
/** Alerts of one transaction. */
const WAITING_AT_ONCE = 50

export type PaymentOutcome = PaymentEventTable['outcome']

/** Actor in the ledger, and of alerts that a later event resolves. */
const actor = 'payment'

export class Payments {
  readonly #deps: PaymentsDeps
  readonly #alerts: AlertStore
  readonly #open: OpenPayments

  constructor(deps: PaymentsDeps) {
    this.#deps = deps
    this.#alerts = new AlertStore(deps.store)
    this.#open = new OpenPayments(deps.store)
  }

  /**
   * Handles an event, once, however often it comes: it is stored with what it has moved. When it
   * resolves, the result is durable and the next authorization sees it.
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
      case 'paid': {
        const { references, customer, ...paid } = event.payment
        return this.#paid(event, await this.#open.joined({ names: references, customer, paid }))
      }
      case 'expected': {
        const { references, customer } = event.expected
        return this.#expect(
          event,
          await this.#open.joined({ names: references, customer, paid: null }),
        )
      }
      case 'failed':
        return this.#fail(event.references)
      case 'notice':
        return this.#note(event, event.notice)
      case 'unreadable':
        return this.#alert(event, { kind: 'unreadable_event', detail: event.problem })
      case 'nothing':
      case 'unknown':
        return 'ignored'
    }
  }

  /** The money has arrived: now, or by an earlier event. */
  async #paid(event: PaymentEvent, payment: OpenPayment): Promise<PaymentOutcome> {
    const { names, paid } = payment
    const credited = await this.#find(names)
    if (credited !== undefined) return this.#again(event, payment, credited)
    if (paid === null) return 'ignored'
    const outcome = await this.#credit(event, { ...payment, paid })
    // A payment that is not credited now may be credited by a later event.
    if (outcome === 'alert') await this.#open.put(payment, this.#deps.now())
    return outcome
  }

  async #expect(event: PaymentEvent, payment: OpenPayment): Promise<PaymentOutcome> {
    const { names, paid } = payment
    if (paid !== null || (await this.#find(names)) !== undefined) return this.#paid(event, payment)
    await this.#open.put(payment, this.#deps.now())
    return 'ignored'
  }

  /** Nothing comes any more. Money that another event has told of stays to be credited. */
  async #fail(references: readonly [string, ...string[]]): Promise<PaymentOutcome> {
    const nobody = { idOrName: null, email: null }
    const payment = await this.#open.joined({ names: references, customer: nobody, paid: null })
    if (payment.paid !== null) return 'ignored'
    await this.#open.remove(payment.names)
    await this.#alerts.settle(payment.names, actor, this.#deps.now())
    return 'ignored'
  }

  async #credit(event: PaymentEvent, payment: PaidPayment): Promise<PaymentOutcome> {
    const facts = factsOf(payment)
    const customerId = await this.#customerOf(payment.customer)
    if (customerId === undefined) {
      const detail = `the payment does not identify a single customer (${shown(payment.customer)})`
      return this.#uncredited(event, { kind: 'unknown_customer', detail, ...facts }, payment)
    }
    const currency = await this.#currencyOf(customerId)
    if (currency !== payment.paid.currency) {
      const detail = `the wallet is in ${currency ?? 'no currency'}`
      const kind = 'currency_mismatch' as const
      return this.#uncredited(event, { kind, customerId, detail, ...facts }, payment)
    }
    const settled = await this.#settledOtherwise(payment.names)
    if (settled !== undefined) {
      const detail = settled
      const kind = 'resolved_before' as const
      return this.#uncredited(event, { kind, customerId, detail, ...facts }, payment)
    }
    return this.#post(event, payment, customerId)
  }

  /** Why a payment that says whose it is is left to a person; undefined: nothing is known of it. */
  async #settledOtherwise(names: OpenPayment['names']): Promise<string | undefined> {
    const resolver = await this.#alerts.resolverOf(names, actor)
    if (resolver !== undefined)
      return `${resolver} has resolved an earlier alert of it, and may have credited it by hand`
    const refundMicros = await this.#alerts.refundOf(names)
    if (refundMicros === undefined) return undefined
    return `${moneyToDecimal(refundMicros)} of it was refunded`
  }

  /** The stored currency: the memory of charging follows a moment later. */
  async #currencyOf(customerId: number): Promise<string | undefined> {
    const { store } = this.#deps
    const wallet = store.db.selectFrom('wallet').select('currency')
    return (await first(store, wallet.where('customer_id', '=', customerId)))?.currency
  }

  async #post(
    event: PaymentEvent,
    payment: PaidPayment,
    customerId: number,
  ): Promise<PaymentOutcome> {
    // An operator may have credited it since: crediting it here too would double it.
    if (await this.#alerts.isTooLarge(payment.names))
      return this.#tooLarge(event, payment, customerId)
    const { amountMicros } = payment.paid
    const move = { customerId, amountMicros, actor, note: event.kind }
    const moved = await this.#move(payment.names, amountMicros, move)
    return moved === 'moved' ? 'credited' : this.#tooLarge(event, payment, customerId)
  }

  /**
   * Credits a payment, and notes all its names: whatever else comes of it is a duplicate.
   *
   * @param paidMicros in the currency of the payment: later events are compared with it.
   */
  async #move(
    names: OpenPayment['names'],
    paidMicros: number,
    move: Omit<Parameters<OcsPort['move']>[0], 'kind' | 'ref'>,
  ): Promise<'moved' | 'balance_out_of_range'> {
    const { ocs, log, now, store } = this.#deps
    const { customerId, amountMicros } = move
    const ref = `payment:${names[0]}`
    const moved = await ocs.move({ ...move, kind: 'topup', ref })
    if (moved.kind === 'balance_out_of_range') return moved.kind
    if (moved.kind !== 'moved') throw new Error(`${ref} cannot be credited: ${moved.kind}`)
    await this.#name(names, { payment: ref, customer_id: customerId, amount_micros: paidMicros })
    await this.#open.remove(names)
    await this.#alerts.settle(names, move.actor, now())
    store.statements.afterCommit(() =>
      log('info', 'billing: payment credited', { customerId, ref, amountMicros }),
    )
    return 'moved'
  }

  #tooLarge(
    event: PaymentEvent,
    payment: PaidPayment,
    customerId: number,
  ): Promise<PaymentOutcome> {
    const detail =
      'the balance would exceed the largest that can be stored; it will not be credited'
    const facts = { kind: 'balance_out_of_range' as const, customerId, detail }
    return this.#uncredited(event, { ...facts, ...factsOf(payment) }, payment)
  }

  /** Another event of a credited payment: it may add names, never money. */
  async #again(
    event: PaymentEvent,
    { names, paid }: OpenPayment,
    credited: CreditedPayment,
  ): Promise<PaymentOutcome> {
    await this.#name(names, credited)
    await this.#open.remove(names)
    await this.#alerts.settle(names, actor, this.#deps.now())
    if (paid === null || credited.amount_micros === paid.amountMicros) return 'duplicate'
    return this.#alert(event, {
      kind: 'amount_mismatch',
      customerId: credited.customer_id,
      detail: `${credited.payment} counts as paid with ${moneyToDecimal(credited.amount_micros)}`,
      ...factsOf({ names, paid }),
    })
  }

  /**
   * A payment has one open alert, whatever number of events tell of it: that of the latest reason.
   */
  async #uncredited(event: PaymentEvent, facts: AlertFacts, { names }: PaidPayment) {
    if (await this.#alerts.isOpen(facts.kind, names)) return 'alert' as const
    await this.#alerts.settle(names, actor, this.#deps.now())
    return this.#alert(event, facts)
  }

  /** Alerts of payments whose money has not arrived for long, each once. Never rejects. */
  async tellWaiting(): Promise<void> {
    const { store, now, log } = this.#deps
    try {
      await transaction(store, async () => {
        for (const name of await this.#open.waiting(now() - LONG_WAIT_MS, WAITING_AT_ONCE))
          await this.#tellWaiting(name)
      })
    } catch (error) {
      // Then the next time.
      if (!isUnstored(error)) log('error', 'billing: waiting payments cannot be told', { error })
    }
  }

  async #tellWaiting(reference: string): Promise<void> {
    const nobody = { idOrName: null, email: null }
    const payment = await this.#open.joined({ names: [reference], customer: nobody, paid: null })
    const days = LONG_WAIT_MS / DAY_MS
    await this.#alert(
      { eventId: `waiting:${reference}`, kind: 'waiting' },
      {
        kind: 'not_arrived',
        customerId: await this.#customerOf(payment.customer),
        reference,
        detail: `it was announced more than ${days} days ago, and its money has not arrived`,
      },
    )
  }

  /**
   * A person says whose a payment is. Undefined: there is no such alert.
   *
   * @param amountMicros null: the amount of the payment, in its own currency.
   */
  assign(
    alertId: number,
    { customerId, amountMicros: given, actor: by }: Assignment,
  ): Promise<Assigned | undefined> {
    return transaction(this.#deps.store, async () => {
      const alert = await this.#alerts.find(alertId)
      if (alert === undefined) return undefined
      const { reference, amount_micros: paidMicros, currency, kind, resolved_by: resolver } = alert
      if (reference === null || paidMicros === null || !isAssignable(kind))
        return { kind: 'not_assignable' as const }
      const nobody = { idOrName: null, email: null }
      const payment = await this.#open.joined({ names: [reference], customer: nobody, paid: null })
      const credited = await this.#find(payment.names)
      if (credited !== undefined)
        return credited.customer_id === customerId
          ? { kind: 'assigned' as const, alert: await this.#viewOf(alertId), isNew: false }
          : { kind: 'credited_before' as const, customerId: credited.customer_id }
      if (resolver !== null) return { kind: 'resolved_before' as const, by: resolver }
      const walletCurrency = await this.#currencyOf(customerId)
      if (given === null && walletCurrency !== currency)
        return { kind: 'other_currency' as const, walletCurrency: walletCurrency ?? null }
      const refundMicros = given === null ? await this.#alerts.refundOf(payment.names) : undefined
      if (refundMicros !== undefined) return { kind: 'refunded' as const, refundMicros }
      const note = `payment ${reference}, assigned`
      const move = { customerId, amountMicros: given ?? paidMicros, actor: by, note }
      const moved = await this.#move(payment.names, paidMicros, move)
      if (moved !== 'moved') return { kind: moved }
      return { kind: 'assigned' as const, alert: await this.#viewOf(alertId), isNew: true }
    })
  }

  async #viewOf(alertId: number): Promise<AlertView> {
    const alert = await this.#alerts.view(alertId)
    if (alert === undefined) throw new Error(`alert ${alertId} is gone`)
    return alert
  }

  async #note(event: PaymentEvent, notice: Notice): Promise<PaymentOutcome> {
    const { alert: kind, reference, amountMicros, currency, detail } = notice
    const credited = await this.#find(notice.references)
    if (kind === 'refund' && credited === undefined) await this.#noteNames(notice.references)
    const customerId = credited?.customer_id ?? (await this.#customerOf(notice.customer))
    return this.#alert(event, { kind, customerId, reference, amountMicros, currency, detail })
  }

  /**
   * A refund names itself, its charge or its payment: whatever comes of the payment later has to
   * find it.
   */
  async #noteNames(names: OpenPayment['names']): Promise<void> {
    const customer = { idOrName: null, email: null }
    const payment = await this.#open.joined({ names, customer, paid: null })
    await this.#open.put(payment, this.#deps.now())
  }

  async #alert(
    { eventId, kind: eventKind }: Pick<PaymentEvent, 'eventId' | 'kind'>,
    facts: AlertFacts,
  ): Promise<'alert'> {
    const { engine, log, now, store, webhooks } = this.#deps
    const { customerId = null, ...others } = facts
    const unknown = { reference: null, amountMicros: null, currency: null }
    const alert = { ...unknown, ...others, eventId, eventKind, customerId }
    const raised = await this.#alerts.raise(alert, now())
    // The same event has raised it before.
    if (raised === undefined) return 'alert'
    const type = 'payment.alert'
    await webhooks.write({ type, tenantId: null, data: raised })
    store.statements.afterCommit(() => {
      log('warn', 'billing: alert', { ...alert })
      engine.tell({ type, tenantId: null, alertId: raised.id, kind: raised.kind })
    })
    return 'alert'
  }

  /**
   * An event that raised an alert is handled again when it is sent again: the cause may be gone.
   */
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
   * A wrong id or name is not corrected by an address. Customers of several tenants may share a
   * name or an address: only one that identifies a single customer counts, so no tenant attracts
   * another's payments.
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

type PaidPayment = OpenPayment & { readonly paid: NonNullable<OpenPayment['paid']> }

type AlertFacts = Pick<Alert, 'kind' | 'detail'> & {
  readonly customerId?: number | undefined
} & Partial<Pick<Alert, 'reference' | 'amountMicros' | 'currency'>>

export interface Assignment {
  readonly customerId: number
  readonly amountMicros: number | null
  readonly actor: string
}

export type Assigned =
  /** `isNew`: false: it was assigned to this customer before. */
  | { readonly kind: 'assigned'; readonly alert: AlertView; readonly isNew: boolean }
  | { readonly kind: 'credited_before'; readonly customerId: number }
  | { readonly kind: 'resolved_before'; readonly by: string }
  | { readonly kind: 'refunded'; readonly refundMicros: number }
  | { readonly kind: 'other_currency'; readonly walletCurrency: string | null }
  | { readonly kind: 'not_assignable' | 'balance_out_of_range' }

const factsOf = ({ names, paid }: Pick<PaidPayment, 'names' | 'paid'>) => ({
  reference: names[0],
  ...paid,
})

const shown = ({ idOrName, email }: CustomerHint): string => idOrName ?? email ?? 'no name given'
