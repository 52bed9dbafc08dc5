/** Copies of what passes, for Homer. */
import { createSocket, type Socket } from 'node:dgram'
import { isIP, isIPv6 } from 'node:net'
import { hepPacket } from './hep.ts'
import type { Flow, Listener } from '../flow.ts'
import type { CaptureOptions } from '../options.ts'

export class Capture {
  readonly #sender: DatagramSender
  readonly #agentId: number
  readonly #now: () => number

  constructor({ host, port, agentId }: CaptureOptions, now: () => number) {
    this.#sender = new DatagramSender(host, port)
    this.#agentId = agentId
    this.#now = now
  }

  received(message: string | Uint8Array, { listener, address, port }: Flow): void {
    this.#pass(message, { address, port }, placeOf(listener), listener)
  }

  sent(message: string, { listener, address, port }: Flow): void {
    this.#pass(message, placeOf(listener), { address, port }, listener)
  }

  stop(): void {
    this.#sender.stop()
  }

  #pass(message: string | Uint8Array, from: Place, to: Place, { protocol }: Listener): void {
    const how = { isDatagram: protocol === 'udp', now: this.#now() }
    const packet = hepPacket({ from, to, message, ...how }, this.#agentId)
    if (packet !== undefined) this.#sender.send(packet)
  }
}

type Place = Pick<Flow, 'address' | 'port'>

/** A socket of all addresses has none of its own. */
function placeOf({ address, port, advertisedHost }: Listener): Place {
  const isAny = address === '0.0.0.0' || address === '::'
  return { address: isAny && isIP(advertisedHost) !== 0 ? advertisedHost : address, port }
}

/** What may wait in the socket; beyond, datagrams are lost. */
const maxWaitingBytes = 4 * 1024 * 1024

/** What may wait for the look-up of the place, such as the first lines of a log. */
const maxEarly = 256

export class DatagramSender {
  readonly #socket: Socket
  /** Undefined: what is sent goes out at once. */
  #early: Uint8Array[] | undefined = []
  #isStopped = false

  constructor(host: string, port: number) {
    this.#socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4').unref()
    // A name that is not found, or a place where nothing listens.
    this.#socket.on('error', () => undefined)
    this.#socket.connect(port, host, (error?: Error) => {
      if (error !== undefined) return
      const early = this.#early ?? []
      this.#early = undefined
      for (const bytes of early) this.send(bytes)
    })
  }

  /** After the end, too, where nothing is sent. */
  send(bytes: Uint8Array): void {
    if (this.#isStopped) return
    if (this.#early !== undefined) {
      if (this.#early.length < maxEarly) this.#early.push(bytes)
    } else if (this.#socket.getSendQueueSize() <= maxWaitingBytes)
      this.#socket.send(bytes, () => undefined)
  }

  stop(): void {
    if (this.#isStopped) return
    this.#isStopped = true
    this.#socket.close()
  }
}
