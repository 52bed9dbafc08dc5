/** The options of a simulated history, and its results. */

export interface HistoryOptions {
  /** The machine goes on with what was written and read back, after each step. */
  readonly isCopied?: boolean
  /** Ringing calls are taken by other instances, as in semi-attended transfers. */
  readonly takesRinging?: boolean
  /** Gets the events, line by line. */
  readonly onLine?: (line: string) => void
}

export interface HistoryResult {
  readonly steps: number
  readonly calls: number
  /** Calls that went on from what was saved of them. */
  readonly restarted: number
  /** How calls ended: kind, and whether they had been answered. */
  readonly ends: readonly string[]
  /** All commands, for comparison. */
  readonly digest: string
}
