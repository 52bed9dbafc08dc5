/** How the state of each kind is read, and how it is restored. */
import { spendGuardKind } from '../guards/spend-guard-kind.ts'
import type { Kinds } from '../../changes/kinds.ts'
import { apiKeyKind } from './api-key-kind.ts'
import * as documents from './document-kinds.ts'
import { dispatcherNodeKind } from './dispatcher-node-kind.ts'
import { sipBanKind } from './sip-ban-kind.ts'

/** A call that ended, or what was loaded into memory. */
const irreversible = null

export const kinds: Kinds = {
  agent: documents.agentKind,
  api_key: apiKeyKind,
  carrier: documents.carrierKind,
  customer: documents.customerKind,
  dispatcher_node: dispatcherNodeKind,
  dispatcher_set: documents.dispatcherSetKind,
  dispatcher_sets: irreversible,
  extension: documents.extensionKind,
  inbound_route: documents.inboundRouteKind,
  live_call: irreversible,
  outbound_route: documents.outboundRouteKind,
  rate: documents.rateKind,
  rate_plan: documents.ratePlanKind,
  sip_ban: sipBanKind,
  spend_guard: spendGuardKind,
  tenant: documents.tenantKind,
}
