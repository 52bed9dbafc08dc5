/** Rules by which a call hunts after an answer of a carrier. */

export const redirectPolicies = ['refuse', 'follow'] as const

/** Another answer in place of the carrier's. */
export interface MappedAnswer {
  readonly match: string
  readonly status: number
  /** Null: the usual phrase of the status. */
  readonly reason: string | null
}

export interface HuntingRules {
  /** Answers after which the next gateway is tried; null: the usual ones. */
  readonly nextOn: readonly string[] | null
  /** Answers after which none is tried; they count more than `nextOn`. */
  readonly stopOn: readonly string[]
  /** Null: as many as there are gateways. */
  readonly maxAttempts: number | null
  /** Null: as long as it takes. */
  readonly maxSeconds: number | null
  readonly redirects: (typeof redirectPolicies)[number]
  /** The first that matches counts. */
  readonly answers: readonly MappedAnswer[]
}
