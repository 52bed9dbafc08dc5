/** How the state of each kind is read, and how it is restored. */
import type { ChangeDeps, Kinds } from '../changes/kinds.ts'
import { ApiError } from '../http/api-error.ts'
import { aiAgents } from './ai-agents.ts'
import { carriers } from './carriers.ts'
import { customers } from './customers.ts'
import { dispatcherSets } from './dispatcher-sets.ts'
import { extensions } from './extensions.ts'
import { spendGuardKind } from './guard-plan.ts'
import { inboundRoutes } from './inbound-routes.ts'
import { outboundRoutes } from './outbound-routes.ts'
import { ratePlans } from './rate-plans.ts'
import { rates } from './rates.ts'
import { tenants } from './tenants.ts'
import { apiKeyKind } from './api-key-kind.ts'
import { dispatcherNodeKind } from './dispatcher-node-kind.ts'
import { documentKind } from './document-kind.ts'
import { sipBanKind } from './sip-ban-kind.ts'

/** A call that ended, or what was loaded into memory. */
const irreversible = null

export const carrierKind = documentKind(carriers)

/** Balances are not among its state: money is moved, not set. */
export const customerKind = documentKind(customers, refuseWithoutCharging)

export const kinds: Kinds = {
  agent: documentKind(aiAgents),
  api_key: apiKeyKind,
  carrier: carrierKind,
  customer: customerKind,
  dispatcher_node: dispatcherNodeKind,
  dispatcher_set: documentKind(dispatcherSets),
  dispatcher_sets: irreversible,
  extension: documentKind(extensions),
  inbound_route: documentKind(inboundRoutes),
  live_call: irreversible,
  outbound_route: documentKind(outboundRoutes),
  rate: documentKind(rates),
  rate_plan: documentKind(ratePlans),
  sip_ban: sipBanKind,
  spend_guard: spendGuardKind,
  tenant: documentKind(tenants),
}

function refuseWithoutCharging({ ocs }: ChangeDeps): void {
  if (ocs === undefined)
    throw new ApiError(503, 'charging_elsewhere', 'Another system charges the calls')
}
