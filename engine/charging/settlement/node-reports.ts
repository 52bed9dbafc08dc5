/** Calls that nodes report over HTTP: a repeated report gets the same answer. */
import type { CallRecord } from '../../../schema/contracts/call-record.ts'
import type { Schedule } from '../../../schema/clock.ts'
import type { ReportAnswer } from '../../../schema/contracts/charging.ts'
import type { DuplicatePosting } from '../ledger/posting.ts'
import type { Charge } from './settlement.ts'

export const unstored: ReportAnswer = { kind: 'unstored' }

/** How long a node waits for the answer to its report. */
const WAIT_MS = 2_000

export function orUnstored(
  stored: Promise<ReportAnswer>,
  schedule: Schedule,
): Promise<ReportAnswer> {
  return new Promise((resolve, reject) => {
    const cancel = schedule(() => resolve(unstored), WAIT_MS)
    stored.then(resolve, reject).finally(cancel)
  })
}

/** A report that was accepted before. */
export interface AcceptedReport {
  readonly billsec: number
  readonly costMicros: number
  readonly balanceAfterMicros: bigint | null
  readonly currency: string | null
}

/** The answer to a call of which a report was accepted. */
export function answerAgain({ billsec }: CallRecord, accepted: AcceptedReport): ReportAnswer {
  if (accepted.billsec !== billsec) return { kind: 'conflict' }
  const { costMicros, balanceAfterMicros, currency } = accepted
  return { kind: 'settled', costMicros, balanceAfterMicros, currency, isDuplicate: true }
}

/**
 * The answer to a call that has a record of the engine. Undefined: it is not charged yet, because
 * the node that reports it and its OCS share this database.
 */
export function answerRecorded(
  { billsec }: CallRecord,
  stored: { readonly billsec: number; readonly currency: string | null },
  debit: DuplicatePosting | undefined,
): ReportAnswer | undefined {
  if (stored.billsec !== billsec) return { kind: 'conflict' }
  if (debit === undefined) return undefined
  const { amountMicros, balanceMicros } = debit
  return {
    kind: 'settled',
    costMicros: -amountMicros,
    balanceAfterMicros: balanceMicros,
    currency: stored.currency,
    isDuplicate: true,
  }
}

export const firstAnswer = (
  { tariff, costMicros }: Charge,
  balanceAfterMicros: bigint | null,
): ReportAnswer => ({
  kind: 'settled',
  costMicros,
  balanceAfterMicros,
  isDuplicate: false,
  currency: tariff?.currency ?? null,
})

/** The row of a report. */
export function reportRow(
  { callUuid, billsec }: CallRecord,
  answer: ReportAnswer,
  { body, at }: { readonly body: string; readonly at: number },
) {
  const isSettled = answer.kind === 'settled'
  return {
    call_uuid: callUuid,
    billsec,
    is_conflict: isSettled ? 0 : 1,
    cost_micros: isSettled ? answer.costMicros : 0,
    balance_after_micros: isSettled ? answer.balanceAfterMicros : null,
    currency: isSettled ? answer.currency : null,
    body: isSettled ? null : body,
    reported_at: at,
  } as const
}
