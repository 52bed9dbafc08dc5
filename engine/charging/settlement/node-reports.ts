/** Calls that nodes report over HTTP: a repeated report gets the same answer. */
import type { Insertable } from 'kysely'
import type { CallRecord } from '../../../schema/call-record.ts'
import type { Schedule } from '../../../schema/clock.ts'
import { compile, type Param } from '../../../schema/sql/compiled.ts'
import { exactSum } from '../../../schema/columns.ts'
import type { ReportAnswer } from '../../../schema/contracts/ocs.ts'
import type { OcsReportTable } from '../../../schema/tables/charging.ts'
import type { Store } from '../../../schema/open.ts'
import type { Ledger } from '../ledger/ledger.ts'
import type { Charge } from './charge.ts'
import type { Settlement, Written } from './settlement.ts'

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

const duplicate = (
  costMicros: number,
  balanceAfterMicros: bigint | null,
  currency: string | null,
): ReportAnswer => ({
  kind: 'settled',
  costMicros,
  balanceAfterMicros,
  currency,
  isDuplicate: true,
})

export class NodeReports {
  readonly #statements: ReturnType<typeof prepare>
  readonly #ledger: Ledger
  readonly #settlement: Settlement

  constructor(store: Store, ledger: Ledger, settlement: Settlement) {
    this.#statements = prepare(store)
    this.#ledger = ledger
    this.#settlement = settlement
  }

  /** Settles a report, inside the open transaction. `body` is kept when it conflicts. */
  write(record: CallRecord, charge: Charge, body: string, now: number): Written<ReportAnswer> {
    const earlier = this.#earlier(record)
    if (earlier?.kind === 'conflict') this.#keep(record, earlier, body, now)
    if (earlier !== undefined) return { answer: earlier, posting: undefined }
    this.#settlement.store(record, charge)
    const posting = this.#settlement.debit(record.callUuid, charge)
    const { payer, tariff, costMicros } = charge
    const answer: ReportAnswer = {
      kind: 'settled',
      costMicros,
      balanceAfterMicros: this.#ledger.balance(payer?.terms.walletId ?? null),
      currency: tariff?.currency ?? null,
      isDuplicate: false,
    }
    this.#keep(record, answer, body, now)
    return { answer, posting }
  }

  /** What was accepted for this call before, from a node or from the engine in this process. */
  #earlier({ callUuid, billsec }: CallRecord): ReportAnswer | undefined {
    const report = this.#statements.accepted.get({ callUuid })
    if (report !== undefined)
      return report.billsec === billsec
        ? duplicate(report.cost_micros, readSum(report.balance_after), report.currency)
        : { kind: 'conflict' }
    const record = this.#statements.record.get({ callUuid })
    if (record === undefined) return undefined
    if (record.billsec !== billsec) return { kind: 'conflict' }
    const debit = this.#ledger.find('debit', callUuid)
    // A record without a debit: the node that reports it and its OCS share this database.
    return debit && duplicate(-debit.amountMicros, debit.balanceMicros, record.currency)
  }

  #keep(record: CallRecord, answer: ReportAnswer, body: string, now: number): void {
    const isSettled = answer.kind === 'settled'
    this.#statements.keep.run({
      call_uuid: record.callUuid,
      billsec: record.billsec,
      is_conflict: isSettled ? 0 : 1,
      cost_micros: isSettled ? answer.costMicros : 0,
      balance_after_micros: isSettled ? answer.balanceAfterMicros : null,
      currency: isSettled ? answer.currency : null,
      body: isSettled ? null : body,
      reported_at: now,
    })
  }
}

const readSum = (text: string | null): bigint | null => (text === null ? null : BigInt(text))

function prepare(store: Store) {
  return {
    accepted: compile(store, (db, param: Param<{ callUuid: string }>) =>
      db
        .selectFrom('ocs_report')
        .select(['billsec', 'cost_micros', 'currency'])
        .select(exactSum('balance_after_micros').as('balance_after'))
        .where('call_uuid', '=', param('callUuid'))
        .where('is_conflict', '=', 0),
    ),
    record: compile(store, (db, param: Param<{ callUuid: string }>) =>
      db
        .selectFrom('cdr')
        .select(['billsec', 'currency'])
        .where('call_uuid', '=', param('callUuid')),
    ),
    keep: compile(
      store,
      (
        db,
        param: Param<Insertable<OcsReportTable> & { readonly balance_after_micros: bigint | null }>,
      ) =>
        db
          .insertInto('ocs_report')
          .values({
            call_uuid: param('call_uuid'),
            billsec: param('billsec'),
            is_conflict: param('is_conflict'),
            cost_micros: param('cost_micros'),
            balance_after_micros: param('balance_after_micros'),
            currency: param('currency'),
            body: param('body'),
            reported_at: param('reported_at'),
          })
          .onConflict((conflict) => conflict.columns(['call_uuid', 'billsec']).doNothing()),
    ),
  }
}
