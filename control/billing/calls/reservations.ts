/** What live calls may still cost. Only in memory: after a crash no call of the process is alive. */
import type { Tariff } from '../../../schema/call-journal.ts'
import type { Account } from '../accounts/account.ts'

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
  /** The call has ended and its record is on its way into the database. */
  readonly isEnded: boolean
}

interface Entry {
  reservation: Reservation
  /** Milliseconds UTC: without a sign of life until then, the call is taken for lost. */
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
    return this.#entries.get(callUuid)?.reservation
  }

  open(call: Omit<Reservation, 'isEnded'>, now: number): Reservation {
    const reservation = { ...call, isEnded: false }
    this.#entries.set(call.callUuid, { reservation, expiresAt: expiry(reservation, now) })
    if (call.account === undefined) return reservation
    call.account.reservedMicros += call.amountMicros
    call.account.openCalls += 1
    return reservation
  }

  /** Replaces grant and amount of an open call. */
  extend(
    { callUuid }: Reservation,
    grantedSeconds: number,
    amountMicros: number,
    now: number,
  ): Reservation {
    const entry = this.#entries.get(callUuid)
    if (entry === undefined) throw new Error(`call ${callUuid} holds no reservation`)
    this.#setAmount(entry, amountMicros)
    entry.reservation = { ...entry.reservation, grantedSeconds }
    entry.expiresAt = expiry(entry.reservation, now)
    return entry.reservation
  }

  /** A sign of life. */
  touch(callUuid: string, now: number): void {
    const entry = this.#entries.get(callUuid)
    if (entry !== undefined) entry.expiresAt = expiry(entry.reservation, now)
  }

  /** The call is over: it counts no more as open, and keeps exactly its cost until that is debited. */
  end(callUuid: string, costMicros: number): void {
    const entry = this.#entries.get(callUuid)
    if (entry === undefined || entry.reservation.isEnded) return
    this.#setAmount(entry, costMicros)
    entry.reservation = { ...entry.reservation, isEnded: true }
    if (entry.reservation.account !== undefined) entry.reservation.account.openCalls -= 1
  }

  /** The debit is committed, or will never come. */
  release(callUuid: string): void {
    const entry = this.#entries.get(callUuid)
    if (entry === undefined) return
    this.end(callUuid, 0)
    this.#setAmount(entry, 0)
    this.#entries.delete(callUuid)
  }

  /** Gives back what lost calls hold. Answers their uuids. */
  expire(now: number): string[] {
    const lost = [...this.#entries.values()]
      .filter(({ reservation, expiresAt }) => !reservation.isEnded && expiresAt <= now)
      .map(({ reservation }) => reservation.callUuid)
    for (const callUuid of lost) this.release(callUuid)
    return lost
  }

  #setAmount(entry: Entry, amountMicros: number): void {
    const { account, amountMicros: before } = entry.reservation
    if (account !== undefined) account.reservedMicros += amountMicros - before
    entry.reservation = { ...entry.reservation, amountMicros }
  }
}

function expiry({ grantedSeconds }: Reservation, now: number): number {
  const grantedMs = grantedSeconds * 1_000
  return now + Math.min(grantedMs, longestSilenceMs) + patienceMs
}
