/** Who sends a request, as far as call control has to know. */
import type { CarrierRecord } from './routing-records.ts'

export type Origin =
  | { readonly kind: 'trusted' }
  | CarrierOrigin
  | NodeOrigin
  | ProxyOrigin
  /** A phone that has proved whose it is; never the answer of `recognize`, which knows addresses. */
  | ExtensionOrigin
  | { readonly kind: 'unknown' }

export interface NodeOrigin {
  readonly kind: 'node'
  readonly nodeId: number
  readonly setId: number
  /** Whose node it is; absent: the platform's, or it does not matter any more. */
  readonly tenantId?: number
}

export interface CarrierOrigin {
  readonly kind: 'carrier'
  readonly carrierId: number
  readonly gatewayId: number
  readonly name: string
  readonly customerId: number | null
  /** `from_number`: the number in From may name the customer who pays. */
  readonly payer: CarrierRecord['payer']
  readonly tenantId: number | null
  readonly inboundSetId: number | null
}

/** A proxy that authenticates the users of some tenants (`EDGE_PROXIES`): a trunk of these tenants. */
export interface ProxyOrigin {
  readonly kind: 'proxy'
  /** Those it serves; never empty. */
  readonly tenantIds: readonly number[]
}

export interface ExtensionOrigin {
  readonly kind: 'extension'
  readonly extensionId: number
  readonly tenantId: number
  readonly customerId: number | null
  readonly domain: string
  readonly extension: string
  readonly displayName: string
}
