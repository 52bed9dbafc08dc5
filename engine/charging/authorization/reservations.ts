/** What live calls may still cost. In memory; of an answered call the journal has a copy (saved-grant.ts). */
import type { Tariff } from '../../../schema/call-journal.ts'
import { ReleasingMap } from '../../sip-server/message/index.ts'
import type { Held } from '../../../schema/contracts/ocs.ts'
import type { Customer } from '../customers/customer.ts'

export interface Reservation {
  readonly callUuid: string
  /** Undefined: the call is free (an unknown caller that is allowed). */
  readonly payer: Customer | undefined
  readonly tariff: Tariff | null
  /** The cap per call, which no extension exceeds; Infinity: none. */
  readonly maxSeconds: number
  /** Since the answer; Infinity when more talk costs nothing. */
  readonly grantedSeconds: number
  readonly amountMicros: number
  /** The wallet cannot pay for more of this call. */
  readonly isLastGrant: boolean
  /** It was granted without knowing what its wallet has (`OCS_FAIL_MODE=open`). Absent: no. */
  readonly isTrusted?: boolean
  /** Since the answer: until then no process could end the call. Absent: it began in this one. */
  readonly resumedAtSeconds?: number
  /** The call has ended; its record is not committed yet. */
  readonly isEnded: boolean
}

type Grant = Pick<Reservation, 'grantedSeconds' | 'amountMicros' | 'isLastGrant'>

/** Only this table may change it. */
type Entry = { -readonly [field in keyof Reservation]: Reservation[field] } & {
  /** Milliseconds. Without a sign of life until then, the call counts as lost. */
  expiresAt: number
}

/** How long a call may ring, be transferred or send no report, on top of its grant. */
const graceMs = 10 * 60_000
/** A call with a longer grant counts as alive for this long without a sign of life. */
const longestSilenceMs = 12 * 60 * 60_000

/**
 * The table of open calls. Only this table changes the reserved money and the open calls of customers,
 * so both are always the sums over it.
 */
export class Reservations {
  readonly #entries = new ReleasingMap<string, Entry>()

  get size(): number {
    return this.#entries.size
  }

  find(callUuid: string): Reservation | undefined {
    return this.#entries.get(callUuid)
  }

  open(call: Omit<Reservation, 'isEnded'>, now: number): Reservation {
    const entry = { ...call, isEnded: false, expiresAt: expiry(call, now) }
    this.#entries.set(call.callUuid, entry)
    if (call.payer === undefined) return entry
    call.payer.reservedMicros += BigInt(call.amountMicros)
    call.payer.openCalls += 1
    return entry
  }

  /** Of calls that a wallet pays for. */
  *held(): Iterable<Held> {
    for (const { callUuid, payer, amountMicros } of this.#entries.values())
      if (payer !== undefined) yield { callUuid, customerId: payer.terms.customerId, amountMicros }
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

  /** Marks that the wallet could not pay for an extension. */
  exhaust({ callUuid }: Reservation): void {
    const entry = this.#entries.get(callUuid)
    if (entry !== undefined) entry.isLastGrant = true
  }

  /** Notes a sign of life. */
  touch(callUuid: string, now: number): Reservation | undefined {
    const entry = this.#entries.get(callUuid)
    if (entry !== undefined) entry.expiresAt = expiry(entry, now)
    return entry
  }

  /** Ends a call: it is no longer open, and holds exactly its cost until that is debited. */
  end(callUuid: string, costMicros: number): void {
    const entry = this.#entries.get(callUuid)
    if (entry === undefined || entry.isEnded) return
    setAmount(entry, costMicros)
    entry.isEnded = true
    if (entry.payer !== undefined) entry.payer.openCalls -= 1
  }

  /** Removes a call whose debit is committed, or will never be. */
  release(callUuid: string): void {
    const entry = this.#entries.get(callUuid)
    if (entry === undefined) return
    this.end(callUuid, 0)
    setAmount(entry, 0)
    this.#entries.delete(callUuid)
  }

  /** Releases what lost calls hold. Returns their uuids. */
  expire(now: number): string[] {
    const lost = [...this.#entries.values()]
      .filter(({ isEnded, expiresAt }) => !isEnded && expiresAt <= now)
      .map(({ callUuid }) => callUuid)
    for (const callUuid of lost) this.release(callUuid)
    return lost
  }
}

function setAmount(entry: Entry, amountMicros: number): void {
  if (entry.payer !== undefined)
    entry.payer.reservedMicros += BigInt(amountMicros - entry.amountMicros)
  entry.amountMicros = amountMicros
}

function expiry({ grantedSeconds }: Pick<Reservation, 'grantedSeconds'>, now: number): number {
  const grantedMs = grantedSeconds * 1_000
  return now + Math.min(grantedMs, longestSilenceMs) + graceMs
}
