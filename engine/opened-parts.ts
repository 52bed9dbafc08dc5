import type { Log } from '../schema/contracts/log.ts'

type Close = () => void | Promise<void>

/** Parts that the start of a process has opened, closed in the reverse order. */
export class OpenedParts {
  readonly #log: Log
  readonly #closers: Close[] = []
  #isClean = true
  /** True: calls end with this process. False: those in the journal go on in the next one. */
  hasServed = false

  constructor(log: Log) {
    this.#log = log
  }

  closeBy(...closers: readonly Close[]): void {
    this.#closers.push(...closers)
  }

  /** Something could not be written. */
  noteLoss(): void {
    this.#isClean = false
  }

  /** False: something could not be written; the log has it. */
  async closeAll(): Promise<boolean> {
    for (const close of this.#closers.splice(0).toReversed())
      try {
        await close()
      } catch (error) {
        this.#isClean = false
        this.#log('error', 'pending records could not be written', { error })
      }
    return this.#isClean
  }
}
