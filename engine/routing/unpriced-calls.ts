/** Calls that would reach a carrier's gateway without a price: all are counted, few are logged. */
import type { Log } from '../../schema/contracts/log.ts'
import type { Sender } from '../../schema/rules/gateway-reach.ts'
import type { Routing } from './routing.ts'

export interface UnpricedCallsDeps {
  readonly routing: () => Pick<Routing, 'gatewayBehind' | 'mayReach'>
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly log: Log
}

/** One line for a destination in a minute, however often it is called: the log must not fill the disk. */
const QUIET_MS = 60_000
/** Destinations that are remembered. */
const MAX_DESTINATIONS = 1_000

export class UnpricedCalls {
  readonly #deps: UnpricedCallsDeps
  /** When each was logged. */
  readonly #logged = new Map<string, number>()
  #total = 0

  constructor(deps: UnpricedCallsDeps) {
    this.#deps = deps
  }

  /** Refusals since the start. */
  get total(): number {
    return this.#total
  }

  /** For call control, of a next hop: the carrier at whose gateway the request would arrive. */
  readonly gatewayBehind = (uri: string, sender: Sender): string | undefined => {
    const carrier = this.#deps.routing().gatewayBehind(uri, sender)
    if (carrier !== undefined) this.#note(uri, { carrier })
    return carrier
  }

  /** For the SIP server, which has looked up a name. */
  readonly mayReach = (
    name: string,
    { address, port }: { readonly address: string; readonly port: number },
  ): boolean => {
    const isAllowed = this.#deps.routing().mayReach(name, address, port)
    if (!isAllowed) this.#note(name, { address, port })
    return isAllowed
  }

  #note(destination: string, fields: Readonly<Record<string, unknown>>): void {
    this.#total += 1
    const now = this.#deps.now()
    const before = this.#logged.get(destination)
    if (before !== undefined && now < before + QUIET_MS) return
    if (this.#logged.size >= MAX_DESTINATIONS) this.#logged.clear()
    this.#logged.set(destination, now)
    const message = 'a destination leads to the gateway of a carrier: its calls are refused'
    this.#deps.log('warn', message, { destination, ...fields })
  }
}
