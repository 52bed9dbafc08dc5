/**
 * The amounts that live calls may still cost. They are in memory; the journal has a copy for each
 * answered call (saved-grant.ts).
 */
import type { CostSoFar, Tariff } from '../../../schema/contracts/charging.ts'
import type { Customer } from '../customers/customer.ts'
import { type Counted, freeOn, type Meter, recount } from '../spending-caps/meter.ts'
import type { Cappable } from '../spending-caps/spending-caps.ts'
import { tariffAt, type TimedPrices } from '../pricing/call-prices.ts'
import { costMicros } from '../pricing/price.ts'
import { ReleasingMap } from '../../../schema/sip/index.ts'

export interface Reservation {
  readonly callUuid: string
  /** Undefined: the call is free (an unknown caller that is allowed). */
  readonly payer: Customer | undefined
  /** Until the answer, the dearest that the call may be answered at. */
  readonly tariff: Tariff | null
  /** The prices by the time of the answer. Absent: it was answered here, or has one price. */
  readonly prices?: TimedPrices
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
  /** Steady time of its answer. Absent: it rings. */
  readonly answeredAt?: number
  /**
   * Others have taken what was held for it: it is paid from what was obtained anew. Absent: they
   * have not.
   */
  readonly isTakenAway?: true
  /** The request about it, for spend guards. Absent: none brakes it. */
  readonly asked?: Cappable
  /** The call has ended; its record is not committed yet. */
  readonly isEnded: boolean
}

type Grant = Pick<Reservation, 'grantedSeconds' | 'amountMicros' | 'isLastGrant'>

/** The cost of an ended call, and who pays. */
interface Cost extends Pick<Reservation, 'payer' | 'tariff'> {
  readonly costMicros: number
}

/** Only this table may change it. */
type Entry = { -readonly [field in keyof Reservation]: Reservation[field] } & {
  /** Parts of caps that it counts on; undefined: none. */
  counted?: Counted[]
  /** Since the answer, when it was extended last. */
  usedSeconds?: number
  /** Steady time at which it was opened. */
  openedAt: number
  /** Milliseconds. Without a sign of life until then, the call counts as lost. */
  expiresAt: number
}

interface Extended {
  readonly meters: readonly Meter[]
  readonly usedSeconds: number
}

const noMeters: readonly Meter[] = []
const notCounted: Extended = { meters: noMeters, usedSeconds: 0 }

/** Those on which the last of its amount counts: what it costs beyond counts there, too. */
const lastOf = (counted: readonly Counted[], amountMicros: number): readonly Meter[] =>
  counted.filter(({ toMicros }) => toMicros === amountMicros).map(({ meter }) => meter)

/** How long a call may ring, be transferred or send no report, on top of its grant. */
const graceMs = 10 * 60_000
/** A call with a longer grant counts as alive for this long without a sign of life. */
const longestSilenceMs = 12 * 60 * 60_000

/**
 * The table of open calls. Only this table changes the reserved money and the open calls of
 * customers, so both are always the sums over it.
 */
export class Reservations {
  readonly #entries = new ReleasingMap<string, Entry>()

  get size(): number {
    return this.#entries.size
  }

  find(callUuid: string): Reservation | undefined {
    return this.#entries.get(callUuid)
  }

  open(
    call: Omit<Reservation, 'isEnded'>,
    now: number,
    meters: readonly Meter[] = noMeters,
  ): Reservation {
    const entry: Entry = { ...call, isEnded: false, openedAt: now, expiresAt: expiry(call, now) }
    this.#entries.set(call.callUuid, entry)
    if (meters.length > 0) recount((entry.counted = []), meters, 0, call.amountMicros)
    if (call.payer === undefined) return entry
    call.payer.reservedMicros += BigInt(call.amountMicros)
    call.payer.openCalls += 1
    return entry
  }

  all(): IterableIterator<Reservation> {
    return this.#entries.values()
  }

  /** Replaces grant and amount of an open call. */
  extend(
    { callUuid }: Reservation,
    { grantedSeconds, amountMicros, isLastGrant }: Grant,
    now: number,
    { meters, usedSeconds }: Extended = notCounted,
  ): Reservation {
    const entry = this.#entries.get(callUuid)
    if (entry === undefined) throw new Error(`call ${callUuid} holds no reservation`)
    if (meters.length > 0) recount((entry.counted ??= []), meters, entry.amountMicros, amountMicros)
    if (usedSeconds > 0) entry.usedSeconds = usedSeconds
    setAmount(entry, amountMicros)
    entry.grantedSeconds = grantedSeconds
    entry.isLastGrant = isLastGrant
    entry.expiresAt = expiry(entry, now)
    return entry
  }

  /** An open call of an earlier run goes on in this process now. False: it holds nothing here. */
  resume(callUuid: string, resumedAtSeconds: number, now: number): boolean {
    const entry = this.touch(callUuid, now)
    if (entry === undefined) return false
    entry.resumedAtSeconds = resumedAtSeconds
    entry.answeredAt = now - resumedAtSeconds * 1_000
    entry.payer?.limits.note()
    return true
  }

