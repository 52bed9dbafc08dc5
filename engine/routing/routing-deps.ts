/** What routing is made of. */
import type { ChangedRouting } from '../../schema/changes/changes.ts'
import type { ExitCodes } from '../../schema/rules/numbers.ts'
import type { SharedCounting } from '../limits/call-limit.ts'
import type { AddressesOf } from './gateway-guard.ts'
import type { CarrierPrice } from './outbound/least-cost.ts'
import type { RecognitionDeps } from './recognition/recognition.ts'
import type { CarrierRecord, RoutingRecords } from './routing-records.ts'

export interface RoutingDeps extends RecognitionDeps {
  readonly hosts: RecognitionDeps['hosts'] & {
    watch(owner: string, hosts: readonly string[]): void
    lookUp(hosts: readonly string[]): Promise<AddressesOf>
  }
  /** All rows, or those of one table that have changed. */
  readonly load: (changed?: ChangedRouting) => Promise<RoutingRecords>
  /** Of those that a tenant's caller may reach; null: a caller of no tenant. */
  readonly defaultSetId: (tenantId: number | null) => number | undefined
  /** Live calls of a carrier, counted, not kept. */
  readonly activeCarrierCalls: (carrierId: number) => number
  /** Live calls of an AI agent. */
  readonly activeAgentCalls: (agentId: number) => number
  /** What probes say; `unproven` gateways come after all others, `down` ones get no calls. */
  readonly gatewayReachability: (gatewayId: number) => 'up' | 'unproven' | 'down'
  /** By a price list, for a number; undefined: it has no price for it. */
  readonly carrierPrice: (ratePlanId: number, number: string) => CarrierPrice | undefined
  /** The carriers as they are from now on. */
  readonly onLoaded: (carriers: readonly CarrierRecord[]) => void
  /** A row that cannot be used, in one sentence. */
  readonly onProblem: (problem: string) => void
  /** What is dialled in place of `+`; undefined: the installation names none. */
  readonly exitCodes?: ExitCodes | undefined
  readonly now: () => number
  readonly random: () => number
  /** Where other nodes count against the same limits. */
  readonly shared?: SharedCounting | undefined
}
