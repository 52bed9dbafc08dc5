/**
 * Under which names the processes of one node lease. During a planned upgrade there are two processes, and each spends
 * what it has leased itself; when the old one has ended, the new one takes over what that has left.
 */

export interface LeaseNames {
  readonly own: string
  /** Of the other process, if there is one. */
  readonly other: string
}

/** No node name has a `/`. */
export const bothNames = (node: string): readonly [string, string] => [node, `${node}/2`]

/** @param beside what the other process leases under; undefined: this one serves alone. */
export function leaseNames(node: string, beside?: string): LeaseNames {
  const [first, second] = bothNames(node)
  return beside === first ? { own: second, other: first } : { own: first, other: second }
}
