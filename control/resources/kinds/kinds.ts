/**
 * What changes can be about. For each kind: how its state is read, and how it is restored. A kind without them is
 * never undone.
 */
import { isDeepStrictEqual } from 'node:util'
import { spendGuardKind } from '../guards/spend-guard-kind.ts'
import { apiKeyKind } from './api-key-kind.ts'
import * as documents from './document-kinds.ts'
import { dispatcherNodeKind } from './dispatcher-node-kind.ts'
import { sipBanKind } from './sip-ban-kind.ts'
import type { RestorableKind } from '../../changes/restorable-kind.ts'

/** A call that ended, or what was loaded into memory. */
const irreversible = null

const kinds = {
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
} as const satisfies Readonly<Record<string, RestorableKind | null>>

export type ChangeKind = keyof typeof kinds

/** Null: irreversible, or a kind of another version of the program. */
export function restorable(kind: string): RestorableKind | null {
  const known: Readonly<Record<string, RestorableKind | null>> = kinds
  return known[kind] ?? null
}

/** Whether a thing has the state of a change of it. */
export const isSameState = (
  kind: Pick<RestorableKind, 'isSame'> | null,
  ...[state, ofChange]: Parameters<NonNullable<RestorableKind['isSame']>>
): boolean => (kind?.isSame ?? isDeepStrictEqual)(state, ofChange)
