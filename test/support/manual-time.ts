import { Rounds } from '../../schema/rounds.ts'

/** Time that moves only when a test moves it. */
export class ManualTime {
  #now: number
  #offsetMs = 0
  #timers: { readonly at: number; readonly work: () => void }[] = []

  constructor(now: number) {
    this.#now = now
  }

  readonly now = (): number => this.#now
  /** As a machine's clock shows it. */
  readonly wallNow = (): number => this.#now + this.#offsetMs

  /** Sets the machine's clock; no time passes. */
  jump(ms: number): void {
    this.#offsetMs += ms
  }

  readonly schedule = (work: () => void, delayMs: number): (() => void) => {
    const timer = { at: this.#now + delayMs, work }
    this.#timers.push(timer)
    return () => {
      this.#timers = this.#timers.filter((other) => other !== timer)
    }
  }

  /** As the parts of one process share it. */
  readonly every = new Rounds({
    steadyNow: () => this.#now,
    schedule: (work, delayMs) => this.schedule(work, delayMs),
  }).every

  /** Runs what falls due on the way, earliest first. */
  advance(ms: number): void {
    const target = this.#now + ms
    for (;;) {
      const due = this.#timers
        .filter(({ at }) => at <= target)
        .toSorted((a, b) => a.at - b.at)
        .at(0)
      if (due === undefined) break
      this.#timers = this.#timers.filter((other) => other !== due)
      this.#now = Math.max(this.#now, due.at)
      due.work()
    }
    this.#now = target
  }

  /** Time passes while the process does nothing; then all that is due runs, late. */
  stall(ms: number): void {
    this.#now += ms
    this.advance(0)
  }

  get waiting(): number {
    return this.#timers.length
  }

  /** When the next work falls due. */
  get next(): number | undefined {
    const first = Math.min(...this.#timers.map(({ at }) => at))
    return first === Infinity ? undefined : Math.max(first, this.#now)
  }
}
