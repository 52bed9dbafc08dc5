/** Dispatcher sets as the API shows them: their body, ids, and what the engine needs. */
import type { Selectable } from 'kysely'
import { fromFlag, timeToText } from '../../../schema/columns.ts'
import type { DispatcherNodeTable, DispatcherSetTable } from '../../../schema/database.ts'
import type { NodeStatus, SetStatus } from '../../../schema/contracts/dispatcher.ts'
import { mediaViewOf, type MediaView } from '../media-fields.ts'
import { notFound } from '../../http/api-error.ts'
import type { DispatcherBody, NodeBody } from './dispatcher-body.ts'
import { nodeUri } from '../gateway-reach.ts'
import { probedStatusView, type ProbedStatusView } from '../probed-status.ts'

export type NodeRow = Selectable<DispatcherNodeTable>
export type SetRow = Selectable<DispatcherSetTable> & { readonly slug: string | null }

export interface NodeView extends Required<NodeBody> {
  readonly id: number
  /** `sip:<host>:<port>;transport=udp` */
  readonly destination: string
  /** The state that an operator set. */
  readonly operator_state: 'active' | 'inactive'
  /** The state in the engine; null when the node is disabled. */
  readonly status?: NodeStatusView | null
}

interface NodeStatusView extends ProbedStatusView {
  /** A drained node can be stopped when this is 0. */
  readonly active_calls: number
}

export interface DispatcherView extends MediaView {
  readonly id: number
  readonly set_id: number
  readonly endpoint_name: string
  readonly algorithm: number
  readonly tenant: string | null
  readonly probe: NonNullable<DispatcherBody['probe']> | null
  readonly voicemail_uri: string | null
  readonly spy_uri: string | null
  readonly nodes: readonly NodeView[]
  readonly created_at: string
  readonly updated_at: string
}

/** Throws 404. */
export function nodeIn({ nodes }: DispatcherView, nodeId: number): NodeView {
  const found = nodes.find((node) => node.id === nodeId)
  if (found === undefined) throw notFound('Node')
  return found
}

/** A node as its request body. */
export function nodeDocument(node: NodeView): NodeBody {
  const {
    id: _id,
    destination: _destination,
    operator_state: _word,
    status: _status,
    ...body
  } = node
  return body
}

/** The set with the engine's state of each node. */
export function withStatus(set: DispatcherView, [seen]: readonly SetStatus[]): DispatcherView {
  const byNode = new Map(seen?.nodes.map((status) => [status.nodeId, status]))
  const nodes = set.nodes.map((node) => {
    const status = byNode.get(node.id)
    return { ...node, status: status === undefined ? null : statusView(status) }
  })
  return { ...set, nodes }
}

/** With the calls that `more` knows of each node, by id. */
export const withMoreCalls = (
  set: DispatcherView,
  more: (id: number) => number,
): DispatcherView => ({
  ...set,
  nodes: set.nodes.map((node) => {
    const { status } = node
    if (status === undefined || status === null) return node
    return { ...node, status: { ...status, active_calls: status.active_calls + more(node.id) } }
  }),
})

const statusView = (status: NodeStatus): NodeStatusView => ({
  ...probedStatusView(status),
  active_calls: status.activeCalls,
})

export function viewOf(row: SetRow, nodes: readonly NodeRow[]): DispatcherView {
  return {
    id: row.id,
    set_id: row.set_id,
    endpoint_name: row.endpoint_name,
    algorithm: row.algorithm,
    tenant: row.slug,
    probe: probeOf(row),
    voicemail_uri: row.voicemail_uri,
    spy_uri: row.spy_uri,
    ...mediaViewOf(row),
    nodes: nodes.map(nodeViewOf),
    created_at: timeToText(row.created_at),
    updated_at: timeToText(row.updated_at),
  }
}

function nodeViewOf({ dispatcher_set_id: _set, is_by_tenant: _writer, ...row }: NodeRow): NodeView {
  return {
    ...row,
    is_enabled: fromFlag(row.is_enabled),
    destination: nodeUri(row),
  }
}

function probeOf(row: SetRow): DispatcherView['probe'] {
  const probe = {
    ...(row.probe_interval_ms === null ? {} : { interval_ms: row.probe_interval_ms }),
    ...(row.probe_timeout_ms === null ? {} : { timeout_ms: row.probe_timeout_ms }),
    ...(row.probe_fail_threshold === null ? {} : { fail_threshold: row.probe_fail_threshold }),
    ...(row.probe_recover_threshold === null
      ? {}
      : { recover_threshold: row.probe_recover_threshold }),
    ...(row.probe_ok_codes === null
      ? {}
      : { ok_codes: JSON.parse(row.probe_ok_codes) as string[] }),
  }
  return Object.keys(probe).length === 0 ? null : probe
}
