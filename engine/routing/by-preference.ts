/** Order among equals of a carrier or a route: lower priority number first, then drawn by weight. */
export interface Preference {
  readonly priority: number
  readonly weight: number
}

/**
 * Each next one of the same priority is drawn in proportion to its weight: the smallest of
 * exponential variables with those rates (Efraimidis and Spirakis, 2006).
 */
export function orderByPreference<Item extends Preference>(
  items: readonly Item[],
  random: () => number,
): Item[] {
  return items
    .map((item) => ({ item, arrival: -Math.log(1 - random()) / item.weight }))
    .toSorted(
      (one, other) => one.item.priority - other.item.priority || one.arrival - other.arrival,
    )
    .map(({ item }) => item)
}
