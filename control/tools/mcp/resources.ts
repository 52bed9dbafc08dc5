/** What a client may attach to a conversation: the answers of tools that need no arguments. */

export interface ToolResource {
  readonly uri: string
  readonly name: string
  readonly title: string
  readonly description: string
  /** Whose data it is; reading it demands the same scopes, and leaves the same audit entry. */
  readonly tool: string
}

export const resources: readonly ToolResource[] = [
  {
    uri: 'tollgate://dispatcher/sets',
    name: 'dispatcher-sets',
    title: 'Dispatcher sets',
    description: 'All nodes of all dispatcher sets, as they are now.',
    tool: 'get_dispatcher_status',
  },
  {
    uri: 'tollgate://calls/active',
    name: 'active-calls',
    title: 'Live calls',
    description: 'The calls that are going on now.',
    tool: 'list_active_calls',
  },
  {
    uri: 'tollgate://telemetry',
    name: 'telemetry',
    title: 'Telemetry',
    description: 'How the platform is doing now.',
    tool: 'get_telemetry',
  },
]
