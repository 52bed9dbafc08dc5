/** Gateways of carriers, by their addresses. */

export interface GatewaySource {
  /** Address or host name. */
  readonly host: string
  /** 0 for any. */
  readonly port: number
  readonly transport: 'udp' | 'tcp' | 'tls'
  /** Prefix length of the network around `host`. */
  readonly netmask: number
}

/**
 * A gateway with its owner. Only priced routes may call a gateway, because any other path would be
 * free: the API rejects a URI that leads to one, as the engine would.
 */
export interface CarrierGateway extends GatewaySource {
  /** Name of its carrier. */
  readonly carrier: string
  /** Owner of the carrier; null for the platform. */
  readonly tenantId: number | null
}

/**
 * The owner of the agent, set or phone that sends the request: a tenant, the platform, or unknown.
 */
export type Sender = number | 'platform' | 'unknown'

/**
 * Returns the gateway at the DNS addresses of a URI; undefined when there is none, or DNS did not
 * answer in time.
 */
export type GatewayLookup = (uri: string, sender: Sender) => CarrierGateway | undefined

/** DNS answers for URIs that are about to be stored. */
export interface DnsAnswers {
  readonly gatewayLedTo: GatewayLookup
  /** All addresses behind the names of a URI; none where DNS did not answer in time. */
  readonly addressesOf: (uri: string) => readonly string[]
}
