/**
 * Connections over the virtual network: nothing on one is lost, doubled or overtaken as long as it
 * lives, but it may be refused, and it may break with whatever is under way.
 */
import type { VirtualNetwork } from './virtual-network.ts'

export interface StreamWeather {
  /** Part of all connections that cannot be made, and of those that break, 0 to 1. */
  readonly refused: number
  readonly broken: number
  /** Milliseconds; each message takes its own time up to this, but waits for those before it. */
  readonly maxDelayMs: number
  /** A connection that breaks does so within this. Milliseconds. */
  readonly longestLifeMs: number
}

/** One end of a connection as its owner knows it. */
export interface RemoteEnd {
  readonly address: string
  readonly port: number
  readonly connectionId: number
  /** Where to, when the connection is gone; undefined: nowhere. */
  readonly returnPort?: number
}

/** A listener at an address. */
export interface StreamHost {
  readonly address: string
  readonly port: number
  received(text: string, from: RemoteEnd): void
  sendFailed(reference: string): void
  closed(end: RemoteEnd): void
}

interface End {
  readonly host: StreamHost
  readonly remote: RemoteEnd
  isOpen: boolean
  /** When the last message on the way to it arrives. */
  arrivesAt: number
  peer: End | undefined
}

export class VirtualStreams {
  readonly #network: VirtualNetwork
  readonly #weather: StreamWeather
  readonly #hosts = new Map<string, StreamHost>()
  readonly #ends = new Map<number, End>()
  #lastId = 0

  constructor(network: VirtualNetwork, weather: StreamWeather) {
    this.#network = network
    this.#weather = weather
  }

  join(host: StreamHost): void {
    this.#hosts.set(host.address, host)
  }

  /** As a transport: the connection that `to` names, else one to its address, else a new one. */
  send(from: StreamHost, to: RemoteEnd, text: string, reference: string): void {
    const end = this.#endFor(from, to)
    if (end?.peer === undefined) {
      this.#network.after(this.#delay(), () => from.sendFailed(reference))
      return
    }
    this.#carry(end.peer, text)
  }

  #endFor(from: StreamHost, to: RemoteEnd): End | undefined {
    if (to.connectionId === 0) return this.#endTo(from, to.address, to.port)
    const named = this.#ends.get(to.connectionId)
    if (named) return named
    return to.returnPort === undefined ? undefined : this.#endTo(from, to.address, to.returnPort)
  }

  #endTo(from: StreamHost, address: string, port: number): End | undefined {
    for (const end of this.#ends.values())
      if (end.host === from && end.remote.address === address && end.remote.port === port)
        return end
    return this.#connect(from, address, port)
  }

  #connect(from: StreamHost, address: string, port: number): End | undefined {
    const host = this.#hosts.get(address)
    const { random } = this.#network
    if (host === undefined || host.port !== port || random() < this.#weather.refused)
      return undefined
    const near = this.#newEnd(from, address, port)
    const far = this.#newEnd(host, from.address, 40_000 + this.#lastId)
    near.peer = far
    far.peer = near
    if (random() < this.#weather.broken)
      this.#network.after(random() * this.#weather.longestLifeMs, () => this.#break(near, far))
    return near
  }

  #newEnd(host: StreamHost, address: string, port: number): End {
    const connectionId = ++this.#lastId
    const remote = { address, port, connectionId }
    const end: End = { host, remote, isOpen: true, arrivesAt: 0, peer: undefined }
    this.#ends.set(connectionId, end)
    return end
  }

  /** Keeps the order: what is sent later never arrives earlier. */
  #carry(to: End, text: string): void {
    to.arrivesAt = Math.max(to.arrivesAt, this.#network.now + this.#delay())
    this.#network.after(to.arrivesAt - this.#network.now, () => {
      if (to.isOpen) to.host.received(text, to.remote)
    })
  }

  /** Both sides hear of it, each in its own time; what was under way is lost. */
  #break(...ends: readonly End[]): void {
    for (const end of ends) {
      end.isOpen = false
      this.#network.after(this.#delay(), () => {
        this.#ends.delete(end.remote.connectionId)
        end.host.closed(end.remote)
      })
    }
  }

  #delay(): number {
    return this.#network.random() * this.#weather.maxDelayMs
  }
}
