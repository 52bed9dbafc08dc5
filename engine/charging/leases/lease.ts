/** What this process may spend of a wallet that it shares with others. */
import type { StoredLease } from './lease-rows.ts'

export class Lease {
  readonly #aheadSeconds: number
  /** As stored, in `#version`. */
  #amountMicros = 0n
  #version = 0
  /** Being given back: it may be stored elsewhere already. */
  #returningMicros = 0n
  /** What calls have reserved, in all; only grows. */
  demandMicros = 0
  /** What calls reserve in a second. */
  rateMicros = 0
  /** For how many looks more was there than calls need. */
  idleLooks = 0
  /** The last request got less because of the limit of a day. */
  isShortOfDay = false

  /** @param awaySeconds how long calls may begin while the database does not answer. */
  constructor(awaySeconds = 10) {
    this.#aheadSeconds = awaySeconds * AHEAD
  }

  /** Never more than what is stored. */
  get amountMicros(): bigint {
    return this.#amountMicros - this.#returningMicros
  }

  /** The least that is wanted here; below half of it, more is asked for before a call needs it. */
  get targetMicros(): bigint {
    return BigInt(Math.ceil(this.rateMicros * this.#aheadSeconds))
  }

  get version(): number {
    return this.#version
  }

  /** The database has none. */
  lost(): void {
    this.#amountMicros = 0n
    this.#version = 0
  }

  /** An answer of the database. One that was overtaken by a newer one changes nothing. */
  stored({ amountMicros, version }: StoredLease): void {
    if (version <= this.#version) return
    this.#version = version
    this.#amountMicros = amountMicros
  }

  /** Once a second. Returns what has not been needed for long: it is to be given back. */
  look(spendableMicros: bigint): bigint {
    this.rateMicros = Math.max(this.demandMicros, this.rateMicros * FADE)
    this.demandMicros = 0
    if (this.rateMicros < 1) this.rateMicros = 0
    const surplus = spendableMicros - this.targetMicros
    this.idleLooks = surplus > this.targetMicros ? this.idleLooks + 1 : 0
    if (this.idleLooks < IDLE_LOOKS) return 0n
    this.idleLooks = 0
    return surplus
  }

  /** Until `returned` or `kept`, it may not be spent. */
  return(micros: bigint): void {
    this.#returningMicros += micros
  }

  /** The database has answered. */
  returned(micros: bigint): void {
    this.#returningMicros -= micros
  }
}

/** Of the rate of the second before. */
const FADE = 0.8
/** What is not needed for so many looks is given back. */
const IDLE_LOOKS = 10
/** What calls reserve in this part of the time without a database is leased ahead: most give the greater part back. */
const AHEAD = 0.5
