/**
 * Dispatcher sets as the code sees them: records come from the store, a `DestinationSet` is the
 * snapshot from which calls are answered. A snapshot is replaced whole, never edited, so a call
 * that holds one sees a consistent set.
 */
import { type AlgorithmCode, prepareOrder } from './algorithms/index.ts'
import type { Entry, Order } from './algorithms/order.ts'
import type { Transport } from './destination.ts'
import { formatDestination } from './destination.ts'
import type { MediaRules } from '../../schema/contracts/field-values.ts'
import type { NodeState } from '../../schema/contracts/engine.ts'
import type { OperatorState, ProbeThresholds } from './node-health.ts'

/** Inclusive range of SIP status numbers. */
export interface StatusRange {
  readonly from: number
  readonly to: number
}

/** How the nodes of a set are probed; times in milliseconds. */
export interface ProbeSettings extends ProbeThresholds {
  readonly intervalMs: number
  /** Without an answer in this time a probe has failed; never longer than the interval. */
  readonly timeoutMs: number
  /** Statuses of an OPTIONS answer that mean "up". */
  readonly okCodes: readonly StatusRange[]
}

export interface NodeRecord {
  readonly nodeId: number
  readonly host: string
  /** The internal port: where calls and probes go. */
  readonly port: number
  /** A second port from which the node may call. */
  readonly externalPort: number
  readonly transport: Transport
  /** 1 to 100. */
  readonly weight: number
  /** 1 to 100; lower is preferred (SPECIFICATION.md §2.6). */
  readonly priority: number
  readonly description: string | null
  /** 0: unlimited. */
  readonly maxCalls: number
  readonly operatorState: OperatorState
  /** A tenant has written where it is. */
  readonly isByTenant?: boolean | undefined
}

export interface SetRecord {
  readonly setId: number
  readonly name: string
  readonly tenantId: number | null
  readonly algorithm: AlgorithmCode
  /** What the set overrides of the process's probe defaults. */
  readonly probe: Partial<ProbeSettings>
  readonly voicemailUri: string | null
  readonly spyUri: string | null
  /** A tenant has written one of these URIs. */
  readonly isByTenant?: boolean | undefined
  readonly media?: MediaRules | undefined
  readonly nodes: readonly NodeRecord[]
}

/** One destination offered to one call. */
export interface Candidate {
  readonly kind: 'node'
  readonly nodeId: number
  readonly setId: number
  /** Whose set it is; null: the platform's. */
  readonly tenantId: number | null
  /** `sip:<host>:<port>;transport=udp` */
  readonly uri: string
  readonly host: string
  readonly port: number
  readonly transport: Transport
  /** It is asked before it is tried (`max_calls`). */
  readonly isLimited?: true
}

export interface Node {
  readonly record: NodeRecord
  readonly destination: string
  readonly state: NodeState
  readonly candidate: Candidate
}

export interface DestinationSet {
  readonly record: SetRecord
  /** Every enabled node, in the order of the record. */
  readonly nodes: readonly Node[]
  /** Orders the active nodes for one call. */
  readonly order: Order<Node>
}

export function buildSet(
  record: SetRecord,
  stateOf: (nodeId: number) => NodeState,
): DestinationSet {
  const nodes = record.nodes.map((node) => buildNode(record, node, stateOf(node.nodeId)))
  const active = nodes.filter((node) => node.state === 'active')
  return {
    record,
    nodes,
    order: prepareOrder(record.algorithm, active.map(entryOf)),
  }
}

/** A node as the algorithms see it. */
export function entryOf(node: Node): Entry<Node> {
  const { weight, priority } = node.record
  return { item: node, identity: node.destination, weight, priority }
}

function buildNode({ setId, tenantId }: SetRecord, record: NodeRecord, state: NodeState): Node {
  const { nodeId, host, port, transport } = record
  const destination = formatDestination(record)
  const at = { nodeId, setId, tenantId, uri: destination, host, port, transport }
  const candidate: Candidate = { kind: 'node', ...at }
  const limited: Candidate = { ...candidate, isLimited: true }
  return { record, destination, state, candidate: record.maxCalls > 0 ? limited : candidate }
}
