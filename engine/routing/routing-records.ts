/** Carriers and routes as they are stored, typed; `routing-store.ts` reads them. */
import type { HuntingRules } from '../../schema/contracts/hunting.ts'
import type { CompiledRules } from '../../schema/rules/header-rules.ts'
import type { LossTerms } from '../../schema/rules/loss-protection.ts'
import type { Distribution, MediaRules, VerifyPolicy } from '../../schema/contracts/field-values.ts'
import type { QualityFloors } from '../../schema/contracts/route-quality.ts'
import type { Verification } from '../../schema/contracts/stir.ts'
import type { CarrierGateway } from '../../schema/contracts/gateways.ts'
import { isIP } from 'node:net'
import { hostPort } from '../../schema/sip/index.ts'

export type GatewayTransport = 'udp' | 'tcp' | 'tls'

export interface GatewayRecord {
  readonly gatewayId: number
  /** Address or host name. */
  readonly host: string
  /**
   * The port for calls, and of UDP packets that are recognized. 0: calls go to 5060, packets of any
   * port are recognized.
   */
  readonly port: number
  readonly transport: GatewayTransport
  /** Prefix length of the network around `host` that is recognized as this gateway. */
  readonly netmask: number
  readonly isInbound: boolean
  readonly isOutbound: boolean
  /** Lower is preferred. */
  readonly priority: number
  /** 1 to 100, relative among gateways of equal priority. */
  readonly weight: number
  /** A tenant has written where it is. */
  readonly isByTenant?: boolean | undefined
}

/** How the carrier knows this SBC. `ip`: by its address; `digest`, `register`: by credentials. */
export interface CarrierAuth {
  readonly type: 'ip' | 'digest' | 'register'
  readonly username: string | null
  readonly password: string | null
  readonly realm: string | null
  readonly fromUser: string | null
  readonly fromDomain: string | null
  readonly expiresSeconds: number | null
}

export type RewriteNumber = (number: string) => string

export interface CallerIdRule {
  readonly mode: 'pass' | 'fixed' | 'pai' | 'policy'
  readonly value: string | null
}

/** Signed calls (STIR): those to a carrier, and those from it. */
export interface StirPolicy {
  readonly isSigned: boolean
  readonly verify: VerifyPolicy
}

export interface CarrierRecord {
  readonly carrierId: number
  readonly name: string
  readonly tenantId: number | null
  readonly customerId: number | null
  /** The payer of its calls: its customer, or the customer whose number stands in From. */
  readonly payer: 'customer' | 'from_number'
  readonly isActive: boolean
  readonly direction: 'in' | 'out' | 'both'
  readonly auth: CarrierAuth
  readonly callerId: CallerIdRule
  readonly numberRules: { readonly in: RewriteNumber; readonly out: RewriteNumber }
  readonly media?: MediaRules | undefined
  /** Headers that its calls do not carry, in lower case. */
  readonly stripHeaders?: readonly string[] | undefined
  /** Absent: it has none. */
  readonly headerRules?: CompiledRules | undefined
  /** Absent: its calls are neither signed nor verified. */
  readonly stir?: StirPolicy | undefined
  /** Absent: calls hunt as usual. */
  readonly hunting?: HuntingRules | undefined
  /** 0: unlimited, as for the next. */
  readonly maxCalls: number
  /** New calls in any second. */
  readonly maxCps: number
  /** Its price list; null: what it charges is not known. */
  readonly ratePlanId: number | null
  readonly inboundSetId: number | null
  readonly gateways: readonly GatewayRecord[]
  /** How gateways of equal priority share its calls; absent: drawn by weight. */
  readonly distribution?: Distribution | undefined
}

export interface OutboundRouteRecord {
  readonly routeId: number
  readonly name: string
  readonly tenantId: number | null
  /** Null: for every customer. */
  readonly customerId: number | null
  readonly carrierId: number | null
  /** Leading digits of the called number, a leading `+` does not count; empty: every number. */
  readonly prefix: string
  readonly priority: number
  readonly weight: number
  readonly mode: 'static' | 'lcr' | 'block'
  /** Digits taken from the front, then `prepend` put there. */
  readonly strip: number
  readonly prepend: string
  readonly isActive: boolean
  readonly isEmergency: boolean
  /** Absent: it says nothing about losses. */
  readonly lossTerms?: LossTerms | undefined
  /** How routes of equal prefix, owner and priority share calls. */
  readonly distribution: Distribution
  /** Absent: its carrier is not measured. */
  readonly floors?: QualityFloors | undefined
}

