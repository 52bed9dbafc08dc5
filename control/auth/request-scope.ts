/** Which rows a request sees and writes. */
import type { LookedUp } from '../../schema/rules/gateway-reach.ts'
import type { Principal } from './principal.ts'

/**
 * Limits a request to the rows of its tenant and domain, and says who asks and when, and what DNS has said of
 * the written destinations: absent when it was not asked.
 */
export interface RequestScope extends Partial<LookedUp> {
  /** The only tenant whose rows exist; null for all tenants. */
  readonly tenantId: number | null
  /** The platform asks, in that tenant. */
  readonly isGlobal?: boolean
  /** The only SIP domain of that tenant, for rows that have one; absent or null for all its domains. */
  readonly domain?: string | null
  /** For the ledger and the audit: `key:<uuid>`, `user:<username>`, `seed`. */
  readonly actor: string
  /** Milliseconds UTC. */
  readonly now: number
}

export const requestScope = (
  { tenantId, isGlobal = false, domain, actor }: Principal,
  now: () => number,
): RequestScope => ({
  tenantId,
  isGlobal,
  domain,
  actor,
  now: now(),
})

/** The scope of a seed file. */
export const everywhere: RequestScope = { tenantId: null, actor: '', now: 0 }
