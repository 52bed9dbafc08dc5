/** Which keys of rows are chosen. */

export type RowKey = string | number

/** The most that are chosen at once: what is done with each is a request of its own. */
export const MAX_CHOSEN = 1_000

/** All from one to the other, in either direction; only the other where the first is gone. */
export function between(
  shown: readonly RowKey[],
  first: RowKey | undefined,
  last: RowKey,
): readonly RowKey[] {
  const [from, to] = [first === undefined ? -1 : shown.indexOf(first), shown.indexOf(last)]
  if (from === -1 || to === -1) return [last]
  return shown.slice(Math.min(from, to), Math.max(from, to) + 1)
}

export function turnedTo(
  keys: ReadonlySet<RowKey>,
  turned: readonly RowKey[],
  isOn: boolean,
): ReadonlySet<RowKey> {
  const chosen = new Set(keys)
  for (const key of turned)
    if (isOn) chosen.add(key)
    else chosen.delete(key)
  return chosen
}
