/**
 * A long report as the thread of the calls hands it on: a little in each turn of the event loop,
 * with rests while the loop is late, because calls wait for it then.
 */

/** The event loop, and its time. */
export interface LoopTime {
  /** Milliseconds of a clock that never jumps. */
  readonly now: () => number
  /** Resolves in the next turn. */
  readonly turn: () => Promise<unknown>
  readonly pause: (ms: number) => Promise<unknown>
}

/** Bytes of one turn: a write of them takes less than a tenth of a millisecond. */
export const BYTES_OF_TURN = 65_536
/** A rest is so many times as long as the turn before it. */
const RESTS = 10
/** The reader gets a megabyte a second, however busy the loop is. */
const LONGEST_REST_MS = 50

/** The same bytes. A report of one turn is passed on at once. */
export async function* pacedPieces(
  pieces: AsyncIterable<Uint8Array>,
  { now, turn, pause }: LoopTime,
): AsyncGenerator<Uint8Array, void> {
  let passed = 0
  for await (const piece of pieces)
    for (let from = 0; from < piece.length; from += BYTES_OF_TURN) {
      const part = piece.subarray(from, from + BYTES_OF_TURN)
      if (passed + part.length > BYTES_OF_TURN) {
        passed = 0
        const begin = now()
        await turn()
        const lateMs = now() - begin
        if (lateMs > 0) await pause(Math.min(LONGEST_REST_MS, RESTS * lateMs))
      }
      passed += part.length
      yield part
    }
}