export interface InboundRouteRecord {
  readonly routeId: number
  readonly name: string
  readonly tenantId: number | null
  /** Null: from any carrier. */
  readonly carrierId: number | null
  /** Null: any called number, any domain. */
  readonly prefix: string | null
  readonly domain: string | null
  /** The proof that Identity headers must have given; absent: any. */
  readonly verification?: Verification | undefined
  readonly target: InboundTarget
  readonly priority: number
  readonly isActive: boolean
}

export type InboundTarget =
  | { readonly kind: 'set'; readonly setId: number }
  | {
      readonly kind: 'extension'
      readonly extension: string
      readonly tenantId: number | null
      /** The route's domain; null: the called one. */
      readonly domain: string | null
    }
  | { readonly kind: 'agent'; readonly agentId: number }

export interface AgentRecord {
  readonly agentId: number
  readonly name: string
  /** Null: of the platform, for every tenant. */
  readonly tenantId: number | null
  readonly extension: string
  readonly uri: string
  /** A tenant has written the URI. */
  readonly isByTenant?: boolean | undefined
  /** 0: unlimited. */
  readonly maxCalls: number
  readonly isActive: boolean
  readonly media?: MediaRules | undefined
  /** Headers that its calls do not carry, in lower case. */
  readonly stripHeaders?: readonly string[] | undefined
}

/** A tenant with the domains and numbers that the platform has listed as its own. */
export interface TenantRecord {
  readonly tenantId: number
  readonly slug: string
  readonly isActive: boolean
  readonly domains: readonly string[]
  /** Numbers and starts of blocks, without a leading `+`. */
  readonly numbers: readonly string[]
}

/** As `CarrierGateway`, with its carrier. */
export interface OwnedGateway extends CarrierGateway {
  readonly carrierId: number
}

export interface RoutingRecords {
  readonly tenants: readonly TenantRecord[]
  readonly carriers: readonly CarrierRecord[]
  /** Gateways of all carriers, also of those that are switched off or cannot be used. */
  readonly gateways: readonly OwnedGateway[]
  readonly outboundRoutes: readonly OutboundRouteRecord[]
  readonly inboundRoutes: readonly InboundRouteRecord[]
  readonly agents: readonly AgentRecord[]
  /** Rows that cannot be used, one sentence each, for the log. */
  readonly problems: readonly string[]
}

// The destination of requests to a carrier's gateway.

/** Port 0 is the default one of the transport, RFC 3261 §19.1.2. */
export function gatewayPort({
  port,
  transport,
}: Pick<GatewayRecord, 'port' | 'transport'>): number {
  return port === 0 ? defaultPort(transport) : port
}

type GatewayAddress = Pick<GatewayRecord, 'host' | 'port' | 'transport'>

/**
 * `sip:<host>:<port>;transport=udp`. A name without a port stays without: the SRV records of the
 * carrier say which hosts and ports, if it has any (RFC 3263 §4.2).
 */
export function gatewayUri(gateway: GatewayAddress): string {
  const { host, transport } = gateway
  const port = isByRecords(gateway) ? 0 : gatewayPort(gateway)
  return `sip:${hostPort(host, port)};transport=${transport}`
}

/**
 * The names behind which the addresses of a gateway stand: its host, and where its SRV records are.
 */
export function gatewayNames(gateway: GatewayAddress): readonly string[] {
  const { host, transport } = gateway
  return isByRecords(gateway) ? [host, `${srvPrefix[transport]}.${host}`] : [host]
}

const isByRecords = ({ host, port }: GatewayAddress): boolean => port === 0 && isIP(host) === 0

const srvPrefix = { udp: '_sip._udp', tcp: '_sip._tcp', tls: '_sips._tcp' } as const

const defaultPort = (transport: GatewayTransport) => (transport === 'tls' ? 5_061 : 5_060)
