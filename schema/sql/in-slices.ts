/** Reads of many rows in slices: calls go on between two of them. */
import { setImmediate as nextTurn } from 'node:timers/promises'

/** Rows of one statement. */
export const SLICE = 500

/** All rows of a table by ascending id. `read` returns at most `SLICE` of them after this id. */
export async function* slicesOf<Row extends { readonly id: number }>(
  read: (after: number) => Promise<readonly Row[]>,
): AsyncGenerator<readonly Row[]> {
  for (let after = 0; ; await nextTurn()) {
    const rows = await read(after)
    if (rows.length > 0) yield rows
    if (rows.length < SLICE) return
    after = rows.at(-1)?.id ?? after
  }
}

/** A list that is worked off in slices. */
export async function* inSlices<T>(items: readonly T[]): AsyncGenerator<readonly T[]> {
  for (let start = 0; start < items.length; start += SLICE) {
    if (start > 0) await nextTurn()
    yield items.slice(start, start + SLICE)
  }
}
