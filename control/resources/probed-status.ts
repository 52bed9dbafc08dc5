/** Probe results of a dispatcher node or a carrier gateway, as the API shows them. */
import { timeToText } from '../../schema/columns.ts'
import type { NodeState, ProbedStatus } from '../../schema/contracts/dispatcher.ts'

export interface ProbedStatusView {
  readonly state: NodeState
  /** Smoothed round-trip time of the probes. */
  readonly latency_ms: number | null
  /** Status 0 when there was no response; `reason` says why. */
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
