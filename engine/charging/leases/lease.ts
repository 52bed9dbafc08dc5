/** What this process may spend of a wallet that it shares with others. */
import type { StoredLease } from './lease-rows.ts'

export class Lease {
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

  /** Never more than what is stored. */
  get amountMicros(): bigint {
    return this.#amountMicros - this.#returningMicros
  }

  /** The least that is wanted here; below half of it, more is asked for before a call needs it. */
  get targetMicros(): bigint {
    return BigInt(Math.ceil(this.rateMicros * AHEAD_SECONDS))
  }

  /** An answer of the database. One that was overtaken by a newer one changes nothing. */
  stored({ amountMicros, version }: StoredLease): void {
    if (version <= this.#version) return
    this.#version = version
    this.#amountMicros = amountMicros
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

/** What calls reserve in this time is leased ahead. */
const AHEAD_SECONDS = 5
