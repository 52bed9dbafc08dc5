/**
 * Decides whether requests of a call follow the Contact and the Record-Route that a party has given
 * (RFC 3261 §12.2.1.1). A party names no place by them that it could not call otherwise
 * (SECURITY.md): a phone is reached where it is, and nobody names the gateway of a carrier that is
 * not its own, or a place inside the platform.
 */
import { isIP } from 'node:net'
import { sipTarget } from '../../schema/net/sip-target.ts'
import type { Sender } from '../../schema/contracts/gateways.ts'
import { senderOf } from '../../schema/rules/gateways.ts'
import { isNoHost } from '../../schema/sip/index.ts'
import type { Origin, Routing } from '../routing/routing.ts'
import type { ActiveCalls } from './active-calls.ts'
import type { LiveCall } from './call-machine/state.ts'
import type { Reached } from './inbound/route.ts'

/** The way as the SIP server knows it. */
export interface DialogWay {
  readonly callId: string
  readonly localTag: string
  readonly remoteTag: string
  /** Where the party has sent from. */
  readonly address: string
  readonly port: number
  readonly protocol: string
  readonly routes: readonly string[]
  readonly target: string
}

export interface DialogWayDeps {
  readonly calls: Pick<ActiveCalls, 'partyIn'>
  readonly routing: Pick<Routing, 'recognize' | 'gatewayBehind' | 'isGatewayOf' | 'tenantOfCarrier'>
  /** Whether this is the address of another instance of the installation. */
  readonly isInstance: (address: string) => boolean
  /** Whether an address is inside the platform, where others do not reach it. */
  readonly isInner: (address: string) => boolean
  /** Whether an address is this machine's own. */
  readonly isOwnMachine: (address: string) => boolean
  /** The tenant of a dispatcher set; null: the platform. */
  readonly tenantOfSet: (setId: number) => number | null
  readonly onRefused: (way: DialogWay, callUuid: string | undefined) => void
}

/** False: requests of the dialog go to where the party has sent from. */
export function mayFollow(way: DialogWay, deps: DialogWayDeps): boolean {
  const { address, port } = way
  const party = deps.calls.partyIn(way)
  const who = party?.side === 'callee' ? calledParty(party.call) : callingParty(party?.call)
  const reach = reachOf(deps.routing.recognize({ address, port }), who, way, deps)
  const isSingle = ![...way.routes, way.target].some((hop) => isNoHost(sipTarget(hop)?.host ?? ''))
  if (isSingle && (reach === everywhere || isWithin(reach, way, deps))) return true
  deps.onRefused(way, party?.call.start.callUuid)
  return false
}

/** Places that a party may name. */
interface Reach {
  /**
   * `own`: its own address. `outside`: what is not inside the platform. `any`: what is no gateway.
   */
  readonly next: 'own' | 'outside' | 'any'
  /** The owners whose view of gateways counts. */
  readonly senders: readonly Sender[]
  /** The carrier whose gateways it may name. */
  readonly carrierId?: number
  /** Whoever is next sends requests on, to where somebody else has chosen. */
  readonly isPassedOn?: true
}

const everywhere: Reach = { next: 'any', senders: [] }
const platform: Reach = { next: 'any', senders: ['platform'] }
const strange: Reach = { next: 'own', senders: ['unknown'], isPassedOn: true }

/** A party, as far as its call knows it. */
type Party =
  | { readonly kind: 'extension'; readonly tenantId: number | undefined }
  | { readonly kind: 'called'; readonly destination: Reached }
  /** Its address says what it is. */
  | { readonly kind: 'other' }

function callingParty(call: LiveCall | undefined): Party {
  const origin = call?.origin
  return origin?.kind === 'extension' ? origin : { kind: 'other' }
}

function calledParty({ destination, account }: LiveCall): Party {
  if (destination?.kind === 'extension')
    return { kind: 'extension', tenantId: account?.tenantId ?? undefined }
  return destination ? { kind: 'called', destination } : { kind: 'other' }
}

