/**
 * Dispatcher sets as the code sees them: records come from the store, a `DestinationSet` is the
 * snapshot from which calls are answered. A snapshot is replaced whole, never edited, so a call
 * that holds one sees a consistent set.
 */
import { type AlgorithmCode, type Entry, type Order, prepareOrder } from './algorithms.ts'
import type { OperatorState, ProbeThresholds } from './node-health.ts'
import { hostPort, parseUri, plainHost } from '../../schema/sip/index.ts'
import type { MediaRules } from '../../schema/contracts/field-values.ts'
import type { NodeState } from '../../schema/contracts/engine.ts'

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
  readonly transport: NodeTransport
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
  /** Probe settings of the set, in place of the defaults of the process. */
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
  /** The tenant of the set; null: the platform. */
  readonly tenantId: number | null
  /** `sip:<host>:<port>;transport=udp` */
  readonly uri: string
  readonly host: string
  readonly port: number
  readonly transport: NodeTransport
  /** `admitCall` is asked before each attempt (`max_calls`). */
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

/**
 * Host, port and transport of a node ⇄ `sip:<host>:<port>;transport=udp` (SPECIFICATION.md §2.6).
 */
export type NodeTransport = 'udp' | 'tcp' | 'tls'

export interface Destination {
  /** Lower case, IPv6 without brackets. */
  readonly host: string
  readonly port: number
  readonly transport: NodeTransport
}

const DEFAULT_PORT = 5_060
/** A host name has at most 253 characters; the rest is scheme, port and parameters. */
const MAX_LENGTH = 320

export function formatDestination({ host, port, transport }: Destination): string {
  return `sip:${hostPort(host, port)};transport=${transport}`
}

/**
 * Reads what an operator wrote. Any case, the port defaults to 5060, the transport to UDP
 * (SPECIFICATION.md §2.6). Undefined when it is not the SIP URI of a host: other scheme, a user
 * part, an unknown transport.
 */
export function parseDestination(text: string): Destination | undefined {
  if (text.length > MAX_LENGTH) return undefined
  const uri = parseUri(text.trim().replace(/^<(.*)>$/, '$1'))
  if (uri?.scheme !== 'sip' || uri.user !== '' || uri.headers.length > 0) return undefined
  const transport = parseTransport(uri.params.get('transport'))
  if (transport === undefined) return undefined
  return { host: plainHost(uri.host), port: uri.port || DEFAULT_PORT, transport }
}

/** Whether two destinations name the same node: any case, with or without the final dot. */
export function isSameDestination(one: Destination, other: Destination): boolean {
  return (
    one.port === other.port &&
    one.transport === other.transport &&
    plainHost(one.host) === plainHost(other.host)
  )
}

function parseTransport(value = 'udp'): NodeTransport | undefined {
  const name = value.toLowerCase()
  return name === 'udp' || name === 'tcp' || name === 'tls' ? name : undefined
}
