/**
 * Calls that would reach a carrier's gateway without a price, and names that would lead requests of
 * tenants inside the platform: the former are counted, few are logged.
 */
import type { Log } from '../../schema/contracts/log.ts'
import type { Sender } from '../../schema/contracts/gateways.ts'
import type { Routing } from './routing.ts'
import type { TenantNames } from './tenant-names.ts'

export interface UnpricedCallsDeps {
  readonly tenantNames: Pick<TenantNames, 'mayReach' | 'isInner'>
  readonly routing: Pick<Routing, 'gatewayBehind' | 'mayReach' | 'recognize'>
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly log: Log
}

/**
 * One line for a destination in a minute, however often it is called: the log must not fill the
 * disk.
 */
const QUIET_MS = 60_000
const TO_GATEWAY = 'a destination leads to the gateway of a carrier: its calls are refused'
const INSIDE =
  'a name that a tenant or a party has written leads inside the platform: nothing is sent there'
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

  /** The carrier at whose gateway a request to this next hop would arrive, for call control. */
  readonly gatewayBehind = (uri: string, sender: Sender): string | undefined => {
    const carrier = this.#deps.routing.gatewayBehind(uri, sender)
    if (carrier !== undefined) this.#note(uri, { carrier })
    return carrier
  }

  /**
   * For the SIP server, which has looked up a name; `peer`: the address of the party that has given
   * it in a call.
   */
  readonly mayReach = (
    name: string,
    { address, port }: { readonly address: string; readonly port: number },
    peer?: string,
  ): boolean => {
    const isOfTenant = !this.#deps.tenantNames.mayReach(name, { address, port })
    if (isOfTenant || (peer !== undefined && this.#leadsInside(address, peer))) {
      this.#logSometimes(INSIDE, name, { address, port })
      return false
    }
    const isAllowed = this.#deps.routing.mayReach(name, address, port)
    if (!isAllowed) this.#note(name, { address, port })
    return isAllowed
  }

  /** Whether a party from elsewhere would have us send inside the platform. */
  #leadsInside(address: string, peer: string): boolean {
    const { isInner } = this.#deps.tenantNames
    if (!isInner(address) || isInner(peer)) return false
    const { kind } = this.#deps.routing.recognize({ address: peer, port: 0 })
    return kind !== 'trusted' && kind !== 'proxy'
  }

  #note(destination: string, fields: Readonly<Record<string, unknown>>): void {
    this.#total += 1
    this.#logSometimes(TO_GATEWAY, destination, fields)
  }

  #logSometimes(
    message: string,
    destination: string,
    fields: Readonly<Record<string, unknown>>,
  ): void {
    const now = this.#deps.now()
    const before = this.#logged.get(destination)
    if (before !== undefined && now < before + QUIET_MS) return
    if (this.#logged.size >= MAX_DESTINATIONS) this.#logged.clear()
    this.#logged.set(destination, now)
    this.#deps.log('warn', message, { destination, ...fields })
  }
}
