/**
 * What changes can be about. For each kind: how its state is read, and how it is restored. A kind without them is
 * never undone.
 */
import { spendGuardKind } from '../billing/guards/spend-guard-kind.ts'
import { apiKeyKind } from './api-key-kind.ts'
import { carrierKind } from './carrier-kind.ts'
import { customerLimitsKind } from './customer-limits-kind.ts'
import { dispatcherNodeKind } from './dispatcher-node-kind.ts'
import { sipBanKind } from './sip-ban-kind.ts'
import type { RestorableKind } from './restorable-kind.ts'

/** A call that ended, or what was loaded into memory. */
const irreversible = null

const kinds = {
  api_key: apiKeyKind,
  carrier: carrierKind,
  customer_limits: customerLimitsKind,
  dispatcher_node: dispatcherNodeKind,
  dispatcher_sets: irreversible,
  live_call: irreversible,
  sip_ban: sipBanKind,
  spend_guard: spendGuardKind,
} as const satisfies Readonly<Record<string, RestorableKind | null>>

export type ChangeKind = keyof typeof kinds

/** Null: irreversible, or a kind of another version of the program. */
export function restorable(kind: string): RestorableKind | null {
  const known: Readonly<Record<string, RestorableKind | null>> = kinds
  return known[kind] ?? null
}
