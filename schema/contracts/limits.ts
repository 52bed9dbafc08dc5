/** A limit that all nodes of a database share, as the code that counts against it sees it. */

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
  readonly isHeard: boolean
  /** Resolves when there is room for one more, or when there is none within a tenth of a second. */
  obtain(limit: number): Promise<Hold>
  /** Something counts here that was not asked for, such as a call of the last run. */
  noted(limit: number): void
}

/** Room for one more. */
export interface Hold {
  /** False: there was none in time. */
  readonly isGiven: boolean
  /** It is counted now, or not needed. */
  end(): void
}

/** Nothing is held. */
export const noHold: Hold = { isGiven: false, end: () => undefined }

export interface Shares {
  /**
   * @param resource names the limit for all nodes, such as `carrier 7 calls`.
   * @param used how much of it is used on this node now.
   */
  of(resource: string, used: () => number): Share
}
