/**
 * Dispatcher sets, their nodes, and the status of what is probed. Times are milliseconds by the steady clock
 * inside the engine, and UTC through `EnginePort`.
 */

/** `active`: may be chosen. `probing`: failed, tried again. `inactive`: taken out by an operator. */
export type NodeState = 'active' | 'probing' | 'inactive'

/** What probes (OPTIONS) tell of a destination. */
export interface ProbedStatus {
  readonly state: NodeState
  /** Smoothed round trip of the probes, to a tenth of a millisecond; null before the first answer. */
  readonly latencyMs: number | null
  /** Status 0: no answer, `reason` says why. Null: not probed yet. */
  readonly lastProbe: {
    readonly at: number
    readonly status: number
    readonly reason: string
  } | null
  /** Probes that have ended; `failed` includes answers that count as failures. */
  readonly probes: { readonly sent: number; readonly answered: number; readonly failed: number }
}

export interface NodeStatus extends ProbedStatus {
  readonly nodeId: number
  /** `sip:<host>:<port>;transport=udp`. */
  readonly destination: string
  readonly priority: number
  readonly weight: number
  readonly description: string | null
  readonly activeCalls: number
}

export interface FoundNode extends NodeStatus {
  /** Without it, its set would have no node in service. */
  readonly isLastInService: boolean
}

export interface SetStatus {
  readonly setId: number
  readonly nodes: readonly NodeStatus[]
}

/** `last_active_node`: every other node of the set is `inactive`. */
export type SetStateResult = 'changed' | 'unknown_set' | 'unknown_destination' | 'last_active_node'

export interface DispatcherPort {
  /** All sets, or the one asked for (none when unknown). */
  status(setId?: number): readonly SetStatus[]
  /** The enabled node that this SIP URI names, however it is written. */
  find(setId: number, destination: string): FoundNode | undefined
  /**
   * Stores an operator's decision. Once it resolves, the next INVITE follows it.
   *
   * @param by the operator as in the audit log, for the history of the node.
   */
  setState(
    setId: number,
    destination: string,
    state: NodeState,
    by?: string,
  ): Promise<SetStateResult>
  /** DNS has no address for the node's name: probes alone do not bring it back. */
  isUnresolvable(nodeId: number): boolean
  /** Reads sets and nodes from the database again; live calls are not touched. Resolves when they apply. */
  reload(): Promise<void>
}
