/**
 * The clock of the database server, which all processes that share it have in common, as the steady
 * clock of this process continues it between two answers. The clock of a machine may differ from it
 * by minutes.
 */

/** The time of the server in one of its answers, between two steady times of this process. */
export interface ServerTime {
  readonly sentAt: number
  readonly answeredAt: number
  /** Milliseconds UTC, rounded down. */
  readonly serverAt: number
}

/** The clock of a machine may differ from that of the server by so much without a warning. */
export const CLOCK_TOLERANCE_MS = 2_000

export class ServerClock {
  readonly #steadyNow: () => number
  /** The milliseconds that are added to steady time. */
  #offsetMs: number

  constructor(steadyNow: () => number, first: ServerTime) {
    this.#steadyNow = steadyNow
    this.#offsetMs = first.serverAt - Math.floor((first.sentAt + first.answeredAt) / 2)
  }

  /** Milliseconds UTC. Follows no clock of the machine that is set. */
  readonly now = (): number => this.#steadyNow() + this.#offsetMs

  /**
   * Corrects the clock by as little as the answer demands. Returns for how long the steady clock
   * has stood still, or less: the machine was asleep. Negative: it was ahead.
   */
  note({ sentAt, answeredAt, serverAt }: ServerTime): number {
    const before = this.#offsetMs
    const [least, most] = [serverAt - answeredAt, serverAt + 1 - sentAt]
    this.#offsetMs = Math.min(Math.max(before, least), most)
    return this.#offsetMs - before
  }
}