function reachOf(byAddress: Origin, who: Party, way: DialogWay, deps: DialogWayDeps): Reach {
  const isPhone = who.kind === 'extension'
  const ofPhone = isPhone && who.tenantId !== undefined ? [who.tenantId] : []
  const phone: Reach = { ...strange, senders: ['unknown', ...ofPhone] }
  switch (byAddress.kind) {
    case 'trusted':
      if (!isPhone) return everywhere
      return way.routes.length > 0 ? { ...phone, next: 'any' } : phone
    case 'proxy':
      return { ...phone, next: 'any', senders: ['unknown', ...byAddress.tenantIds] }
    case 'node': {
      const reach = reachOfOwner(deps.tenantOfSet(byAddress.setId))
      return isPhone ? { ...reach, isPassedOn: true } : reach
    }
    case 'carrier':
      return isPhone ? phone : reachOfCarrier(byAddress, who, deps)
    case 'unknown':
    default:
      if (deps.isInstance(way.address)) return platform
      return who.kind === 'called' ? reachOfCalled(who.destination, deps) : phone
  }
}

/** Several carriers may have the same gateways: the call knows which one it has called. */
function reachOfCarrier(
  byAddress: Extract<Origin, { readonly kind: 'carrier' }>,
  who: Party,
  deps: DialogWayDeps,
): Reach {
  if (who.kind === 'called' && who.destination.kind === 'gateway')
    return reachOfCalled(who.destination, deps)
  return { ...reachOfOwner(byAddress.tenantId), carrierId: byAddress.carrierId }
}

function reachOfCalled(destination: Reached, { routing }: DialogWayDeps): Reach {
  switch (destination.kind) {
    case 'gateway': {
      const { carrierId } = destination
      const owner = routing.tenantOfCarrier(carrierId)
      return owner === undefined ? strange : { ...reachOfOwner(owner), carrierId }
    }
    case 'node':
      return reachOfOwner(destination.tenantId)
    case 'other-node':
    case 'application':
      return platform
    case 'agent':
    case 'domain':
    case 'spy':
      return { next: 'outside', senders: [senderOf(destination.tenantId)] }
    case 'extension':
    case 'listener':
    default:
      return strange
  }
}

const reachOfOwner = (tenantId: number | null): Reach =>
  tenantId === null ? platform : { next: 'outside', senders: [tenantId] }

function isWithin(
  { next, senders, carrierId, isPassedOn }: Reach,
  way: DialogWay,
  deps: DialogWayDeps,
): boolean {
  const hops = [...way.routes, way.target]
  const [hop = way.target] = hops
  if (next === 'own' && !isAtParty(hop, way, deps)) return false
  if (next === 'outside' && leadsInside(hop, way, deps)) return false
  return (isPassedOn ? hops : [hop]).every((each) =>
    senders.every(
      (sender) =>
        deps.routing.gatewayBehind(each, sender) === undefined ||
        (carrierId !== undefined && deps.routing.isGatewayOf(carrierId, each)),
    ),
  )
}

/** Another port of this machine is another program, which nobody has named as the party's. */
function isAtParty(hop: string, way: DialogWay, { isOwnMachine }: DialogWayDeps): boolean {
  const target = sipTarget(hop)
  if (target?.host !== way.address) return false
  const { port, transport = target.isSecure ? 'tls' : 'udp' } = target
  const usual = transport === 'tls' || transport === 'wss' ? 5_061 : 5_060
  const isSame = (port === 0 ? usual : port) === way.port && transport === way.protocol
  return isSame || !isOwnMachine(way.address)
}

/** A name is judged when it has been looked up. */
function leadsInside(hop: string, way: DialogWay, { isInner }: DialogWayDeps): boolean {
  const host = sipTarget(hop)?.host
  if (host === undefined) return true
  return isIP(host) !== 0 && host !== way.address && isInner(host) && !isInner(way.address)
}
