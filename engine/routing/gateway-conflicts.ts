/**
 * Gateways that could not be told apart when a call comes in: refused when they are written (409,
 * decisions §2). Networks of different size are no conflict, because the smaller one wins; neither
 * are one port and any port. Gateways of one carrier cannot conflict: they mean the same carrier.
 */
import { networkKey } from './ip-address.ts'
import type { GatewayRecord } from './routing-records.ts'
import { recognizedNetwork, recognizedPort } from './sources.ts'

export interface OwnedGateway {
  readonly carrierId: number
  readonly gateway: GatewayRecord
}

export interface GatewayConflict {
  readonly written: GatewayRecord
  readonly existing: OwnedGateway
}

/** Each gateway that a write would make ambiguous, with the first one that it collides with. */
export function conflictingGateways(
  carrierId: number,
  written: readonly GatewayRecord[],
  existing: readonly OwnedGateway[],
): readonly GatewayConflict[] {
  const taken = new Map<string, OwnedGateway>()
  for (const each of existing) {
    if (each.carrierId === carrierId || !each.gateway.isInbound) continue
    const key = identityOf(each.gateway)
    if (!taken.has(key)) taken.set(key, each)
  }
  return written.flatMap((gateway) => {
    const other = gateway.isInbound ? taken.get(identityOf(gateway)) : undefined
    return other ? [{ written: gateway, existing: other }] : []
  })
}

/** Equal for gateways that the same packets belong to. A host name is compared as a name. */
function identityOf(gateway: GatewayRecord): string {
  const network = recognizedNetwork(gateway, gateway.host)
  const source = network
    ? networkKey(network.address, network.prefixLength)
    : gateway.host.toLowerCase()
  return `${source} ${recognizedPort(gateway)}`
}
