/** Which carrier gateways answer OPTIONS: the dispatcher's prober, at a pace that suits a stranger. */
import type { Schedule } from '../../schema/clock.ts'
import type { ProbeSettings } from '../dispatcher/destination-set.ts'
import {
  HealthMonitor,
  type HealthChange,
  type HealthReport,
} from '../dispatcher/health-monitor.ts'
import type { SendProbe } from '../dispatcher/prober.ts'
import { gatewayUri } from '../routing/gateway-uri.ts'
import type { CarrierRecord } from '../routing/routing-records.ts'

/**
 * `unproven`: it has never answered a probe. Many carriers ignore OPTIONS, so calls may go there
 * when nobody else is left.
 */
export type GatewayStanding = 'up' | 'unproven' | 'down'

export interface GatewayHealthDeps {
  readonly now: () => number
  readonly schedule: Schedule
  readonly sendProbe: SendProbe
  readonly intervalMs: number
  readonly failuresToProbing: number
  readonly successesToActive: number
  readonly onChange: (change: HealthChange) => void
  /** How long an answer may wait to be read here. Default: not at all. */
  readonly lagMs?: (() => number) | undefined
}

/** Who refuses OPTIONS is alive; these say that it cannot serve. */
const OK_CODES: ProbeSettings['okCodes'] = [
  { from: 200, to: 407 },
  { from: 409, to: 499 },
  { from: 501, to: 501 },
  { from: 505, to: 699 },
]

export class GatewayHealth {
  readonly #monitor: HealthMonitor
  readonly #settings: ProbeSettings

  constructor(deps: GatewayHealthDeps) {
    const { intervalMs, failuresToProbing, successesToActive } = deps
    this.#settings = {
      ...{ intervalMs, failuresToProbing, successesToActive },
      timeoutMs: intervalMs / 2,
      okCodes: OK_CODES,
    }
    this.#monitor = new HealthMonitor(deps)
  }

  start(): void {
    this.#monitor.start()
  }

  stop(): void {
    this.#monitor.stop()
  }

  /** Probes the gateways to which calls may go, from now on. */
  watch(carriers: readonly CarrierRecord[]): void {
    const used = carriers.filter(({ isActive, direction }) => isActive && direction !== 'in')
    const gateways = used.flatMap((carrier) => carrier.gateways.filter((each) => each.isOutbound))
    this.#monitor.watch(
      gateways.map((gateway) => ({
        id: gateway.gatewayId,
        destination: gatewayUri(gateway),
        settings: this.#settings,
        operatorState: 'active',
      })),
    )
  }

  standing(gatewayId: number): GatewayStanding {
    const report = this.#monitor.report(gatewayId)
    if (report === undefined || report.state === 'active') return 'up'
    return report.probes.answered === 0 ? 'unproven' : 'down'
  }

  /** What a live INVITE told; see the dispatcher's `reportOutcome`. */
  reportCall(gatewayId: number, outcome: 'answered' | 'failed'): void {
    this.#monitor.reportCall(gatewayId, outcome)
  }

  /** Undefined: it is not probed. */
  report(gatewayId: number): HealthReport | undefined {
    return this.#monitor.report(gatewayId)
  }
}
