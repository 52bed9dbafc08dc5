/** May this node take that state? The last-node rule of SPECIFICATION.md §3.2. */
import type { NodeState } from '../../schema/contracts/engine.ts'

export interface NodeInSet {
  readonly nodeId: number
  readonly state: NodeState
  /** DNS does not know its name: it will not come back by itself. */
  readonly isUnresolvable?: boolean
}

/**
 * Whether taking this node out (maintenance, removal) would leave no node in service. A `probing`
 * node is in service: it comes back by itself, unless DNS does not know its name. A node in maintenance can
 * never be the last one.
 */
export function isLastInService(nodes: readonly NodeInSet[], nodeId: number): boolean {
  const inService = nodes.filter(({ state, isUnresolvable }) => {
    return state === 'active' || (state === 'probing' && isUnresolvable !== true)
  })
  return inService.length === 1 && inService[0]?.nodeId === nodeId
}

/** Only maintenance can be refused; `active` and `probing` are always allowed. */
export function maySetState(
  nodes: readonly NodeInSet[],
  nodeId: number,
  state: NodeState,
): boolean {
  return state !== 'inactive' || !isLastInService(nodes, nodeId)
}
