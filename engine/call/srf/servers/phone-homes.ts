/** With several servers: which of them has the connection of a phone, or the way back through its NAT. */
import { hostPort } from '../../../sip-server/message/index.ts'
import type { Agent } from '../drachtio.ts'

/** The oldest are forgotten: calls to them go by any server, until they register again. */
const MAX_PHONES = 100_000

export class PhoneHomes {
  /** By `host:port`, as the URI of a next hop says it. */
  readonly #agents = new Map<string, Agent>()

  note(address: string, port: number, agent: Agent): void {
    const place = hostPort(address, port)
    this.#agents.delete(place)
    this.#agents.set(place, agent)
    const [oldest] = this.#agents.size > MAX_PHONES ? this.#agents.keys() : []
    if (oldest !== undefined) this.#agents.delete(oldest)
  }

  /** Undefined: no phone registered from there. */
  of(nextHop: string | undefined): Agent | undefined {
    if (nextHop === undefined || this.#agents.size === 0) return undefined
    const parameters = nextHop.indexOf(';')
    return this.#agents.get(
      nextHop.slice('sip:'.length, parameters === -1 ? undefined : parameters),
    )
  }
}
