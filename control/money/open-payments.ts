/**
 * Payments that are not credited. Each of their events names the payment in its own way, and may
 * say something that the others do not: whose it is (a checkout session), or that the money has
 * arrived (its payment intent). Events that share a name are of one payment, in whatever order they
 * come.
 */
import { DAY_MS } from '../../schema/clock.ts'
import type { Store } from '../../schema/storage/store.ts'
import { all, execute } from '../../schema/sql/query.ts'
import type { CustomerHint } from './payment-event.ts'

export interface OpenPayment {
  /** All of them; the names of an event come first. */
  readonly names: readonly [string, ...string[]]
  readonly customer: CustomerHint
  /** Null: the money has not arrived yet. */
  readonly paid: { readonly amountMicros: number; readonly currency: string } | null
}

/** No method of payment takes as long: a payment without money is forgotten then. */
const LONGEST_WAIT_MS = 90 * DAY_MS
/**
 * Names of one payment that are stored. An event has fewer than half, so that none of its own is
 * left out.
 */
const MAX_NAMES = 256

export class OpenPayments {
  readonly #store: Store

  constructor(store: Store) {
    this.#store = store
  }

  /** The payment of an event, with what earlier events have told of it. */
  async joined(event: OpenPayment): Promise<OpenPayment> {
    const rows = await this.#rowsOf(event.names)
    const { idOrName, email } = event.customer
    const known = (field: 'id_or_name' | 'email') =>
      rows.find((row) => row[field] !== null)?.[field] ?? null
    const paid = rows.flatMap(({ amount_micros: amountMicros, currency }) =>
      amountMicros === null || currency === null ? [] : [{ amountMicros, currency }],
    )
    const [first, ...others] = event.names
    const names = new Set([...others, ...rows.map(({ reference }) => reference)])
    names.delete(first)
    return {
      names: [first, ...[...names].slice(0, MAX_NAMES - 1)],
      customer: {
        idOrName: idOrName ?? known('id_or_name'),
        email: email ?? known('email'),
      },
      paid: event.paid ?? paid[0] ?? null,
    }
  }

  /** Replaces what was stored of it, also where that was of several payments. */
  async put({ names, customer, paid }: OpenPayment, now: number): Promise<void> {
    await this.remove(names)
    await this.#forget(now - LONGEST_WAIT_MS)
    const [payment] = names
    const { idOrName: id_or_name, email } = customer
    const { amountMicros: amount_micros = null, currency = null } = paid ?? {}
    const facts = { payment, id_or_name, email, amount_micros, currency, told_at: now }
    const rows = names.map((reference) => ({ reference, ...facts }))
    await execute(this.#store, this.#store.db.insertInto('open_payment').values(rows))
  }

  async remove(names: readonly string[]): Promise<void> {
    const query = this.#store.db.deleteFrom('open_payment').where('reference', 'in', names)
    await execute(this.#store, query)
  }

  /**
   * Names, at most `limit`, of payments whose money has not arrived since `before`. Left out are
   * those of which an alert says so, and refunds of payments that nobody knows.
   */
  async waiting(before: number, limit: number): Promise<readonly string[]> {
    const query = this.#store.db
      .selectFrom('open_payment')
      .select('payment')
      .distinct()
      .where('amount_micros', 'is', null)
      .where('told_at', '<', before)
      .where((row) =>
        row.not(
          row.exists(
            row
              .selectFrom('open_payment as same')
              .innerJoin('billing_alert', 'billing_alert.reference', 'same.reference')
              .select('billing_alert.id')
              .whereRef('same.payment', '=', 'open_payment.payment')
              .where('billing_alert.kind', 'in', ['refund', 'not_arrived']),
          ),
        ),
      )
      .orderBy('payment')
      .limit(limit)
    return (await all(this.#store, query)).map(({ payment }) => payment)
  }

  async #forget(before: number): Promise<void> {
    const query = this.#store.db
      .deleteFrom('open_payment')
      .where('amount_micros', 'is', null)
      .where('told_at', '<', before)
    await execute(this.#store, query)
  }

  /** In an order of their own, so that it is the same on both databases. */
  #rowsOf(names: readonly string[]) {
    const { db } = this.#store
    const query = db
      .selectFrom('open_payment')
      .selectAll()
      .where('payment', 'in', (known) =>
        known.selectFrom('open_payment').select('payment').where('reference', 'in', names),
      )
      .orderBy('told_at')
      .orderBy('reference')
    return all(this.#store, query)
  }
}
