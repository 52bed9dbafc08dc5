/** What the API and the tools show of a set (SPECIFICATION.md §4.4 `get_dispatcher_status`). */
import type { NodeState, NodeStatus, SetStatus } from '../../schema/contracts/engine.ts'
import type { DestinationSet, Node } from './destination-set.ts'
import type { AlgorithmCode } from './algorithms/index.ts'
import type { ProbeReport } from './probed-targets.ts'

/** What the API is told, and more for operators and tests. */
export interface SetReport extends SetStatus {
  readonly name: string
  readonly tenantId: number | null
  readonly algorithm: AlgorithmCode
  readonly totalNodes: number
  readonly activeNodes: number
  readonly probingNodes: number
  readonly inactiveNodes: number
  readonly nodes: readonly NodeReport[]
}

interface NodeReport extends NodeStatus {
  /** 0: unlimited. */
  readonly maxCalls: number
  /** Consecutive failures and successes. */
  readonly failures: number
  readonly successes: number
}

export function describeSet(
  { record, nodes }: DestinationSet,
  reportOf: (nodeId: number) => ProbeReport | undefined,
  activeCalls: (nodeId: number) => number,
): SetReport {
  const count = (state: NodeState) => nodes.filter((node) => node.state === state).length
  return {
    setId: record.setId,
    name: record.name,
    tenantId: record.tenantId,
    algorithm: record.algorithm,
    totalNodes: nodes.length,
    activeNodes: count('active'),
    probingNodes: count('probing'),
    inactiveNodes: count('inactive'),
    nodes: nodes.map((node) =>
      describeNode(node, reportOf(node.record.nodeId), activeCalls(node.record.nodeId)),
    ),
  }
}

function describeNode(
  { record, destination, state }: Node,
  report: ProbeReport | undefined,
  activeCalls: number,
): NodeReport {
  const latencyMs = report?.latencyMs
  return {
    nodeId: record.nodeId,
    destination,
    state,
    priority: record.priority,
    weight: record.weight,
    latencyMs: latencyMs === undefined ? null : Math.round(latencyMs * 10) / 10,
    description: record.description,
    activeCalls,
    maxCalls: record.maxCalls,
    lastProbe: report?.lastProbe ?? null,
    failures: report?.failures ?? 0,
    successes: report?.successes ?? 0,
    probes: report?.probes ?? { sent: 0, answered: 0, failed: 0 },
  }
}
