/** The body of a response that is read from a file, or from another node, as its reader takes it: no side can hold it open for ever. */
import type { Readable } from 'node:stream'
import type { Cancel, Schedule } from '../../schema/clock.ts'

/** A disk, or another node, may say nothing for so long while the reader waits. */
const SOURCE_MS = 10_000
/** A reader that takes nothing for so long is gone, or wants none of it. */
const READER_MS = 60_000
/** In all: a gigabyte at 70 kB a second. */
const WHOLE_MS = 4 * 3_600_000

interface Streaming {
  readonly schedule: Schedule
  /** Closes the connection of the reader: what it has read is less than the `Content-Length` says. */
  readonly cut: () => void
}

/** Beyond these times, and when the source fails, the response is cut. */
export const streamedBody = (source: Readable, how: Streaming): ReadableStream<Uint8Array> =>
  new ReadableStream<Uint8Array>(new BodySource(source, how), { highWaterMark: 0 })

class BodySource {
  readonly #source: Readable
  readonly #how: Streaming
  readonly #chunks: AsyncIterator<Uint8Array>
  readonly #cancelWhole: Cancel
  #cancelIdle: Cancel
  #isOver = false

  constructor(source: Readable, how: Streaming) {
    this.#source = source
    this.#how = how
    this.#chunks = source[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
    this.#cancelWhole = this.#cutAfter(WHOLE_MS)
    this.#cancelIdle = this.#cutAfter(READER_MS)
  }

  /** Called when the reader wants more. */
  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#cancelIdle()
    this.#cancelIdle = this.#cutAfter(SOURCE_MS)
    try {
      const next = await this.#chunks.next()
      if (this.#isOver) return undefined
      this.#cancelIdle()
      if (next.done !== true) {
        controller.enqueue(next.value)
        this.#cancelIdle = this.#cutAfter(READER_MS)
        return undefined
      }
      this.cancel()
      return controller.close()
    } catch {
      // The server would write an error into the body as a text.
      return this.#cut()
    }
  }

  /** The reader is gone, or all is read. */
  cancel(): void {
    this.#isOver = true
    this.#cancelWhole()
    this.#cancelIdle()
    this.#source.destroy()
  }

  #cutAfter(ms: number): Cancel {
    return this.#how.schedule(() => this.#cut(), ms)
  }

  #cut(): void {
    if (this.#isOver) return
    this.cancel()
    this.#how.cut()
  }
}
