/** Resources that a client may attach to a conversation: the results of tools without arguments. */
import { INVALID_PARAMS, ProtocolError, ResourceNotFoundError } from '@modelcontextprotocol/server'
import type { ToolData } from '../catalog/tool.ts'

export interface ToolResource {
  readonly uri: string
  readonly name: string
  readonly title: string
  readonly description: string
  /**
   * The tool whose data it is; reading it requires the same scopes and writes the same audit entry.
   */
  readonly tool: string
  /**
   * The part of the data whose changes are notified; undefined: the resource cannot be subscribed
   * to.
   */
  readonly watched?: (data: ToolData) => unknown
  /** The poll interval for subscribers. */
  readonly everyMs?: number
}

/** These fields of each row. */
const fieldsOf =
  (list: string, ...fields: readonly string[]) =>
  ({ [list]: rows }: ToolData): unknown =>
    Array.isArray(rows)
      ? rows.map((row: Readonly<Record<string, unknown>>) => fields.map((field) => row[field]))
      : rows

/** The tool reads the calls of fifteen days. */
const ANOMALIES_MS = 60_000

export const resources: readonly ToolResource[] = [
  {
    uri: 'tollgate://anomalies',
    name: 'anomalies',
    title: 'Anomalies',
    description:
      'What is unusual in the last day. Can be subscribed to: is looked at every minute.',
    tool: 'find_anomalies',
    watched: fieldsOf('findings', 'kind', 'subject', 'severity'),
    everyMs: ANOMALIES_MS,
  },
  {
    uri: 'tollgate://proposals',
    name: 'proposals',
    title: 'Proposals',
    description:
      'Proposed changes, and what people decided. Can be subscribed to: says when one is ' +
      'made or decided.',
    tool: 'list_proposals',
    watched: fieldsOf('proposals', 'proposal_id', 'state'),
  },
  {
    uri: 'tollgate://nodes',
    name: 'nodes',
    title: 'Nodes',
    description:
      'The nodes of all dispatcher sets. Can be subscribed to: says when the state of one changes.',
    tool: 'get_dispatcher_status',
    watched: fieldsOf('nodes', 'setId', 'destination', 'state'),
  },
  {
    uri: 'tollgate://dispatcher/sets',
    name: 'dispatcher-sets',
    title: 'Dispatcher sets',
    description: 'The same as tollgate://nodes.',
    tool: 'get_dispatcher_status',
  },
  {
    uri: 'tollgate://calls/active',
    name: 'active-calls',
    title: 'Live calls',
    description: 'The current calls.',
    tool: 'list_active_calls',
  },
  {
    uri: 'tollgate://telemetry',
    name: 'telemetry',
    title: 'Telemetry',
    description: 'The current health of the platform.',
    tool: 'get_telemetry',
  },
]

/** @throws {ProtocolError} there is none, or it cannot be subscribed to. */
export function watchedResource(uri: string): ToolResource {
  const found = resources.find((each) => each.uri === uri)
  if (found === undefined) throw new ResourceNotFoundError(uri)
  if (found.watched !== undefined) return found
  const others = watchedResources.map((each) => each.uri).join(', ')
  throw new ProtocolError(INVALID_PARAMS, `${uri} cannot be subscribed to; these can: ${others}`)
}

export const watchedResources: readonly ToolResource[] = resources.filter(
  ({ watched }) => watched !== undefined,
)
