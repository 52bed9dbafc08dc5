import type { Socket } from 'node:net'
import { canonicalAddress, networkCheck, sourceKey } from '../../schema/net/ip-address.ts'

/**
 * Limits the connections of one listener per address (per /64 network for IPv6). Without it, one
 * client could take all connections and send nothing. Proxies, which speak for many clients, are
 * exempt.
 */
export class ConnectionLimit {
  readonly #max: number
  readonly #isExempt: (address: string) => boolean
  readonly #open = new Map<string, number>()
  readonly #refused = new WeakSet<Socket>()

  /** `exempt`: CIDRs. */
  constructor(max: number, exempt: readonly string[]) {
    this.#max = max
    this.#isExempt = exempt.length === 0 ? () => false : networkCheck(exempt)
  }

  /** Counts the connection until it closes. False when its address has reached the limit. */
  admit(socket: Socket): boolean {
    const address = canonicalAddress(socket.remoteAddress ?? '')
    if (this.#isExempt(address)) return true
    const source = sourceKey(address)
    const open = this.#open.get(source) ?? 0
    if (open >= this.#max) {
      this.#refused.add(socket)
      return false
    }
    this.#open.set(source, open + 1)
    socket.once('close', () => this.#closed(source))
    return true
  }

  /** Requests that it has sent meanwhile must not be carried out. */
  isRefused(socket: Socket): boolean {
    return this.#refused.has(socket)
  }

  #closed(source: string): void {
    const rest = (this.#open.get(source) ?? 1) - 1
    if (rest === 0) this.#open.delete(source)
    else this.#open.set(source, rest)
  }
}
