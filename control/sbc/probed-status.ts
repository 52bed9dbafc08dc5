/** What OPTIONS tell of a dispatcher node or a carrier's gateway, as the API shows it. */
import { timeToText } from '../../schema/columns.ts'
import type { NodeState, ProbedStatus } from '../../schema/contracts/dispatcher.ts'

export interface ProbedStatusView {
  readonly state: NodeState
  /** Smoothed round trip of the probes. */
  readonly latency_ms: number | null
  /** Status 0: no answer; `reason` says which way. */
  readonly last_probe: {
    readonly at: string
    readonly status: number
    readonly reason: string
  } | null
  readonly probes: ProbedStatus['probes']
}

export const probedStatusView = ({
  state,
  latencyMs,
  lastProbe,
  probes,
}: ProbedStatus): ProbedStatusView => ({
  state,
  latency_ms: latencyMs,
  last_probe: lastProbe && { ...lastProbe, at: timeToText(lastProbe.at) },
  probes,
})
