/** With several servers: which of them has the connection of a phone, or the way back through its NAT. */
import { hostPort } from '../../../sip-server/message/index.ts'

/** The oldest are forgotten: calls to them go by any server, until they register again. */
const MAX_PHONES = 100_000

export class PhoneHomes {
  /** By `host:port`, as the URI of a next hop says it. */
  readonly #links = new Map<string, object>()

  note(address: string, port: number, link: object): void {
    const place = hostPort(address, port)
    this.#links.delete(place)
    this.#links.set(place, link)
    const [oldest] = this.#links.size > MAX_PHONES ? this.#links.keys() : []
    if (oldest !== undefined) this.#links.delete(oldest)
  }

  /** Undefined: no phone registered from there. */
  of(nextHop: string | undefined): object | undefined {
    if (nextHop === undefined || this.#links.size === 0) return undefined
    const parameters = nextHop.indexOf(';')
    return this.#links.get(nextHop.slice('sip:'.length, parameters === -1 ? undefined : parameters))
  }
}
