/** Reports of nodes in the SQLite of this process, inside the open transaction. */
import type { Insertable } from 'kysely'
import type { CallRecord } from '../../../schema/call-record.ts'
import { exactSum } from '../../../schema/columns.ts'
import type { ReportAnswer } from '../../../schema/contracts/charging.ts'
import type { LocalStore } from '../../../schema/open.ts'
import { compile, type Param } from '../../../schema/sql/sync-query.ts'
import type { NodeReport, StoredCall } from '../call-store.ts'
import type { LocalLedger } from '../ledger/local-ledger.ts'
import type { Posting } from '../ledger/posting.ts'
import type { Charge } from './charge.ts'
import { answerAgain, answerRecorded, firstAnswer, reportRow } from './node-reports.ts'
import type { OcsReportTable } from '../../../schema/tables/money.ts'

export class LocalReports {
  readonly #statements: ReturnType<typeof prepare>
  readonly #ledger: LocalLedger

  constructor(store: LocalStore, ledger: LocalLedger) {
    this.#statements = prepare(store)
    this.#ledger = ledger
  }

  /** @param settle stores the call and debits it. */
  write(
    record: CallRecord,
    charge: Charge,
    report: NodeReport,
    settle: () => Posting | undefined,
  ): StoredCall {
    const earlier = this.#earlier(record)
    if (earlier?.kind === 'conflict') this.#statements.keep.run(reportRow(record, earlier, report))
    if (earlier !== undefined) return { answer: earlier }
    const posting = settle()
    const balanceMicros = this.#ledger.balance(charge.payer?.terms.walletId ?? null)
    const answer = firstAnswer(charge, balanceMicros)
    this.#statements.keep.run(reportRow(record, answer, report))
    return { answer, posting }
  }

  /** What was accepted for this call before, from a node or from the engine in this process. */
  #earlier(record: CallRecord): ReportAnswer | undefined {
    const { callUuid } = record
    const accepted = this.#statements.accepted.get({ callUuid })
    if (accepted !== undefined)
      return answerAgain(record, {
        billsec: accepted.billsec,
        costMicros: accepted.cost_micros,
        balanceAfterMicros: accepted.balance_after === null ? null : BigInt(accepted.balance_after),
        currency: accepted.currency,
      })
    const stored = this.#statements.record.get({ callUuid })
    return stored && answerRecorded(record, stored, this.#ledger.find('debit', callUuid))
  }
}

function prepare(store: LocalStore) {
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
