/** Waiting for what happens on real sockets, without sleeping. */
import { once, type EventEmitter } from 'node:events'

/**
 * A test that waits longer than this waits for something that does not come. Long, because a busy
 * machine may stand still for seconds: only tests that fail wait so long. Milliseconds.
 */
export const patienceMs = 20_000

/**
 * Settings of the program for a test that is not about silence: a node, a gateway or a relay that
 * stands still with the machine for seconds is waited for.
 */
export const patientInstances = { NODE_TIMEOUT_MS: '20000', PROBE_FAILURES: '100' } as const

/**
 * Settings for a test in which a node falls silent: it is given up, and another one that stands
 * still for a moment is not.
 */
export const watchedNodes = { NODE_TIMEOUT_MS: '5000', PROBE_FAILURES: '9' } as const

/**
 * The result of `check`, as soon as it throws no more; asked ever less often, and once more when
 * the time is over.
 */
export async function eventually<T>(
  check: () => T | Promise<T>,
  withinMs = patienceMs,
): Promise<T> {
  const start = performance.now()
  for (;;) {
    const waitedMs = performance.now() - start
    const isLast = waitedMs > withinMs
    try {
      return await check()
    } catch (error) {
      if (isLast) throw error
    }
    await new Promise((resolve) => setTimeout(resolve, Math.min(10 + waitedMs / 10, 50)))
  }
}

/**
 * Runs what has to take place within a time: the machine may stand still at one attempt, so only
 * one of them has to keep to it. Each gets its number, from 1 on.
 */
export async function inOneOf(
  attempts: number,
  attempt: (number: number) => Promise<void>,
): Promise<void> {
  for (let number = 1; ; number += 1)
    try {
      return await attempt(number)
    } catch (error) {
      if (number >= attempts) throw error
    }
}

/** Everything that is due has been called once. */
export const turnOfEventLoop = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** The arguments of the next event of this name. */
export const emitted = (emitter: EventEmitter, name: string): Promise<readonly unknown[]> =>
  once(emitter, name)

/**
 * Resolves when a socket has closed; that the other side reset it while something was written is
 * one way to close.
 */
export const closed = (socket: EventEmitter): Promise<void> =>
  new Promise((resolve) => {
    socket.on('error', () => undefined)
    socket.once('close', () => resolve())
  })

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
