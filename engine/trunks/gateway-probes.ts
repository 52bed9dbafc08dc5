/** Which carrier gateways answer OPTIONS: the dispatcher's prober, at longer intervals. */
import type { Schedule } from '../../schema/clock.ts'
import type { ProbeSettings } from '../dispatcher/destination-set.ts'
import {
  ProbedTargets,
  type ProbedStateChange,
  type ProbeReport,
} from '../dispatcher/probed-targets.ts'
import type { SendProbe } from '../dispatcher/prober.ts'
import { gatewayUri } from '../routing/gateway-uri.ts'
import type { CarrierRecord } from '../routing/routing-records.ts'

/**
 * `unproven`: it has never answered a probe. Many carriers ignore OPTIONS, so calls may go there
 * when no other gateway is left.
 */
export type GatewayReachability = 'up' | 'unproven' | 'down'

export interface GatewayProbesDeps {
  readonly now: () => number
  readonly schedule: Schedule
  readonly sendProbe: SendProbe
  readonly intervalMs: number
  readonly failuresToProbing: number
  readonly successesToActive: number
  readonly onChange: (change: ProbedStateChange) => void
  /** How long an answer may wait to be read here. Default: not at all. */
  readonly lagMs?: (() => number) | undefined
}

/** Any answer to OPTIONS shows a live gateway, but for those that say that it cannot serve. */
const OK_CODES: ProbeSettings['okCodes'] = [
  { from: 200, to: 407 },
  { from: 409, to: 499 },
  { from: 501, to: 501 },
  { from: 505, to: 699 },
]

export class GatewayProbes {
  readonly #targets: ProbedTargets
  readonly #settings: ProbeSettings

  constructor(deps: GatewayProbesDeps) {
    const { intervalMs, failuresToProbing, successesToActive } = deps
    this.#settings = {
      intervalMs,
      failuresToProbing,
      successesToActive,
      timeoutMs: intervalMs / 2,
      okCodes: OK_CODES,
    }
    this.#targets = new ProbedTargets(deps)
  }

  start(): void {
    this.#targets.start()
  }

  stop(): void {
    this.#targets.stop()
  }

  /** Probes the gateways to which calls may go, from now on. */
  watch(carriers: readonly CarrierRecord[]): void {
    const used = carriers.filter(({ isActive, direction }) => isActive && direction !== 'in')
    const gateways = used.flatMap((carrier) => carrier.gateways.filter((each) => each.isOutbound))
    this.#targets.watch(
      gateways.map((gateway) => ({
        id: gateway.gatewayId,
        destination: gatewayUri(gateway),
        settings: this.#settings,
        operatorState: 'active',
      })),
    )
  }

  reachability(gatewayId: number): GatewayReachability {
    const report = this.#targets.report(gatewayId)
    if (report === undefined || report.state === 'active') return 'up'
    return report.probes.answered === 0 ? 'unproven' : 'down'
  }

  /** What a live INVITE told; see the dispatcher's `reportOutcome`. */
  reportCall(gatewayId: number, outcome: 'answered' | 'failed'): void {
    this.#targets.reportCall(gatewayId, outcome)
  }

  /** Undefined: it is not probed. */
  report(gatewayId: number): ProbeReport | undefined {
    return this.#targets.report(gatewayId)
  }
}
