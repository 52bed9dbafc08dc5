/** Alerts about payments, until an operator resolves them. */
import type { Selectable } from 'kysely'
import { moneyToDecimal, moneyToNumber, timeToText } from '../../schema/columns.ts'
import type { Store } from '../../schema/storage/store.ts'
import { execute, first, readApart } from '../../schema/sql/query.ts'
import { pageOf } from '../http/rows.ts'
import type { Rows } from '../resources/resource.ts'
import type { AlertKind, BillingAlertTable } from '../../schema/tables/money.ts'
import { timeOrNull } from '../http/view-fields.ts'

export interface Alert {
  readonly kind: AlertKind
  readonly eventId: string
  readonly eventKind: string
  readonly customerId: number | null
  readonly reference: string | null
  readonly amountMicros: number | null
  readonly currency: string | null
  readonly detail: string
}

export interface AlertFilter {
  readonly state?: 'open' | 'resolved' | undefined
  readonly kind?: AlertKind | undefined
  readonly customer_id?: number | undefined
}

export type AlertView = ReturnType<typeof alertView>

/** Alerts of payments that are not credited: a person may say whose such a payment is. */
const assignable: readonly AlertKind[] = [
  'unknown_customer',
  'currency_mismatch',
  'balance_out_of_range',
  'resolved_before',
]

/** Alerts that are over when the payment is credited. */
const uncredited: readonly AlertKind[] = [...assignable, 'not_arrived']

export const isAssignable = (kind: AlertKind): boolean => assignable.includes(kind)

export class AlertStore {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /**
   * Raises an alert inside the open transaction. Undefined: the event has raised one of this kind
   * before.
   */
  async raise(alert: Alert, now: number): Promise<AlertView | undefined> {
    const row = {
      kind: alert.kind,
      event_id: alert.eventId,
      event_kind: alert.eventKind,
      customer_id: alert.customerId,
      reference: alert.reference,
      amount_micros: alert.amountMicros,
      currency: alert.currency,
      detail: alert.detail,
      created_at: now,
    }
    const made = await first(
      this.#store,
      this.#store.db
        .insertInto('billing_alert')
        .values(row)
        .onConflict((conflict) => conflict.doNothing())
        .returningAll(),
    )
    return made && alertView(made)
  }

  find(id: number): Promise<Selectable<BillingAlertTable> | undefined> {
    const query = this.#store.db.selectFrom('billing_alert').selectAll().where('id', '=', id)
    return first(this.#store, query)
  }

  async view(id: number): Promise<AlertView | undefined> {
    const row = await this.find(id)
    return row && alertView(row)
  }

  /** Whether an alert of this kind is open for a payment with one of these names. */
  async isOpen(kind: AlertKind, references: readonly string[]): Promise<boolean> {
    const query = this.#store.db
      .selectFrom('billing_alert')
      .select('id')
      .where('kind', '=', kind)
      .where('reference', 'in', references)
      .where('resolved_at', 'is', null)
    return (await first(this.#store, query)) !== undefined
  }

  /**
   * Who has resolved an alert of a payment without crediting it. Undefined: nobody has. @param
   * platform no person.
   */
  async resolverOf(references: readonly string[], platform: string): Promise<string | undefined> {
    const query = this.#store.db
      .selectFrom('billing_alert')
      .select('resolved_by')
      .where('kind', 'in', assignable)
      .where('reference', 'in', references)
      .where('resolved_at', 'is not', null)
      .where('resolved_by', '!=', platform)
      .orderBy('id', 'desc')
    return (await first(this.#store, query))?.resolved_by ?? undefined
  }

  /**
   * Resolves the alerts of a payment that has been credited after all, or has another reason now.
   */
  async settle(references: readonly string[], by: string, now: number): Promise<void> {
    await execute(
      this.#store,
      this.#store.db
        .updateTable('billing_alert')
        .set({ resolved_at: now, resolved_by: by })
        .where('kind', 'in', uncredited)
        .where('reference', 'in', references)
        .where('resolved_at', 'is', null),
    )
  }

  /** The amount of the payment that was refunded; undefined: none is known to be. */
  async refundOf(references: readonly string[]): Promise<number | undefined> {
    const query = this.#store.db
      .selectFrom('billing_alert')
      .select('amount_micros')
      .where('kind', '=', 'refund')
      .where('reference', 'in', references)
      .orderBy('amount_micros', 'desc')
    const refund = await first(this.#store, query)
    return refund && (refund.amount_micros ?? 0)
  }

  /** Whether one of these payments was too large for its wallet. */
  async isTooLarge(references: readonly string[]): Promise<boolean> {
    const query = this.#store.db
      .selectFrom('billing_alert')
      .select('id')
      .where('kind', '=', 'balance_out_of_range')
      .where('reference', 'in', references)
    return (await first(this.#store, query)) !== undefined
  }

  /** Safe to repeat: the first resolution stays. */
  async resolve(id: number, by: string, now: number): Promise<AlertView | undefined> {
    await execute(
      this.#store,
      this.#store.db
        .updateTable('billing_alert')
        .set({ resolved_at: now, resolved_by: by })
        .where('id', '=', id)
        .where('resolved_at', 'is', null),
    )
    return this.view(id)
  }

  /** Newest first. */
  async list(
    { state, kind, customer_id: customerId }: AlertFilter,
    slice: { readonly limit: number; readonly offset: number },
  ): Promise<Rows<AlertView>> {
    const matching = this.#store.db
      .selectFrom('billing_alert')
      .$if(state === 'open', (query) => query.where('resolved_at', 'is', null))
      .$if(state === 'resolved', (query) => query.where('resolved_at', 'is not', null))
      .$if(kind !== undefined, (query) => query.where('kind', '=', kind ?? 'refund'))
      .$if(customerId !== undefined, (query) => query.where('customer_id', '=', customerId ?? 0))
      .selectAll()
      .orderBy('id', 'desc')
    const { rows, total } = await readApart(this.#store, null, () =>
      pageOf(this.#store, matching, slice),
    )
    return { rows: rows.map(alertView), total }
  }
}

const alertView = (row: Selectable<BillingAlertTable>) => ({
  id: row.id,
  kind: row.kind,
  event_id: row.event_id,
  event_kind: row.event_kind,
  customer_id: row.customer_id,
  reference: row.reference,
  amount: row.amount_micros === null ? null : moneyToNumber(row.amount_micros),
  amount_exact: row.amount_micros === null ? null : moneyToDecimal(row.amount_micros),
  currency: row.currency,
  detail: row.detail,
  created_at: timeToText(row.created_at),
  resolved_at: timeOrNull(row.resolved_at),
  resolved_by: row.resolved_by,
  assignable: row.resolved_at === null && isAssignable(row.kind),
})
