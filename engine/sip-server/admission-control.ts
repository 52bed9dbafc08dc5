/**
 * The share of new calls that is let in: a control loop that holds the delay of waiting datagrams
 * near a target, instead of letting a queue grow in which every call grows too old (RFC 7339 §5 in
 * its loss-based form, but decided here and not by the sender). Pure: delays go in, a share comes
 * out.
 */

/**
 * A delay that stays beyond this is overload. After T1, 500 ms, every sender repeats its unanswered
 * requests, and repetitions make the server collapse; up to then a queue is only a burst.
 * Milliseconds.
 */
const engageMs = 400

/**
 * The delay that the control loop aims at while calls are refused. It leaves OPTIONS of ours, which
 * wait like all others, in time. Milliseconds.
 */
const targetMs = 200

/** Change of the share for one second above the target, and for one second that was added. */
const proportional = 0.5
const derivative = 2

/** Limits of one step. Alike: else a delay that merely jumps about would wear the share down. */
const fastestFall = 0.85
const fastestRise = 1.15

/**
 * The least of so many delays counts: a queue that stands is found in all of them. A pause (for the
 * collector, or because other processes want the machine) is not, and is not mended by refusing.
 */
const samples = 3

/** A loop that has time to spare is not the reason for a delay: refusing would not help. */
const busyFrom = 0.9

/** A few calls are always let in: otherwise nothing would show that the overload is over. */
const smallestShare = 0.01

export class AdmissionControl {
  readonly #delays: number[] = []
  readonly #utilizations: number[] = []
  #share = 1
  #isEngaged = false
  #queueMs = 0

  /** Whether anything is refused at present. */
  get isEngaged(): boolean {
    return this.#isEngaged
  }

  /** The part of new calls that is let in: 1 is all of them. */
  get share(): number {
    return this.#share
  }

  /**
   * Takes the delay as it is now; to be called ten times a second.
   * @param utilization the part of the time since the last call in which the loop had work to do
   */
  adjust(delayMs: number, utilization: number): void {
    keep(this.#delays, delayMs)
    keep(this.#utilizations, utilization)
    const before = this.#queueMs
    this.#queueMs = this.#delays.length < samples ? 0 : Math.min(...this.#delays)
    const isBusy = sum(this.#utilizations) >= busyFrom * samples
    if (!this.#isEngaged && (this.#queueMs < engageMs || !isBusy)) return
    this.#isEngaged = true
    const grownMs = this.#queueMs - before
    const excess = (proportional * (this.#queueMs - targetMs) + derivative * grownMs) / 1_000
    const factor = isBusy ? Math.min(Math.max(1 - excess, fastestFall), fastestRise) : fastestRise
    this.#share = Math.min(Math.max(this.#share * factor, smallestShare), 1)
    // The way back in is the whole way back up, so that a load at the edge does not flap.
    if (this.#share === 1 && (this.#queueMs < targetMs || !isBusy)) this.#isEngaged = false
  }

  /** @param draw from 0 up to 1; the same for every copy of one request */
  admits(draw: number): boolean {
    return !this.#isEngaged || draw < this.#share
  }
}

/** The latest `samples` values. */
function keep(values: number[], value: number): void {
  values.push(value)
  if (values.length > samples) values.shift()
}

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0)
