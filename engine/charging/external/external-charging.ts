/**
 * Charging by an external OCS (`OCS_URL`): requests over HTTP, CDRs through an outbox that survives
 * restarts.
 */
import type { DialledCall, OpenCall, CallRecord } from '../../../schema/contracts/call-record.ts'
import type { JournalEntry } from '../../../schema/journal/journal-entries.ts'
import type { Schedule } from '../../../schema/clock.ts'
import type { CallJournal } from '../../../schema/journal/call-journal.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { runEach, WriteQueue } from '../../../schema/storage/write-queue.ts'
import { AccountingEvents } from '../accounting-events.ts'
import { CallWriter, type Following } from '../call-writer.ts'
import type { EndRetention } from '../kept-ends.ts'
import { Ledger } from '../ledger/ledger.ts'
import { RestoredCalls, toRecovered } from '../restored-calls.ts'
import { recoveredRecord, unansweredRecord } from '../settlement/interrupted-calls.ts'
import { noCharge } from '../settlement/settlement.ts'
import { CdrOutbox, reportBody } from './cdr-outbox.ts'
import type {
  AuthorizationRequest,
  Charging,
  GrantExtension,
  RecoveredCalls,
  Quality,
  RevokedCall,
  Verdict,
} from '../../../schema/contracts/charging.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import { OcsClient, readDenialCode, readGrant, readGrantedSeconds } from './ocs-client.ts'

export interface ExternalChargingDeps {
  readonly store: Store
  readonly journal: CallJournal
  /** Present where another server may take over without what this one has committed last. */
  readonly keeping?: EndRetention | undefined
  /** `NODE_NAME`. */
  readonly instance: string
  readonly url: string
  readonly token: string | undefined
  readonly timeoutMs: number
  /** A new call without an answer of the OCS is refused, or allowed and marked in its CDR. */
  readonly failMode: 'closed' | 'open'
  /** Milliseconds by the steady clock (schema/clock.ts). */
  readonly now: () => number
  /** Milliseconds UTC. */
  readonly wallNow: () => number
  readonly schedule: Schedule
  /** Returns a number from 0 up to 1. */
  readonly random: () => number
  readonly log: Log
}

const retryAfterSeconds = 5
/** A call goes on for this long when its extension gets no answer and the fail mode is `open`. */
const blindGrantSeconds = 60
/**
 * Uuids of denied calls are remembered until their CDR is stored, at most this many, the newest.
 */
const maxDenied = 50_000

export class ExternalCharging implements Charging {
  readonly #deps: ExternalChargingDeps
  readonly #client: OcsClient
  readonly #writer: CallWriter
  readonly #writes: WriteQueue
  readonly #outbox: CdrOutbox
  readonly #restored: RestoredCalls
  readonly #denied = new Set<string>()

