/** Ended calls in the SQLite of this process: statements that run at once, grouped into few commits. */
import { JOURNAL_WAIT_MS } from '../../../schema/journal/call-journal.ts'
import { insertCallRecord } from '../../../schema/call-record.ts'
import type { OutgoingEvent } from '../../../schema/contracts/webhook-events.ts'
import { GroupCommit } from '../../../schema/group-commit.ts'
import type { LocalStore } from '../../../schema/open.ts'
import { compile, type Param } from '../../../schema/sql/sync-query.ts'
import { isDepletion } from '../accounting-events.ts'
import type { CallStore, EndedCall, StoreCall, StoredCall } from '../call-store.ts'
import { type LocalLedger, localLedger } from '../ledger/local-ledger.ts'
import type { Posting } from '../ledger/posting.ts'
import type { Charge } from './charge.ts'
import { LocalReports } from './local-reports.ts'
import type { CallStoreDeps } from './store-deps.ts'

/** The journal has what waits, so that it is written in few, large groups. */
const RECORD_WAIT_MS = 100

export class LocalCalls implements CallStore {
  readonly #deps: CallStoreDeps<LocalStore>
  readonly #group: GroupCommit
  readonly #insert: ReturnType<typeof insertCallRecord>
  readonly #ledger: LocalLedger
  readonly #reports: LocalReports
  readonly #statements: ReturnType<typeof prepare>

  constructor(deps: CallStoreDeps<LocalStore>) {
    const { store } = deps
    this.#deps = deps
    this.#group = new GroupCommit(deps)
    this.#insert = insertCallRecord(store)
    this.#ledger = localLedger(store)
    this.#reports = new LocalReports(store, this.#ledger)
    this.#statements = prepare(store)
  }

  stored(callUuids: readonly string[]): Promise<ReadonlySet<string>> {
    const { find } = this.#statements
    const found = callUuids.filter((callUuid) => find.get({ callUuid }) !== undefined)
    return Promise.resolve(new Set(found))
  }

  add(call: EndedCall, { done, refused, mayWait }: StoreCall): void {
    this.#group.add({
      ...(mayWait && { waitMs: RECORD_WAIT_MS }),
      content: call.record,
      run: () => this.#write(call),
      done,
      refused,
    })
  }

  announce(event: OutgoingEvent): void {
    this.#group.add({ run: () => this.#deps.sink?.write(event) })
  }

  announced(event: OutgoingEvent): Promise<boolean> {
    return this.#group.written(() => this.#deps.sink?.write(event), JOURNAL_WAIT_MS)
  }

  get waiting(): number {
    return this.#group.waiting
  }

  flush(): Promise<boolean> {
    return Promise.resolve(this.#group.flush())
  }

  flushNow(): void {
    this.#group.flush()
  }

  unwritten(): readonly unknown[] {
    return this.#group.unwritten()
  }

  stats(): ReturnType<CallStore['stats']> {
    return { ...this.#group.stats(), lostEvents: 0 }
  }

  // ---- inside the transaction ------------------------------------------------------------------

  #write(call: EndedCall): StoredCall {
    const { report, record, charge } = call
    if (report !== undefined)
      return this.#reports.write(record, charge, report, () => {
        this.#store(call)
        return this.#debit(record.callUuid, charge)
      })
    return this.#store(call) ? { posting: this.#debit(record.callUuid, charge) } : {}
  }

  /** False: the call has a record already. */
  #store({ record, charge, outgoing }: EndedCall): boolean {
    const { tariff, costMicros } = charge
    const currency = tariff?.currency ?? record.currency
    if (!this.#insert(record, { costMicros, currency })) return false
    this.#tell(this.#deps.events.ended(record, charge))
    if (outgoing !== undefined) this.#send(record.callUuid, outgoing)
    return true
  }

  #send(callUuid: string, body: string): void {
    this.#statements.send.run({ callUuid, body, at: this.#deps.now() })
  }

  /** Once per call. */
  #debit(callUuid: string, charge: Charge): Posting | undefined {
    const posting = this.#post(callUuid, charge)
    const { payer, isOutOfFunds } = charge
    if (isOutOfFunds && payer !== undefined && posting?.kind !== 'duplicate')
      this.#deplete(charge, this.#ledger.balance(payer.terms.walletId) ?? 0n)
    return posting
  }

  #post(callUuid: string, charge: Charge): Posting | undefined {
    const { payer, costMicros } = charge
    const walletId = payer?.terms.walletId ?? null
    if (payer === undefined || walletId === null || costMicros === 0) return undefined
    const posting = this.#ledger.post({
      walletId,
      kind: 'debit',
      amountMicros: -costMicros,
      ref: callUuid,
      actor: 'ocs',
      note: null,
      at: this.#deps.wallNow(),
    })
    if (posting.kind !== 'posted') return posting
    const { balanceMicros } = posting
    const beforeMicros = balanceMicros + BigInt(costMicros)
    this.#tell(this.#deps.events.lowBalance(payer.terms, beforeMicros, balanceMicros))
    if (isDepletion(payer.terms, beforeMicros, balanceMicros)) this.#deplete(charge, balanceMicros)
    return posting
  }

  #deplete({ payer }: Charge, balanceMicros: bigint): void {
    const walletId = payer?.terms.walletId ?? null
    if (payer === undefined || walletId === null || !this.#ledger.deplete(walletId)) return
    this.#tell(this.#deps.events.depleted(payer.terms, balanceMicros))
  }

  #tell(event: OutgoingEvent | undefined): void {
    if (event !== undefined) this.#deps.sink?.write(event)
  }
}

const prepare = (store: LocalStore) => ({
  find: compile(store, (db, param: Param<{ callUuid: string }>) =>
    db.selectFrom('cdr').select('id').where('call_uuid', '=', param('callUuid')),
  ),
  send: compile(store, (db, param: Param<{ callUuid: string; body: string; at: number }>) =>
    db
      .insertInto('cdr_outbox')
      .values({ call_uuid: param('callUuid'), body: param('body'), next_attempt_at: param('at') })
      .onConflict((conflict) => conflict.column('call_uuid').doNothing()),
  ),
})
