/** What the API and the tools show of a set (specification §4.4 `get_dispatcher_status`). */
import type { DestinationSet, Node } from './destination-set.ts'
import type { AlgorithmCode } from './algorithms/index.ts'
import type { HealthReport } from './health-monitor.ts'
import type { NodeState } from './node-health.ts'

interface NodeStatus {
  readonly nodeId: number
  readonly destination: string
  readonly state: NodeState
  readonly priority: number
  readonly weight: number
  /** Smoothed round trip of the probes, to a tenth of a millisecond; null until one was answered. */
  readonly latencyMs: number | null
  readonly description: string | null
  readonly activeCalls: number
  /** 0: unlimited. */
  readonly maxCalls: number
  /** Status 0: no answer. Null: not probed yet. */
  readonly lastProbe: {
    readonly at: number
    readonly status: number
    readonly reason: string
  } | null
  /** Consecutive failures and successes. */
  readonly failures: number
  readonly successes: number
  /** Since the node is watched; `sent` counts probes that have ended, repeats not included. */
  readonly probes: { readonly sent: number; readonly answered: number; readonly failed: number }
}

export interface SetStatus {
  readonly setId: number
  readonly name: string
  readonly tenantId: number | null
  readonly algorithm: AlgorithmCode
  readonly totalNodes: number
  readonly activeNodes: number
  readonly probingNodes: number
  readonly inactiveNodes: number
  readonly nodes: readonly NodeStatus[]
}

export function describeSet(
  { record, nodes }: DestinationSet,
  reportOf: (nodeId: number) => HealthReport | undefined,
  activeCalls: (nodeId: number) => number,
): SetStatus {
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
  report: HealthReport | undefined,
  activeCalls: number,
): NodeStatus {
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
