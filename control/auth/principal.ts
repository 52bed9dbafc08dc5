/** The authenticated caller of a request. Stores limit their rows to its tenant. */
import type { Role, Scope } from './scopes.ts'

/** Limits of a credential besides its scopes: requests per minute, expiry, and addresses. */
export interface KeyLimits {
  readonly rateLimitRpm: number
  /** Milliseconds UTC; null: never. */
  readonly expiresAt: number | null
  /** CIDRs; empty: any address. */
  readonly allowedIps: readonly string[]
}

interface Identity {
  /**
   * For audit and logs: `key:<uuid>`, `user:<username>` (of a tenant: `user:<slug>/<username>`),
   * `customer:<id>`.
   */
  readonly actor: string
  /** As granted, wildcards included. */
  readonly scopeLabels: readonly string[]
  readonly scopes: ReadonlySet<Scope>
  /** The only tenant whose rows exist for this request; null for all tenants. */
  readonly tenantId: number | null
  readonly tenantSlug: string | null
  /** A credential of the platform, which acts in the tenant that `X-Tenant-Slug` names. */
  readonly isGlobal?: boolean
  /** The only SIP domain of that tenant; null for all its domains. */
  readonly domain: string | null
  /** With a domain: whether it is the only domain of the tenant. */
  readonly isOnlyDomain?: boolean
}

export interface KeyPrincipal extends Identity {
  readonly kind: 'key'
  readonly keyId: number
  readonly uuid: string
  /** The owner of the key; keys that it creates have the same owner. */
  readonly ownerUsername: string | null
  readonly name: string
  readonly keyPrefix: string
  readonly limits: KeyLimits
}

export interface UserPrincipal extends Identity {
  readonly kind: 'user'
  readonly userId: number
  readonly username: string
  readonly role: Exclude<Role, 'customer'>
  readonly jti: string
  /** Milliseconds UTC. */
  readonly expiresAt: number
  /** No renewal makes the session last longer. */
  readonly latestExpiresAt: number
  /** Names the password of the session's begin: no renewal makes it one of another password. */
  readonly passwordMark: string
}

export interface CustomerPrincipal extends Identity {
  readonly kind: 'customer'
  readonly customerId: number
  readonly email: string
  readonly jti: string
  readonly expiresAt: number
}

export type Principal = KeyPrincipal | UserPrincipal | CustomerPrincipal

export interface Accepted {
  readonly kind: 'accepted'
  readonly principal: Principal
}

/** The result of authenticating a request's credential. */
export type Presented =
  | { readonly kind: 'nothing' }
  /** Unknown, inactive, revoked or expired; which of them is not revealed. */
  | { readonly kind: 'rejected' }
  /** A valid key, used from an address that is not allowed. */
  | { readonly kind: 'wrong-address'; readonly principal: Principal }
  | Accepted

declare module 'hono' {
  interface ContextVariableMap {
    /** The result of authentication; routes decide what they require. */
    presented: Presented
    /** Set once the route's `requires(…)` has admitted the request. */
    principal: Principal
  }
}
