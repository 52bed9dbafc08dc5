/** What a chart draws. */
export interface Series {
  /** Seconds UTC. */
  readonly times: readonly number[]
  readonly values: readonly (number | null)[]
}
