/** Waiting for what happens on real sockets, without sleeping. */
import { once, type EventEmitter } from 'node:events'

/** The arguments of the next event of this name. */
export const emitted = (emitter: EventEmitter, name: string): Promise<readonly unknown[]> =>
  once(emitter, name)

/** Something that happens again and again, and that others wait for. */
export class Signal {
  readonly #waiting: (() => void)[] = []

  fire(): void {
    for (const wake of this.#waiting.splice(0)) wake()
  }

  /** Resolves the next time that it fires. */
  next(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  /** Resolves when the condition holds; it is asked now and each time that the signal fires. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await this.next()
  }
}
