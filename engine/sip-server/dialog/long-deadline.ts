/**
 * A deadline minutes or hours away, with a delay that peers choose. `Deadlines` keeps a chain for each
 * delay, so this one goes there in steps of few different lengths, whatever the delay.
 */
import type { Deadline, Deadlines, Timed } from '../transaction/deadlines.ts'

/** How much too early it may come. */
const QUANTUM_MS = 250

export class LongDeadline implements Timed<'step'> {
  readonly #deadlines: Deadlines
  readonly #onDue: (now: number) => void
  #at = 0
  #step: Deadline<'step'> | undefined

  constructor(deadlines: Deadlines, onDue: (now: number) => void) {
    this.#deadlines = deadlines
    this.#onDue = onDue
  }

  /** Takes the place of what was set before. */
  set(at: number, now: number): void {
    this.cancel()
    this.#at = at
    this.#advance(now)
  }

  cancel(): void {
    this.#step?.cancel()
    this.#step = undefined
  }

  onTimer(_timer: 'step', now: number): void {
    this.#step = undefined
    if (this.#at - now < QUANTUM_MS) return this.#onDue(now)
    this.#advance(now)
  }

  /** The longest step that does not go too far: 250 ms, 1 s, 4 s, 16 s … */
  #advance(now: number): void {
    const leftMs = this.#at - now
    let stepMs = QUANTUM_MS
    while (stepMs * 4 <= leftMs) stepMs *= 4
    const delayMs = leftMs < QUANTUM_MS ? 0 : stepMs
    this.#step = this.#deadlines.start(this, 'step', delayMs, now)
  }
}
