/**
 * Ends of calls that wait until it is known what the call may cost. Meanwhile the journal has the
 * call as it was before its end: after a crash it goes on, and no party has got a BYE.
 */
export class WaitingEnds {
  /** The waits for each call; each call decides on the money that is there at its turn. */
  readonly #waits = new Map<() => void, Promise<void>>()

  /** Settles the call when `wait` calls the function that it is given. */
  add<T>(wait: (decide: () => void) => Promise<void>, settle: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const decide = (): void => {
        if (this.#waits.delete(decide)) settle().then(resolve, reject)
      }
      this.#waits.set(decide, wait(decide))
    })
  }

  get size(): number {
    return this.#waits.size
  }

  /** Resolves when no call waits. */
  async finish(): Promise<void> {
    await Promise.all(this.#waits.values())
  }
}
