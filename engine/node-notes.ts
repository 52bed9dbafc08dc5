import type { Log } from '../schema/contracts/log.ts'
import type { Dispatcher, NodeChange } from './dispatcher/dispatcher.ts'
import type { EventLog } from './event-log.ts'
import type { NodeState } from '../schema/contracts/engine.ts'

/** Log line, event and figures when a node is out, and when it is back. */
export class NodeNotes {
  readonly #events: EventLog
  readonly #log: Log
  readonly #changes = { down: 0, up: 0 }

  constructor(events: EventLog, log: Log) {
    this.#events = events
    this.#log = log
  }

  note(change: NodeChange, dispatcher: Dispatcher): void {
    const { setId, destination, to: state } = change
    const isActive = state === 'active'
    this.#changes[isActive ? 'up' : 'down'] += 1
    const tenantId = dispatcher.setRecord(setId)?.tenantId ?? null
    const type = isActive ? 'node.up' : 'node.down'
    this.#events.add({ type, tenantId, setId, destination, state })
    this.#log(isActive ? 'info' : 'warn', `node is ${state}`, { ...change })
  }

  telemetry(dispatcher: Dispatcher) {
    const nodes = dispatcher.status().flatMap((set) => set.nodes)
    const inState = (state: NodeState) => nodes.filter((node) => node.state === state).length
    return {
      nodes_active: inState('active'),
      nodes_probing: inState('probing'),
      nodes_inactive: inState('inactive'),
      node_down_total: this.#changes.down,
      node_up_total: this.#changes.up,
    }
  }
}
