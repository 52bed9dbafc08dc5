/** Relays of media as telemetry shows them. */

export interface RelayStatus {
  /** `host:port`. */
  readonly name: string
  readonly weight: number
  readonly isAlive: boolean
  /** Smoothed round trip; null: it has not answered yet. */
  readonly latencyMs: number | null
  /** Sessions at the relay, those of other programs included; null: not known yet. */
  readonly sessions: number | null
  /** Requests without an answer so far. */
  readonly outstanding: number
  /** Totals since the start of the process. */
  readonly requests: number
  readonly timeouts: number
  readonly errors: number
  readonly restarts: number
}
