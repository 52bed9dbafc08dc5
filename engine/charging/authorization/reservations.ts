/** What live calls may still cost. Only in memory: after a crash no call of the process is alive. */
import type { Tariff } from '../../../schema/call-journal.ts'
import type { Account } from '../customers/customer.ts'

export interface Reservation {
  readonly callUuid: string
  /** Undefined: nobody pays (an unknown caller who is let through). */
  readonly account: Account | undefined
  readonly tariff: Tariff | null
  /** No extension goes beyond it; Infinity without a cap per call. */
  readonly maxSeconds: number
  /** Since the answer; Infinity when more talk costs nothing. */
  readonly grantedSeconds: number
  readonly amountMicros: number
  /** The wallet has no more for this call. */
  readonly isLastGrant: boolean
  /** The call has ended and its record is on its way into the database. */
  readonly isEnded: boolean
}

type Grant = Pick<Reservation, 'grantedSeconds' | 'amountMicros' | 'isLastGrant'>

/** The same, as this table alone may change it. */
type Entry = { -readonly [field in keyof Reservation]: Reservation[field] } & {
  /** Milliseconds: without a sign of life until then, the call is taken for lost. */
  expiresAt: number
}

/** A call may ring, be transferred or lose its reports for this long on top of what it was granted. */
const patienceMs = 10 * 60_000
/** A call that needs no more grants is believed to live this long without a sign of life. */
const longestSilenceMs = 12 * 60 * 60_000

/**
 * The table of open calls. It alone changes what accounts have reserved and how many calls they have
 * open, so both are always the sums over this table.
 */
export class Reservations {
  readonly #entries = new Map<string, Entry>()

  get size(): number {
    return this.#entries.size
  }

  find(callUuid: string): Reservation | undefined {
    return this.#entries.get(callUuid)
  }

  open(call: Omit<Reservation, 'isEnded'>, now: number): Reservation {
    const entry = { ...call, isEnded: false, expiresAt: expiry(call, now) }
    this.#entries.set(call.callUuid, entry)
    if (call.account === undefined) return entry
    call.account.reservedMicros += BigInt(call.amountMicros)
    call.account.openCalls += 1
    return entry
  }

  /** Replaces grant and amount of an open call. */
  extend(
    { callUuid }: Reservation,
    { grantedSeconds, amountMicros, isLastGrant }: Grant,
    now: number,
  ): Reservation {
    const entry = this.#entries.get(callUuid)
    if (entry === undefined) throw new Error(`call ${callUuid} holds no reservation`)
    setAmount(entry, amountMicros)
    entry.grantedSeconds = grantedSeconds
    entry.isLastGrant = isLastGrant
    entry.expiresAt = expiry(entry, now)
    return entry
  }

  /** More was asked for, and the wallet has none. */
  exhaust({ callUuid }: Reservation): void {
    const entry = this.#entries.get(callUuid)
    if (entry !== undefined) entry.isLastGrant = true
  }

  /** A sign of life. */
  touch(callUuid: string, now: number): Reservation | undefined {
    const entry = this.#entries.get(callUuid)
    if (entry !== undefined) entry.expiresAt = expiry(entry, now)
    return entry
  }

  /** The call is over: it counts no more as open, and keeps exactly its cost until that is debited. */
  end(callUuid: string, costMicros: number): void {
    const entry = this.#entries.get(callUuid)
    if (entry === undefined || entry.isEnded) return
    setAmount(entry, costMicros)
    entry.isEnded = true
    if (entry.account !== undefined) entry.account.openCalls -= 1
  }

  /** The debit is committed, or will never come. */
  release(callUuid: string): void {
    const entry = this.#entries.get(callUuid)
    if (entry === undefined) return
    this.end(callUuid, 0)
    setAmount(entry, 0)
    this.#entries.delete(callUuid)
  }

  /** Gives back what lost calls hold. Answers their uuids. */
  expire(now: number): string[] {
    const lost = [...this.#entries.values()]
      .filter(({ isEnded, expiresAt }) => !isEnded && expiresAt <= now)
      .map(({ callUuid }) => callUuid)
    for (const callUuid of lost) this.release(callUuid)
    return lost
  }
}

function setAmount(entry: Entry, amountMicros: number): void {
  if (entry.account !== undefined)
    entry.account.reservedMicros += BigInt(amountMicros - entry.amountMicros)
  entry.amountMicros = amountMicros
}

function expiry({ grantedSeconds }: Pick<Reservation, 'grantedSeconds'>, now: number): number {
  const grantedMs = grantedSeconds * 1_000
  return now + Math.min(grantedMs, longestSilenceMs) + patienceMs
}
