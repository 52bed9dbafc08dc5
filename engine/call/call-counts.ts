/** How many live calls each node, carrier and agent has. */
import type { CallLocation, LiveCall } from './call-machine/state.ts'

/** Uuids of calls: a `Set` of calls would keep ended ones for a while (`ReleasingMap`). */
type Index = Map<number, Set<string>>

export class CallCounts {
  readonly #nodes: Index = new Map()
  readonly #carriers: Index = new Map()
  readonly #agents: Index = new Map()
  /** Calls that count where they came from, by uuid: they have not been tried anywhere yet. */
  readonly #arrived = new Map<string, number>()

  byNode(nodeId: number): number {
    return this.#nodes.get(nodeId)?.size ?? 0
  }

  byCarrier(carrierId: number): number {
    return this.#carriers.get(carrierId)?.size ?? 0
  }

  byAgent(agentId: number): number {
    return this.#agents.get(agentId)?.size ?? 0
  }

  /**
   * The carrier that the call comes from has admitted it: it counts there at once, although it is
   * not tried anywhere yet.
   */
  arrived(call: LiveCall, carrierId: number): void {
    this.#arrived.set(call.start.callUuid, carrierId)
    addTo(this.#carriers, carrierId, call)
  }

  move(call: LiveCall, from: CallLocation, to: CallLocation): void {
    this.leave(call, from)
    addTo(this.#nodes, to.nodeId, call)
    addTo(this.#carriers, to.carrierId, call)
    addTo(this.#agents, to.agentId, call)
  }

  leave(call: LiveCall, { nodeId, carrierId, agentId }: CallLocation): void {
    removeFrom(this.#nodes, nodeId, call)
    removeFrom(this.#carriers, carrierId, call)
    removeFrom(this.#agents, agentId, call)
    const { callUuid } = call.start
    const arrivedFrom = this.#arrived.get(callUuid)
    if (arrivedFrom === undefined) return
    this.#arrived.delete(callUuid)
    removeFrom(this.#carriers, arrivedFrom, call)
  }

  /**
   * A callee that a transfer has taken out of the call does not count any more where the call went.
   */
  calleeLeft(call: LiveCall): void {
    const { nodeId, carrierId, agentId } = call.place
    removeFrom(this.#nodes, nodeId, call)
    removeFrom(this.#agents, agentId, call)
    // The carrier of an inbound call is the caller's, which is still in the call.
    if (call.direction === 'outbound') removeFrom(this.#carriers, carrierId, call)
  }
}

function addTo(index: Index, key: number | null, { start }: LiveCall): void {
  if (key === null) return
  const calls = index.get(key)
  if (calls) calls.add(start.callUuid)
  else index.set(key, new Set([start.callUuid]))
}

function removeFrom(index: Index, key: number | null, { start }: LiveCall): void {
  if (key === null) return
  const calls = index.get(key)
  calls?.delete(start.callUuid)
  if (calls?.size === 0) index.delete(key)
}
