/**
 * Which share of new calls is let in: a loop that holds the delay of what waits to be read near a
 * target, instead of letting a queue grow in which every call grows too old (RFC 7339 §5 in its
 * loss-based form, but decided here and not by the sender). Pure: delays go in, a share comes out.
 */

export interface AdmissionLimits {
  /** A smoothed delay beyond this is overload. Milliseconds. */
  readonly engageMs: number
  /** What the delay is held at while calls are refused. Milliseconds, below `engageMs`. */
  readonly targetMs: number
}

/**
 * Half of T1 is when everybody begins to repeat what was not answered; before that the smoothed
 * delay must have counted. The target leaves OPTIONS of ours, which wait like all others, in time.
 */
export const defaultAdmissionLimits: AdmissionLimits = { engageMs: 200, targetMs: 60 }

/** Change of the share for one second above the target, and for one second that was added. */
const proportional = 1
const derivative = 4

/** In one step the share is at most halved, and grows by no more than a tenth. */
const fastestFall = 0.5
const fastestRise = 1.1

/** Somebody is always let in: otherwise nothing would tell that the overload is over. */
const smallestShare = 0.01

export class Admission {
  readonly #limits: AdmissionLimits
  #share = 1
  #isEngaged = false
  #smoothedMs = 0
  #lastMs = 0

  constructor(limits: AdmissionLimits = defaultAdmissionLimits) {
    this.#limits = limits
  }

  /** Whether anything is refused at present. */
  get isEngaged(): boolean {
    return this.#isEngaged
  }

  /** The part of new calls that is let in: 1 is all of them. */
  get share(): number {
    return this.#share
  }

  /** Takes the delay as it is now; to be called ten times a second. */
  adjust(delayMs: number): void {
    const grownMs = delayMs - this.#lastMs
    this.#lastMs = delayMs
    this.#smoothedMs += (delayMs - this.#smoothedMs) / 2
    const { engageMs, targetMs } = this.#limits
    if (!this.#isEngaged && this.#smoothedMs < engageMs) return
    this.#isEngaged = true
    const excess = (proportional * (delayMs - targetMs) + derivative * grownMs) / 1_000
    const factor = Math.min(Math.max(1 - excess, fastestFall), fastestRise)
    this.#share = Math.min(Math.max(this.#share * factor, smallestShare), 1)
    // The way back in is the whole way back up, so that a load at the edge does not flap.
    if (this.#share === 1 && this.#smoothedMs < targetMs) this.#isEngaged = false
  }

  /** @param draw from 0 up to 1; the same for every copy of one request */
  admits(draw: number): boolean {
    return !this.#isEngaged || draw < this.#share
  }
}
