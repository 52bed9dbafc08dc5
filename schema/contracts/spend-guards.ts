/** Spend guards: brakes on calls to a prefix, of a customer, an extension or a tenant. */

export const guardActions = ['block', 'cap'] as const
/** `block`: no call. `cap`: calls may cost `amountMicros` in all. */
export type GuardAction = (typeof guardActions)[number]

export const guardPeriods = ['duration', 'day'] as const
/** A cap is for the whole time of the guard, or for each day (UTC). */
export type GuardPeriod = (typeof guardPeriods)[number]

export const guardScopes = ['customer', 'extension', 'tenant'] as const
/** Whose calls are braked. */
export type GuardScope = (typeof guardScopes)[number]

/** Which calls are braked. */
export interface Brake {
  readonly scope: GuardScope
  /** Of the customer, the extension or the tenant. */
  readonly scopeId: number
  /** As `normalPrefix` writes it. */
  readonly prefix: string
  /** Of an extension: a PBX or a proxy of the tenant brings its calls under this number. */
  readonly extension: { readonly number: string; readonly tenantId: number } | null
}

export interface SpendGuard extends Brake {
  readonly guardUuid: string
  readonly action: GuardAction
  /** Of a cap; 0 for a block. */
  readonly amountMicros: number
  /** Of a cap. */
  readonly currency: string | null
  /** Of a cap. */
  readonly per: GuardPeriod | null
  /** Milliseconds UTC. */
  readonly startsAt: number
  /** Null: it stays until it is removed. */
  readonly expiresAt: number | null
  /** Answered calls that began before end; null: calls that are live go on. */
  readonly endsCallsBefore: number | null
}
