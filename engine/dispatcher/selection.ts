/** Which nodes of a set the next call may be sent to, for people who ask before they call. Pure. */
import { firstShares } from './algorithms/shares.ts'
import { entryOf, type DestinationSet, type Node } from './destination-set.ts'

/** A node that takes no calls now, and why. */
export type NodeRefusal = 'drained' | 'out_of_service' | 'node_limit'

export interface SelectedNode {
  readonly nodeId: number
  readonly destination: string
  readonly weight: number
  readonly priority: number
  /** Null: it takes calls. */
  readonly why: NodeRefusal | null
  /** Of many calls, the part that is sent to this node first; 0 to 1. */
  readonly share: number
}

export function selectionOf(
  { record, nodes }: DestinationSet,
  isFull: (node: Node) => boolean,
): readonly SelectedNode[] {
  const judged = nodes.map((node) => ({ node, why: refusalOf(node, isFull) }))
  const takers = judged.flatMap(({ node, why }) => (why === null ? [node] : []))
  const shares = firstShares(record.algorithm, takers.map(entryOf))
  return judged.map(({ node, why }) => {
    const { nodeId, weight, priority } = node.record
    const share = shares.get(node) ?? 0
    return { nodeId, destination: node.destination, weight, priority, why, share }
  })
}

function refusalOf(node: Node, isFull: (node: Node) => boolean): NodeRefusal | null {
  switch (node.state) {
    case 'inactive':
      return 'drained'
    case 'probing':
      return 'out_of_service'
    case 'active':
    default:
      return isFull(node) ? 'node_limit' : null
  }
}
