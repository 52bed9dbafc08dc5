/** Targets of a carrier's 3xx, and whether a call may be sent there (D411). */
import type { SipTarget } from '../../schema/net/sip-target.ts'
import { plainHost } from '../../schema/sip/index.ts'
import type { OutboundCaller } from './outbound-routes.ts'
import { gatewayPort, type GatewayRecord } from './routing-records.ts'

/** One Contact of a 3xx. */
export interface RedirectTarget extends SipTarget {
  /** The number that the target is to get. */
  readonly number: string
  /** Routing number of a ported one, in the normal form of called numbers. */
  readonly rn?: string | undefined
}

/** A call that a carrier has redirected. */
export interface RedirectedCall {
  readonly caller: OutboundCaller
  readonly dialled: string
  /** Owner of the carrier; null: the platform. */
  readonly byTenantId: number | null
  /** The number that the carrier got. */
  readonly sent: string
  /** The dialled number that `sent` stands for; another one after a redirection to that. */
  readonly sentFor: string
  /** Routing number of a ported one; absent: it is none. */
  readonly routingNumber?: string | undefined
  readonly isEmergency: boolean
  /** Carriers that a hook has chosen; undefined: any. */
  readonly only?: readonly number[] | undefined
}

/**
 * Why a target is passed over. `unknown_gateway`: no gateway that this caller's routes lead to.
 * `dearer`: the number that was dialled would cost less there, or what this one costs is not known.
 * `below_margin`: loss protection refuses it there.
 */
export type RedirectRefusal =
  | ('unknown_gateway' | 'number_blocked' | 'blocked_by_carrier' | 'dearer' | 'other_number')
  | ('no_carrier_price' | 'below_margin')

/** Whether a Contact names this gateway; a host name is compared as a name. */
export function isTargetOf(
  gateway: Pick<GatewayRecord, 'host' | 'port' | 'transport'>,
  { host, port, transport, isSecure }: SipTarget,
): boolean {
  if (plainHost(gateway.host) !== host) return false
  const wanted = transport ?? (isSecure ? 'tls' : undefined)
  if (wanted !== undefined && wanted !== gateway.transport) return false
  if (isSecure && gateway.transport !== 'tls') return false
  return gatewayPort({ ...gateway, port }) === gatewayPort(gateway)
}
