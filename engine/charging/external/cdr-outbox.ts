/**
 * CDRs that an external OCS has not acknowledged yet. They are rows, written in the transaction of the call
 * record and deleted after the OCS answered 200. None is lost while the OCS is away; one that arrives twice
 * is charged once, because it has the uuid of its call.
 */
import type { CallRecord } from '../../../schema/call-record.ts'
import type { Schedule } from '../../../schema/clock.ts'
import { timeToText } from '../../../schema/columns.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import { OneAtATime } from '../../../schema/one-at-a-time.ts'
import type { Store } from '../../../schema/open.ts'
import type { WriteQueue } from '../../../schema/storage/write-queue.ts'
import { readCost } from './ocs-answers.ts'
import type { HttpAnswer } from './ocs-client.ts'
import { outboxStatements, type OutboxRow } from './outbox-statements.ts'

export interface CdrOutboxDeps {
  readonly store: Store
  readonly writes: WriteQueue
  /** `NODE_NAME`. */
  readonly node: string
  /** Milliseconds by the steady clock (schema/clock.ts). */
  readonly now: () => number
  readonly schedule: Schedule
  /** From 0 up to 1: spreads the retries of many rows. */
  readonly random: () => number
  readonly post: (json: string) => Promise<HttpAnswer>
  readonly log: Log
}

const maxInFlight = 8
/** A row that the OCS refuses is tried again after 1, 2, 4 … seconds, at most ten minutes. */
const rowBackOff = { firstMs: 1_000, longestMs: 10 * 60_000 } as const
/** While the OCS does not answer, one row at a time probes it. */
const silenceBackOff = { firstMs: 200, longestMs: 30_000 } as const

/** A row that a process has taken is left to it for so long, where several share the outbox: if it ends for good. */
const CLAIM_MS = 60_000
/** While the database does not answer. */
const UNREAD_RETRY_MS = 1_000

export class CdrOutbox {
  readonly #deps: CdrOutboxDeps
  readonly #statements: ReturnType<typeof outboxStatements>
  readonly #inFlight = new Set<string>()
  readonly #sending = new OneAtATime(() => this.#sendDue())
  #waiting = 0
  #silences = 0
  #cancelWakeUp: (() => void) | undefined
  #isStopped = true

  constructor(deps: CdrOutboxDeps) {
    this.#deps = deps
    this.#statements = outboxStatements(deps.store)
  }

  start(): void {
    this.#isStopped = false
    this.#bringForward()
    this.wake()
  }

