/**
 * Settles ended calls: decides what each costs and who pays (`charge.ts`), has it written once, and
 * lets memory follow the commit.
 *
 * A call that was cut off may cost more than this process holds of a shared wallet, and less than
 * the wallet has: it waits a moment for the rest. Until then the journal has the call as it was
 * before its end: after a crash it goes on, and no party has got a BYE.
 */
import type { EndTerms } from '../../../schema/journal/journal-entries.ts'
import type { CallRecord } from '../../../schema/contracts/call-record.ts'
import type { Quality, ReportAnswer } from '../../../schema/contracts/charging.ts'
import type { Books } from '../authorization/authorize.ts'
import type { Reservations } from '../authorization/reservations.ts'
import type { CallWriter, Following, NodeReport, SettledCall, StoredCall } from '../call-writer.ts'
import type { MoneySums, Posting } from '../ledger/posting.ts'
import { type Charge, chargeOf, missingFor } from './charge.ts'
import { unstored } from './node-reports.ts'

interface SettlementDeps {
  readonly writer: CallWriter
  readonly books: () => Books
  readonly reservations: Reservations
  readonly sums: MoneySums
  /** False: others may spend what this process holds of wallets. */
  readonly canHold: () => boolean
  /** Present while it is asked whether others have what this process held: resolves in a moment. */
  readonly uncertain: () => Promise<void> | undefined
  /** Milliseconds by the steady clock: for days and answers. */
  readonly now: () => number
}

export class Settlement {
  readonly #deps: SettlementDeps
  /** Calls that wait for money; each decides on what there is when its turn comes. */
  readonly #waiting = new Map<() => void, Promise<void>>()

  constructor(deps: SettlementDeps) {
    this.#deps = deps
  }

  /**
   * Stores a call; resolves when it is durable. A call that is already stored changes nothing.
   * Rejects only when the database can never store this record.
   */
  settle(record: CallRecord, safe?: () => void, quality?: Quality): Promise<void> {
    return this.#whenPayable(record, (charge) => this.settleAt(record, charge, safe, quality))
  }

  /** Stores a call whose price is decided. */
  async settleAt(
    record: CallRecord,
    charge: Charge,
    safe?: () => void,
    quality?: Quality,
  ): Promise<void> {
    await this.#write({ record, charge }, termsOf(charge), { safe, quality })
  }

  /** Stores a call that a node reports. Its record says who has paid. */
  settleReport(reported: CallRecord, report: NodeReport): Promise<ReportAnswer> {
    return this.#whenPayable(reported, async (charge) => {
      const record = this.#paidRecord(reported, charge)
      const following = { storedTerms: termsOf(charge) }
      return (
        (await this.#write({ record, charge, report }, undefined, following)).answer ?? unstored
      )
    })
  }

  #paidRecord(reported: CallRecord, { payer, tariff }: Charge): CallRecord {
    const { reservations } = this.#deps
    const isTrusted = reservations.find(reported.callUuid)?.isTrusted === true
    return {
      ...reported,
      customerId: payer?.terms.customerId ?? null,
      tenantId: payer?.terms.tenantId ?? null,
      ratePrefix: tariff?.prefix ?? null,
      isUnauthorizedByOcs: reported.isUnauthorizedByOcs || isTrusted,
    }
  }

  /** Calls `settle` with the charge: at once, or when the share is large enough or cannot be. */
  #whenPayable<T>(record: CallRecord, settle: (charge: Charge) => Promise<T>): Promise<T> {
    const { books, canHold, uncertain } = this.#deps
    const certain = uncertain()
    if (certain !== undefined) return this.#later(record, settle, (decide) => certain.then(decide))
    const missing = canHold() ? missingFor(record, books()) : undefined
    const share = missing?.payer.money
    if (missing === undefined || share === undefined) return settle(chargeOf(record, books()))
    return this.#later(record, settle, async (decide) => {
      const { end } = await share.obtainAmount(Number(missing.amountMicros))
      end()
      decide()
    })
  }

  /** `wait` calls what it is given when the call may be charged. */
  #later<T>(
    record: CallRecord,
    settle: (charge: Charge) => Promise<T>,
    wait: (decide: () => void) => Promise<void>,
  ): Promise<T> {
    const { books } = this.#deps
    return new Promise((resolve, reject) => {
      const decide = (): void => {
        if (this.#waiting.delete(decide)) settle(chargeOf(record, books())).then(resolve, reject)
      }
      this.#waiting.set(decide, wait(decide))
    })
  }

  /** Resolves when no call waits for money. */
  async finish(): Promise<void> {
    if (this.#waiting.size > 0) await Promise.all(this.#waiting.values())
  }

  #write(
    call: SettledCall,
    terms: EndTerms | undefined,
    following: Pick<Following, 'safe' | 'storedTerms' | 'quality'>,
  ): Promise<StoredCall> {
    const { writer, reservations } = this.#deps
    const { callUuid } = call.record
    reservations.end(callUuid, call.charge.costMicros)
    return writer.write(call, terms, {
      ...following,
      committed: ({ posting }) => this.#apply(callUuid, call.charge, posting),
      refused: () => reservations.release(callUuid),
    })
  }

  /** Memory follows the database after the commit, never before. */
  #apply(callUuid: string, charge: Charge, posting: Posting | undefined): void {
    const { payer, tariff, costMicros } = charge
    if (posting?.kind === 'posted' && payer !== undefined) {
      this.#deps.sums.add({ kind: 'debit', amountMicros: -costMicros }, tariff ?? payer.terms)
      payer.posted(posting.balanceMicros, posting.entryId)
      payer.addSpending(costMicros, this.#deps.now())
    }
    this.#deps.reservations.release(callUuid)
  }
}

/** The terms of a charge, as the journal keeps them. */
const termsOf = ({ payer, tariff, costMicros }: Charge): EndTerms => ({
  payerId: payer?.terms.customerId ?? null,
  tariff,
  costMicros,
  isReported: false,
})
