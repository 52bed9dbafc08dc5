/** Remembers which of several drachtio-servers a phone is reached by. */
import { hostPort } from '../../../../schema/sip/index.ts'

/** The oldest are forgotten: calls to them go by any server, until they register again. */
const MAX_PHONES = 100_000

/** The server of a phone has its connection, or the way back through its NAT. */
export class PhoneServers {
  /** Names of servers by `host:port`, as in the URI of a next hop. */
  readonly #servers = new Map<string, string>()

  note(address: string, port: number, server: string): void {
    const phone = hostPort(address, port)
    this.#servers.delete(phone)
    this.#servers.set(phone, server)
    const [oldest] = this.#servers.size > MAX_PHONES ? this.#servers.keys() : []
    if (oldest !== undefined) this.#servers.delete(oldest)
  }

  /** Undefined: no phone registered from there. */
  of(nextHop: string): string | undefined {
    if (this.#servers.size === 0) return undefined
    const parameters = nextHop.indexOf(';')
    return this.#servers.get(
      nextHop.slice('sip:'.length, parameters === -1 ? undefined : parameters),
    )
  }
}
