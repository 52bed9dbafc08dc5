/** Lists of live calls of several nodes as one: oldest first, as each of them is. */
import { setImmediate as nextTurn } from 'node:timers/promises'

/** Between the rows of a list. JSON texts have no line breaks inside, so a list is split without parsing it. */
export const ROW_SEPARATOR = ',\n'
/** Rows between two turns of the event loop: about 5 ms. SIP shares the thread. */
const SLICE = 2_000

/** Undefined: it is no list of rows. */
export function rowsIn(list: string): readonly string[] | undefined {
  if (!list.startsWith('[') || !list.endsWith(']')) return undefined
  return list === '[]' ? [] : list.slice(1, -1).split(ROW_SEPARATOR)
}

/** `lists`: rows as JSON texts, each list in the order of `start_stamp`. */
export async function mergedRows(lists: readonly (readonly string[])[]): Promise<string> {
  const heads = lists
    .map((rows) => ({ rows, at: 0, start: startOf(rows[0]) }))
    .filter(({ rows }) => rows.length > 0)
  const merged: string[] = []
  while (heads.length > 0) {
    let first = heads[0]
    for (const head of heads) if (first === undefined || head.start < first.start) first = head
    if (first === undefined) break
    merged.push(first.rows[first.at] ?? '')
    first.at += 1
    if (first.at === first.rows.length) heads.splice(heads.indexOf(first), 1)
    else first.start = startOf(first.rows[first.at])
    if (merged.length % SLICE === 0) await nextTurn()
  }
  return `[${merged.join(ROW_SEPARATOR)}]`
}

/** In a text of JSON, the name of a field stands between quotes that no string inside can have. */
const startOf = (row: string | undefined): string =>
  /"start_stamp":"([^"]*)"/.exec(row ?? '')?.[1] ?? ''