  /**
   * Its time counts from here on.
   *
   * @param answeredAt milliseconds UTC.
   */
  answered(callUuid: string, now: number, answeredAt: number): Entry | undefined {
    const entry = this.touch(callUuid, now)
    if (entry === undefined) return undefined
    entry.answeredAt = now
    if (entry.prices !== undefined) setTariff(entry, tariffAt(entry.prices, answeredAt))
    return entry
  }

  /**
   * The price of a call that talks. A node that asks over HTTP does not say when a call is
   * answered: it has talked for `usedSeconds` now.
   */
  priceOf({ callUuid, tariff, prices }: Reservation, usedSeconds: number, now: number) {
    const entry = this.#entries.get(callUuid)
    const [start] = prices?.steps ?? []
    if (entry === undefined || prices === undefined || start === undefined) return tariff
    return tariffAt(prices, start.from + now - entry.openedAt - usedSeconds * 1_000)
  }

  /** Others have taken what is held for the calls of now. */
  takenAway(): void {
    for (const entry of this.#entries.values()) entry.isTakenAway = true
  }

  /** Marks that the wallet could not pay for an extension. */
  exhaust({ callUuid }: Reservation): void {
    const entry = this.#entries.get(callUuid)
    if (entry !== undefined) entry.isLastGrant = true
  }

  /** Notes a sign of life. */
  touch(callUuid: string, now: number): Entry | undefined {
    const entry = this.#entries.get(callUuid)
    if (entry !== undefined) entry.expiresAt = expiry(entry, now)
    return entry
  }

  /** Ends a call: it is no longer open, and holds exactly its cost until that is debited. */
  end(callUuid: string, costMicros: number): void {
    const entry = this.#entries.get(callUuid)
    if (entry === undefined || entry.isEnded) return
    const { counted, amountMicros } = entry
    if (counted) recount(counted, lastOf(counted, amountMicros), amountMicros, costMicros)
    this.#end(entry, costMicros)
  }

  /** The same for a call that has ended in an earlier run, and held nothing in this one. */
  holdCost(callUuid: string, { payer, tariff, costMicros }: Cost): void {
    if (payer === undefined || costMicros === 0) return
    const entry: Entry = {
      callUuid,
      payer,
      tariff,
      amountMicros: 0,
      isLastGrant: false,
      isEnded: true,
      maxSeconds: Infinity,
      grantedSeconds: Infinity,
      openedAt: 0,
      expiresAt: Infinity,
    }
    setAmount(entry, costMicros)
    this.#entries.set(callUuid, entry)
  }

  #end(entry: Entry, costMicros: number): void {
    if (entry.isEnded) return
    setAmount(entry, costMicros)
    entry.isEnded = true
    if (entry.payer !== undefined) entry.payer.openCalls -= 1
  }

  /** Removes a call whose debit is committed, or will never be. */
  release(callUuid: string): void {
    const entry = this.#entries.get(callUuid)
    if (entry === undefined) return
    // When a call is lost, all that it holds of a cap counts as spent.
    this.#end(entry, 0)
    setAmount(entry, 0)
    for (const { meter, fromMicros, toMicros } of entry.counted ?? [])
      meter.spent(toMicros - fromMicros)
    this.#entries.delete(callUuid)
  }

  /**
   * There is a new cap: what live calls may have left of their grants counts on it. `metersOf`: the
   * caps of a call.
   */
  countLive(metersOf: (asked: Cappable, payer: Customer) => readonly Meter[]): void {
    for (const entry of this.#entries.values()) {
      const { asked, payer, isEnded, tariff, amountMicros, usedSeconds = 0 } = entry
      if (asked === undefined || payer === undefined || isEnded || tariff === null) continue
      const known = entry.counted ?? []
      const meters = metersOf(asked, payer).filter((meter) => !known.some((c) => c.meter === meter))
      if (meters.length === 0) continue
      const usedMicros = Math.min(costMicros(tariff, usedSeconds), amountMicros)
      recount((entry.counted ??= []), meters, usedMicros, amountMicros)
    }
  }

  /** The free part of the caps that a call counts on; Infinity: it counts on none. */
  leftOfCaps(callUuid: string): number {
    const { counted = [], amountMicros = 0 } = this.#entries.get(callUuid) ?? {}
    return Math.max(0, freeOn(lastOf(counted, amountMicros)))
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

/** The grant stays: what it costs now is reserved. */
function setTariff(entry: Entry, tariff: Tariff): void {
  const { grantedSeconds, amountMicros, counted } = entry
  delete entry.prices
  entry.tariff = tariff
  if (grantedSeconds === Infinity) return
  const cost = costMicros(tariff, grantedSeconds)
  if (counted) recount(counted, lastOf(counted, amountMicros), amountMicros, cost)
  setAmount(entry, cost)
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

const freeCall: CostSoFar = { costMicros: 0, currency: null, tariff: null }

/**
 * Returns what a live call would cost if it ended now. @param reservation undefined: nothing is
 * reserved for it.
 */
export function costSoFar(reservation: Reservation | undefined, seconds: number): CostSoFar {
  const { tariff, grantedSeconds } = reservation ?? {}
  if (!tariff || grantedSeconds === undefined) return freeCall
  const billsec = Math.min(seconds, Math.floor(grantedSeconds))
  return { costMicros: costMicros(tariff, billsec), currency: tariff.currency, tariff }
}
