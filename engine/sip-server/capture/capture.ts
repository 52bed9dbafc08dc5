/** Copies of what passes, for Homer. */
import { isIP } from 'node:net'
import type { Flow, Listener } from '../flow.ts'
import type { CaptureOptions } from '../options.ts'
import { DatagramSender } from '../transport/datagram-sender.ts'
import { hepPacket } from './hep.ts'

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
