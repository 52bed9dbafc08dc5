/**
 * Limits that all instances of a database share, and spending caps: brakes on calls to a prefix.
 */

/** This instance's share of a limit. The shares of all instances never exceed the limit. */
export interface Share {
  /**
   * Whether one more call may begin here now. `limit` is that of all instances together, `own` the
   * room that the call already holds (`Hold`).
   */
  admits(limit: number, own?: number): boolean
  /**
   * Whether one more call may begin here, now or after other instances return room. Changes
   * nothing.
   */
  mayAdmit(limit: number): boolean
  /**
   * False: the database did not answer the last request, so the use of other instances is unknown.
   */
  readonly isAnswered: boolean
  /** The shares of other instances, as the database said last. */
  readonly elsewhere: number
  /** Resolves when there is room for one more call, or after a tenth of a second. */
  obtain(limit: number): Promise<Hold>
  /** Counts a call without asking for room, such as one of the last run. */
  noted(limit: number): void
}

/** The room that a call has obtained. */
export interface Hold {
  /** False: no room became free in time. */
  readonly isGiven: boolean
  /** False: the database did not answer in time. */
  readonly isKnown: boolean
  /** Releases the hold: the call is counted now, or does not need the room. */
  end(): void
}

/** Nothing is held. */
export const noHold: Hold = { isGiven: false, isKnown: true, end: () => undefined }

export interface Shares {
  /**
   * @param resource the name of the limit on all instances, such as `carrier 7 calls`.
   * @param used returns how much of it this instance uses now.
   */
  of(resource: string, used: () => number): Share
}

/** Shares of limits on requests, which instances count in windows. */
export interface RequestShares {
  /** @param onReset another instance has called `reset`. */
  of(resource: string, used: () => number, onReset: () => void): Share
  /** The share is not used any more: what is stored of it stays. */
  forget(resource: string): void
  /** The other instances begin to count anew. */
  reset(resource: string): void
}

export const capActions = ['block', 'cap'] as const
/** `block`: no call. `cap`: calls may cost `amountMicros` in all. */
export type CapAction = (typeof capActions)[number]

export const capPeriods = ['duration', 'day'] as const
/** A cap is for the whole time of the guard, or for each day (UTC). */
export type CapPeriod = (typeof capPeriods)[number]

/**
 * The name of a cap's amount in the period that begins then (milliseconds UTC), the same on all
 * instances.
 */
export const capResource = (capUuid: string, periodStart: number): string =>
  `${capUuid} ${periodStart}`

export const capScopes = ['customer', 'extension', 'tenant'] as const
/** The kind of owner whose calls a guard covers. */
export type CapScope = (typeof capScopes)[number]

/** The calls that a guard covers. */
export interface Brake {
  readonly scope: CapScope
  /** The id of the customer, the extension or the tenant. */
  readonly scopeId: number
  /** The prefix in the form of `normalPrefix`. */
  readonly prefix: string
  /**
   * Set for the scope `extension`: a PBX or a proxy of the tenant sends its calls under this
   * number.
   */
  readonly extension: { readonly number: string; readonly tenantId: number } | null
}

export interface SpendingCap extends Brake {
  readonly capUuid: string
  readonly action: CapAction
  /** The amount of a cap; 0 for a block. */
  readonly amountMicros: number
  /** Currency of a cap; null for a block. */
  readonly currency: string | null
  /** Period of a cap; null for a block. */
  readonly per: CapPeriod | null
  /** Milliseconds UTC. */
  readonly startsAt: number
  /** Null: it stays until it is removed. */
  readonly expiresAt: number | null
  /** Answered calls that began before end; null: calls that are live go on. */
  readonly endsCallsBefore: number | null
}