  constructor(deps: ExternalChargingDeps) {
    this.#deps = deps
    this.#client = new OcsClient(deps)
    const onFailure = (error: unknown, waiting: number): void =>
      deps.log('error', 'charging: records cannot be stored', { error, waiting })
    this.#writer = new CallWriter({
      ...deps,
      ledger: new Ledger(deps.store),
      events: new AccountingEvents(undefined),
      onFailure,
    })
    this.#writes = new WriteQueue({ ...deps, run: runEach, onFailure })
    this.#outbox = new CdrOutbox({
      ...deps,
      writes: this.#writes,
      post: (json) => this.#client.post('/api/ocs/cdr', json),
    })
    this.#restored = new RestoredCalls(deps.journal, this.#writer)
  }

  /**
   * Closes the calls that the last run left open and that cannot go on, and resumes delivery of
   * CDRs.
   */
  async start(): Promise<RecoveredCalls> {
    const left = await this.#restored.open(this.#deps.now())
    for (const entry of left.toClose) void this.#close(entry)
    this.#writer.kept.watch({
      found: ({ length: count }) => {
        const message = 'charging: the database server has lost calls: they are stored again'
        if (count > 0) this.#deps.log('warn', message, { count })
      },
      store: (lost) => this.#close(lost),
    })
    await this.#writer.flush()
    this.#outbox.start()
    return toRecovered(left)
  }

  async #close(entry: JournalEntry): Promise<void> {
    await this.#storeRestored(entry).catch((error: unknown) =>
      this.#deps.log('error', 'charging: a call of the previous process cannot be stored', {
        error,
      }),
    )
  }

  #storeRestored(entry: JournalEntry): Promise<void> {
    switch (entry.kind) {
      case 'cut':
        return this.report(recoveredRecord(entry))
      case 'unanswered':
        return this.report(unansweredRecord(entry))
      case 'ended':
        return this.#store(entry.record, entry.terms.isReported)
    }
  }

  /**
   * Writes what waits; undelivered CDRs stay in the outbox. Resolves with what neither the database
   * nor the journal has.
   */
  async stop(): Promise<readonly unknown[]> {
    this.#outbox.stop()
    this.#client.close()
    if (await this.#writes.flush())
      await this.#outbox.release().catch((reason: unknown) =>
        this.#deps.log(
          'warn',
          'charging: other nodes send the pending CDRs of this node within a minute',
          {
            reason,
          },
        ),
      )
    return this.#writer.stop()
  }

  async authorize(request: AuthorizationRequest): Promise<Verdict> {
    const { caller, callee, callUuid, customerId, mayNamePayer } = request
    if (customerId === null && mayNamePayer === false) {
      this.#rememberDenied(callUuid)
      return { kind: 'denied', code: 'no_payer', account: null }
    }
    if (this.#writer.isOverloaded) return { kind: 'unreachable', retryAfterSeconds }
    const query = new URLSearchParams({ caller, callee, call_uuid: callUuid })
    if (customerId !== null) query.set('customer_id', String(customerId))
    const answer = await this.#client.get(`/api/ocs/authorize?${query.toString()}`)
    if (answer.kind === 'silence') return this.#unanswered(request, answer.reason)
    const grant = answer.status === 200 ? readGrant(answer.body, customerId) : undefined
    if (grant !== undefined) return { kind: 'granted', ...grant }
    this.#rememberDenied(callUuid)
    return { kind: 'denied', code: readDenialCode(answer.body, answer.status), account: null }
  }

  #unanswered({ callUuid, customerId }: AuthorizationRequest, reason: string): Verdict {
    this.#deps.log('warn', 'charging: the OCS did not answer', { call_uuid: callUuid, reason })
    if (this.#deps.failMode === 'closed') return { kind: 'unreachable', retryAfterSeconds }
    const account = { customerId, tenantId: null, ratePrefix: null, currency: null }
    return {
      kind: 'granted',
      account: { ...account, isUnauthorizedByOcs: true },
      grantedSeconds: Infinity,
    }
  }

  async extend(callUuid: string, usedSeconds: number): Promise<GrantExtension> {
    const body = JSON.stringify({ call_uuid: callUuid, used_seconds: Math.ceil(usedSeconds) })
    let answer = await this.#client.post('/api/ocs/extend', body)
    // One lost connection must not end a paid call.
    if (answer.kind === 'silence') answer = await this.#client.post('/api/ocs/extend', body)
    if (answer.kind === 'answered')
      return answer.status === 200
        ? { kind: 'granted', grantedSeconds: readGrantedSeconds(answer.body) }
        : { kind: 'denied', code: readDenialCode(answer.body, answer.status) }
    return this.#deps.failMode === 'open'
      ? { kind: 'granted', grantedSeconds: Math.ceil(usedSeconds) + blindGrantSeconds }
      : { kind: 'denied', code: 'ocs_unreachable' }
  }

  begun(call: DialledCall): void {
    this.#deps.journal.begun(call)
  }

  answered(call: OpenCall, state?: string): Promise<boolean> {
    const saved = state === undefined ? undefined : { text: state }
    return this.#deps.journal.answered(call, null, this.#deps.now(), saved)
  }

  changed(callUuid: string, state: string, isChange?: true): void {
    this.#deps.journal.changed(callUuid, { text: state, isChange })
  }

  /** The money that the call holds is reserved at the OCS. */
  resume(callUuid: string): boolean {
    return this.#restored.take(callUuid) !== undefined
  }

  abandon(callUuid: string): void {
    const call = this.#restored.take(callUuid)
    if (call !== undefined) void this.#close(call)
  }

  /** An external OCS ends a call by its answer to the next extension. */
  alive(callUuids: readonly string[], nowMs: number): readonly RevokedCall[] {
    this.#deps.journal.alive(callUuids, nowMs)
    return []
  }

  running(nowMs: number, sinceMs: number): void {
    this.#deps.journal.running(nowMs, sinceMs)
  }

  async report(record: CallRecord, safe?: () => void, quality?: Quality): Promise<undefined> {
    // The OCS needs no CDR of a call that it denied. A call that it did not answer may hold a
    // reservation. It never authorized a free call, and must not charge it.
    const isAccepted = !this.#denied.delete(record.callUuid) || record.answeredAt !== null
    await this.#store(record, isAccepted && record.isFree !== true, { safe, quality })
  }

  async #store(
    record: CallRecord,
    isReported: boolean,
    how: Pick<Following, 'safe' | 'quality'> = {},
  ): Promise<void> {
    const outgoing = isReported ? { outgoing: reportBody(record) } : {}
    const call = { record, charge: noCharge, ...outgoing }
    await this.#writer.write(call, { committed: () => this.#outbox.wake(), ...how })
  }

  #rememberDenied(callUuid: string): void {
    this.#denied.add(callUuid)
    if (this.#denied.size <= maxDenied) return
    for (const oldest of this.#denied) {
      this.#denied.delete(oldest)
      return
    }
  }

  stats(): ExternalChargingStats {
    const { waiting, commits, failures } = this.#writer.stats()
    const outbox = this.#outbox.stats()
    return {
      waitingWrites: waiting,
      commits,
      commitFailures: failures,
      waitingReports: outbox.waiting,
      reportsInFlight: outbox.inFlight,
    }
  }
}

export interface ExternalChargingStats {
  readonly waitingWrites: number
  readonly commits: number
  /** Since the last success. */
  readonly commitFailures: number
  /** CDRs that the OCS has not acknowledged. */
  readonly waitingReports: number
  readonly reportsInFlight: number
}
