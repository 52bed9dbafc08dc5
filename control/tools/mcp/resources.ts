/** Resources that a client may attach to a conversation: the results of tools without arguments. */

export interface ToolResource {
  readonly uri: string
  readonly name: string
  readonly title: string
  readonly description: string
  /** The tool whose data it is; reading it requires the same scopes and writes the same audit entry. */
  readonly tool: string
}

export const resources: readonly ToolResource[] = [
  {
    uri: 'tollgate://dispatcher/sets',
    name: 'dispatcher-sets',
    title: 'Dispatcher sets',
    description: 'The current state of all nodes of all dispatcher sets.',
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
