/** Limits that all nodes of a database share, and spend guards: brakes on calls to a prefix. */

/** What this node may use of one limit. The shares of all nodes are never more than the limit. */
export interface Share {
  /**
   * Whether one more may begin here now. `limit`: of all nodes together. `own`: room that is held for it already
   * (`Hold`).
   */
  admits(limit: number, own?: number): boolean
  /** Whether one more may begin here, now or when other nodes have given room back. Changes nothing. */
  mayAdmit(limit: number): boolean
  /** False: the database has not answered when it was asked last. What other nodes use is not known. */
  readonly isAnswered: boolean
  /** The shares of other nodes, as the database said last. */
  readonly elsewhere: number
  /** Resolves when there is room for one more, or when there is none within a tenth of a second. */
  obtain(limit: number): Promise<Hold>
  /** Something counts here that was not asked for, such as a call of the last run. */
  noted(limit: number): void
}

/** What a call has obtained. */
export interface Hold {
  /** False: there was no more in time. */
  readonly isGiven: boolean
  /** False: the database has not said in time whether there is more. */
  readonly isKnown: boolean
  /** It is counted now, or not needed. */
  end(): void
}

/** Nothing is held. */
export const noHold: Hold = { isGiven: false, isKnown: true, end: () => undefined }

export interface Shares {
  /**
   * @param resource names the limit for all nodes, such as `carrier 7 calls`.
   * @param used how much of it is used on this node now.
   */
  of(resource: string, used: () => number): Share
}

/** Of requests, which nodes count in windows. */
export interface RequestShares {
  /** @param onReset another node has called `reset`. */
  of(resource: string, used: () => number, onReset: () => void): Share
  /** The share is not used any more: what is stored of it stays. */
  forget(resource: string): void
  /** The other nodes begin to count anew. */
  reset(resource: string): void
}

export const guardActions = ['block', 'cap'] as const
/** `block`: no call. `cap`: calls may cost `amountMicros` in all. */
export type GuardAction = (typeof guardActions)[number]

export const guardPeriods = ['duration', 'day'] as const
/** A cap is for the whole time of the guard, or for each day (UTC). */
export type GuardPeriod = (typeof guardPeriods)[number]

/** Names what all nodes may spend within a cap in the period that begins then (milliseconds UTC). */
export const capResource = (guardUuid: string, periodStart: number): string =>
  `${guardUuid} ${periodStart}`

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
