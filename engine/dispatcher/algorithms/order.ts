/** What the algorithms share: the nodes that they order, and the order for one call. */

/** A node as an algorithm sees it. */
export interface Entry<Item> {
  readonly item: Item
  /** Stays the same while the node is the same: its destination. */
  readonly identity: string
  /** 1 to 100. */
  readonly weight: number
  /** Lower is preferred. */
  readonly priority: number
}

/** What distinguishes one call from the next. */
export interface Pick {
  /** Calls that the set has ordered before this one. */
  readonly turn: number
  readonly callId: string
  /** Uniform in [0, 1). */
  readonly random: () => number
}

/** Every node exactly once. The array may be shared between calls. */
export type Order<Item> = (pick: Pick) => readonly Item[]