  /**
   * What the last run of this node had taken is sent again. Its clock may have been ahead: reports do not wait for its
   * times.
   */
  #bringForward(): void {
    const now = this.#deps.now()
    const latest = now + rowBackOff.longestMs
    this.#deps.writes.add({
      run: async () => {
        await this.release()
        await this.#statements.bringForward.run({ now, latest })
      },
      done: () => this.wake(),
    })
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelWakeUp?.()
  }

  /** Lets others take what this node has taken. */
  async release(): Promise<void> {
    if (this.#statements.claim !== undefined)
      await this.#statements.release.run({ node: this.#deps.node })
  }

  /** To be called after a commit that has added to the outbox. Sends what is due, up to the limit in flight. */
  wake(): void {
    if (this.#isStopped || (this.#silences > 0 && this.#cancelWakeUp !== undefined)) return
    this.#send()
  }

  #send(): void {
    this.#cancelWakeUp?.()
    this.#cancelWakeUp = undefined
    this.#sending.request().catch((error: unknown) => {
      if (this.#isStopped) return
      this.#deps.log('error', 'charging: the CDRs that wait cannot be read', { error })
      this.#wakeAfter(UNREAD_RETRY_MS)
    })
  }

  async #sendDue(): Promise<void> {
    if (this.#isStopped) return
    const room = (this.#silences > 0 ? 1 : maxInFlight) - this.#inFlight.size
    if (room <= 0) return
    const rows = await this.#take(room)
    for (const row of rows) {
      this.#inFlight.add(row.call_uuid)
      void this.#deliver(row)
    }
    if (rows.length === 0 && this.#inFlight.size === 0) await this.#sleep()
  }

  async #take(room: number): Promise<readonly OutboxRow[]> {
    const now = this.#deps.now()
    const { claim, due } = this.#statements
    if (claim !== undefined) {
      const taken = await claim.all([now, room, this.#deps.node, now + CLAIM_MS])
      // One of its own when its claim has ended before its result is stored: that renews the claim.
      return taken.filter((row) => !this.#inFlight.has(row.call_uuid))
    }
    const rows = await due.all({ now, limit: room + this.#inFlight.size })
    return rows.filter((row) => !this.#inFlight.has(row.call_uuid)).slice(0, room)
  }

  /** Sleeps until the next row is due; a minute at most, in case the clock was set back. */
  async #sleep(): Promise<void> {
    const { at = null, rows = 0 } = (await this.#statements.next.get({})) ?? {}
    this.#waiting = rows
    if (at === null || this.#isStopped) return
    this.#wakeAfter(Math.min(Math.max(at - this.#deps.now(), 1), 60_000))
  }

  #wakeAfter(delayMs: number): void {
    this.#cancelWakeUp?.()
    this.#cancelWakeUp = this.#deps.schedule(() => {
      if (!this.#isStopped) this.#send()
    }, delayMs)
  }

  async #deliver(row: OutboxRow): Promise<void> {
    const answer = await this.#deps.post(row.body)
    if (answer.kind === 'silence') return this.#unanswered(row, answer.reason)
    if (this.#silences > 0) this.#deps.log('info', 'charging: the OCS answers again', {})
    this.#silences = 0
    if (answer.status === 200) this.#acknowledged(row, answer.body)
    else this.#refused(row, answer.status)
  }

  #acknowledged({ call_uuid: callUuid }: OutboxRow, body: unknown): void {
    const cost = readCost(body)
    this.#write(callUuid, async () => {
      if (cost !== undefined) {
        await this.#statements.costGone.run({ callUuid })
        await this.#statements.setCost.run({ callUuid, ...cost })
        await this.#statements.costCome.run({ callUuid })
      }
      await this.#statements.remove.run({ callUuid })
    })
  }

  #refused(row: OutboxRow, status: number): void {
    const delayMs = backOff(rowBackOff, row.attempts, this.#deps.random())
    this.#deps.log('warn', 'charging: the OCS refused a CDR', {
      call_uuid: row.call_uuid,
      status,
      attempts: row.attempts + 1,
    })
    this.#postpone(row, `status ${status}`, delayMs)
  }

  #unanswered(row: OutboxRow, reason: string): void {
    // Rows in flight together count as one silence.
    if (this.#silences === 0 || this.#cancelWakeUp === undefined) {
      const delayMs = backOff(silenceBackOff, this.#silences, this.#deps.random())
      if (this.#silences === 0)
        this.#deps.log('warn', 'charging: the OCS does not answer; CDRs wait', { reason })
      this.#silences += 1
      this.#wakeAfter(delayMs)
    }
    this.#postpone(row, reason, 0)
  }

  #postpone({ call_uuid: callUuid }: OutboxRow, error: string, delayMs: number): void {
    const at = this.#deps.now() + delayMs
    this.#write(callUuid, () => this.#statements.postpone.run({ callUuid, at, error }))
  }

  /** The row is in flight until its new state is committed, so that no delivery reads the old one. */
  #write(callUuid: string, run: () => Promise<unknown>): void {
    this.#deps.writes.add({
      run,
      done: () => {
        this.#inFlight.delete(callUuid)
        this.wake()
      },
    })
  }

  stats(): { readonly waiting: number; readonly inFlight: number } {
    return { waiting: this.#waiting + this.#inFlight.size, inFlight: this.#inFlight.size }
  }
}

/** Doubles with each failure, within the bounds; the last quarter is random. */
function backOff(
  { firstMs, longestMs }: { readonly firstMs: number; readonly longestMs: number },
  failures: number,
  random: number,
): number {
  const full = Math.min(firstMs * 2 ** Math.min(failures, 30), longestMs)
  return Math.round(full * (0.75 + 0.25 * random))
}

/** The body of `POST /api/ocs/cdr` (SPECIFICATION.md §13.3), with the CDR's own field names. */
export function reportBody(record: CallRecord): string {
  return JSON.stringify({
    call_uuid: record.callUuid,
    caller: record.callerNumber,
    callee: record.calledNumber,
    billsec: record.billsec,
    customer_id: record.customerId,
    call_id: record.callId,
    direction: record.direction,
    start_stamp: timeToText(record.startedAt),
    answer_stamp: record.answeredAt === null ? null : timeToText(record.answeredAt),
    end_stamp: timeToText(record.endedAt),
    disposition: record.disposition,
    sip_code: record.sipCode,
    hangup_cause: record.hangupCause,
    hangup_by: record.hangupBy,
    recovered: record.isRecovered,
    unauthorized_by_ocs: record.isUnauthorizedByOcs,
  })
}
