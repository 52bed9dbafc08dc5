/** Resources that a client may attach to a conversation: the results of tools without arguments. */
import type { ToolData } from '../tool.ts'

export interface ToolResource {
  readonly uri: string
  readonly name: string
  readonly title: string
  readonly description: string
  /** The tool whose data it is; reading it requires the same scopes and writes the same audit entry. */
  readonly tool: string
  /** What of the data a subscriber is told of when it changes; undefined: it cannot be subscribed to. */
  readonly watched?: (data: ToolData) => unknown
}

const nodeStates = ({ nodes }: ToolData): unknown =>
  Array.isArray(nodes)
    ? nodes.map((node: Readonly<Record<string, unknown>>) => [
        node['setId'],
        node['destination'],
        node['state'],
      ])
    : nodes

export const resources: readonly ToolResource[] = [
  {
    uri: 'tollgate://nodes',
    name: 'nodes',
    title: 'Nodes',
    description:
      'The nodes of all dispatcher sets. Can be subscribed to: says when the state of one changes.',
    tool: 'get_dispatcher_status',
    watched: nodeStates,
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

export const watchedResources: readonly ToolResource[] = resources.filter(
  ({ watched }) => watched !== undefined,
)
