/**
 * The flows of the peers of one UDP socket: one object for each peer instead of one for each
 * datagram, since transactions keep the flow of their request for half a minute.
 */
import { type Flow, type Listener, sideFor } from '../flow.ts'

const maxPeers = 10_000

export class PeerFlows {
  readonly #listener: Listener
  readonly #max: number
  /** Flows by address, then by port. */
  readonly #flows = new Map<string, Map<number, Flow>>()
  #count = 0

  /** All are forgotten when there are `max`: sources can be forged. */
  constructor(listener: Listener, max = maxPeers) {
    this.#listener = listener
    this.#max = max
  }

  of(address: string, port: number): Flow {
    return this.#flows.get(address)?.get(port) ?? this.#add(address, port)
  }

  #add(address: string, port: number): Flow {
    if (this.#count === this.#max) this.#flows.clear()
    this.#count = this.#flows.size === 0 ? 1 : this.#count + 1
    const listener = sideFor(this.#listener, address)
    const flow: Flow = { listener, address, port, connectionId: 0 }
    const ports = this.#flows.get(address)
    if (ports) ports.set(port, flow)
    else this.#flows.set(address, new Map([[port, flow]]))
    return flow
  }
}
