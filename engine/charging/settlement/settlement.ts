/**
 * Turns an ended call into its record, its ledger entry and its debit, once; memory follows the
 * commit.
 */
import type { EndTerms } from '../../../schema/journal/journal-entries.ts'
import type { CallRecord } from '../../../schema/contracts/call-record.ts'
import type { Quality, ReportAnswer } from '../../../schema/contracts/charging.ts'
import type { Reservations } from '../authorization/reservations.ts'
import type { CallRecords, Following } from '../call-records.ts'
import type { EndedCall, NodeReport, StoredCall } from './batch.ts'
import type { MoneySums, Posting } from '../ledger/posting.ts'
import type { Charge } from './charge.ts'
import { unstored } from './node-reports.ts'

interface SettlementDeps {
  readonly records: CallRecords
  readonly reservations: Reservations
  readonly sums: MoneySums
  /** Milliseconds by the steady clock: for days and answers. */
  readonly now: () => number
}

export class Settlement {
  readonly #deps: SettlementDeps

  constructor(deps: SettlementDeps) {
    this.#deps = deps
  }

  /**
   * Stores a call; resolves when it is durable. A call that is already stored changes nothing.
   * Rejects only when the database can never store this record.
   */
  async settle(
    record: CallRecord,
    charge: Charge,
    safe?: () => void,
    quality?: Quality,
  ): Promise<void> {
    await this.#queue({ record, charge }, termsOf(charge), { safe, quality })
  }

  /** The same for a call that a node reports. Its record says who has paid. */
  async settleReport(
    reported: CallRecord,
    charge: Charge,
    report: NodeReport,
  ): Promise<ReportAnswer> {
    const { payer, tariff } = charge
    const isTrusted = this.#deps.reservations.find(reported.callUuid)?.isTrusted === true
    const record: CallRecord = {
      ...reported,
      customerId: payer?.terms.customerId ?? null,
      tenantId: payer?.terms.tenantId ?? null,
      ratePrefix: tariff?.prefix ?? null,
      isUnauthorizedByOcs: reported.isUnauthorizedByOcs || isTrusted,
    }
    const following = { storedTerms: termsOf(charge) }
    return (await this.#queue({ record, charge, report }, undefined, following)).answer ?? unstored
  }

  #queue(
    call: EndedCall,
    terms: EndTerms | undefined,
    following: Pick<Following, 'safe' | 'storedTerms' | 'quality'>,
  ): Promise<StoredCall> {
    const { records, reservations } = this.#deps
    const { callUuid } = call.record
    reservations.end(callUuid, call.charge.costMicros)
    return records.queue(call, terms, {
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

/** What the journal has to know of a charge. */
const termsOf = ({ payer, tariff, costMicros }: Charge): EndTerms => ({
  payerId: payer?.terms.customerId ?? null,
  tariff,
  costMicros,
  isReported: false,
})
