/** What is kept up with carriers beside calls: registrations, and knowing which gateways are alive. */
import type { Log } from '../../schema/contracts/log.ts'
import type { CarrierRegistrationStatus, ProbedStatus } from '../../schema/contracts/engine.ts'
import {
  type ProbedStateChange,
  ProbedTargets,
  type ProbeReport,
} from '../dispatcher/probed-targets.ts'
import { type CarrierRecord, gatewayUri } from '../routing/routing-records.ts'
import { CarrierRegistration, type Account, type RegistrationDeps } from './carrier-registration.ts'
import type { Schedule } from '../../schema/clock.ts'
import type { ProbeSettings } from '../dispatcher/destination-set.ts'
import type { SendProbe } from '../dispatcher/prober.ts'

interface TrunksDeps
  extends Omit<RegistrationDeps, 'onChange'>, Omit<GatewayProbesDeps, 'onChange'> {
  /** A gateway or a registration is in another state. */
  readonly onStateChange?: (change: TrunkChange) => void
  readonly log: Log
}

interface TrunkChange {
  readonly kind: 'gateway' | 'registration'
  /** Of the gateway, or the carrier. */
  readonly subjectId: number
  readonly tenantId: number | null
  readonly name: string
  readonly from: string
  readonly to: string
  readonly cause: ProbedStateChange['cause'] | 'register'
  readonly reason: string
}

const DEFAULT_EXPIRES_SECONDS = 3_600
/** Carriers are not asked all at the same moment. */
const SPREAD_MS = 500
/** How long the end of the process waits for carriers. */
const UNREGISTER_MS = 1_000

export class Trunks {
  readonly #deps: TrunksDeps
  readonly #probes: GatewayProbes
  readonly #registrations = new Map<number, CarrierRegistration>()
  readonly #gateways = new Map<number, Gateway>()
  #isRunning = false

  constructor(deps: TrunksDeps) {
    this.#deps = deps
    this.#probes = new GatewayProbes({
      ...deps,
      onChange: (change) => this.#onGatewayChange(change),
    })
  }

  start(): void {
    this.#isRunning = true
    this.#probes.start()
    for (const registration of this.#registrations.values()) this.#begin(registration)
  }

  /** Resolves when the carriers have been told that we are gone, or did not answer in time. */
  async stop(): Promise<void> {
    this.#isRunning = false
    this.#probes.stop()
    const registrations = [...this.#registrations.values()]
    this.#registrations.clear()
    const told = Promise.all(registrations.map((registration) => registration.end()))
    let cancel: () => void = () => undefined
    const tooLate = new Promise<void>((resolve) => {
      cancel = this.#deps.schedule(resolve, UNREGISTER_MS)
    })
    if (registrations.length > 0) await Promise.race([told, tooLate])
    cancel()
  }

  /** Another process registers and probes instead: no carrier is told that we are gone. */
  leave(): void {
    this.#isRunning = false
    this.#probes.stop()
    for (const registration of this.#registrations.values()) registration.leave()
    this.#registrations.clear()
  }

  /** Follows the carriers as they are from now on; what has not changed is left alone. */
  watch(carriers: readonly CarrierRecord[]): void {
    this.#probes.watch(carriers)
    this.#gateways.clear()
    for (const { name: carrier, tenantId, gateways } of carriers)
      for (const gateway of gateways)
        this.#gateways.set(gateway.gatewayId, { carrier, tenantId, uri: gatewayUri(gateway) })
    const wanted = new Map(
      carriers.flatMap((carrier) => {
        const account = accountOf(carrier)
        return account ? [[carrier.carrierId, { account, carrier }] as const] : []
      }),
    )
    for (const [carrierId, registration] of this.#registrations) {
      const account = wanted.get(carrierId)?.account
      if (JSON.stringify(account) === JSON.stringify(registration.account)) continue
      this.#registrations.delete(carrierId)
      void registration.end()
    }
    for (const [carrierId, { account, carrier }] of wanted)
      if (!this.#registrations.has(carrierId)) this.#add(carrier, account)
  }

  /** Undefined: the carrier asks for none, or is not active. */
  registrationOf(carrierId: number): CarrierRegistrationStatus | undefined {
    return this.#registrations.get(carrierId)?.report()
  }

  /** Undefined: no calls go there, so it is not probed. */
  gatewayStatus(gatewayId: number): ProbedStatus | undefined {
    const report = this.#probes.report(gatewayId)
    if (report === undefined) return undefined
    const { state, latencyMs, lastProbe, probes } = report
    const rounded = latencyMs === undefined ? null : Math.round(latencyMs * 10) / 10
    return { state, latencyMs: rounded, lastProbe: lastProbe ?? null, probes }
  }

  reachability(gatewayId: number): GatewayReachability {
    return this.#probes.reachability(gatewayId)
  }

  /** What a live INVITE told about a gateway. */
  reportCall(gatewayId: number, outcome: 'answered' | 'failed'): void {
    this.#probes.reportCall(gatewayId, outcome)
  }

  /** How many registrations are in which state. */
  telemetry(): Readonly<Record<string, number>> {
    const states = [...this.#registrations.values()].map((each) => each.report().state)
    const count = (state: string) => states.filter((each) => each === state).length
    return {
      carrier_registrations: count('registered'),
      carrier_registrations_failed: count('failed'),
    }
  }

  #onGatewayChange({ id: gatewayId, from, to, cause, reason }: ProbedStateChange): void {
    const gateway = this.#gateways.get(gatewayId)
    this.#deps.log(to === 'active' ? 'info' : 'warn', `gateway is ${to}`, {
      gatewayId,
      carrier: gateway?.carrier,
      from,
      reason,
    })
    if (gateway === undefined) return
    const { tenantId, uri } = gateway
    const subject = { kind: 'gateway', subjectId: gatewayId, tenantId, name: uri } as const
    this.#deps.onStateChange?.({ ...subject, from, to, cause, reason })
  }

  #add({ carrierId, name: carrier, tenantId }: CarrierRecord, account: Account): void {
    // Attempts in between tell nothing: the carrier knows us, or it does not.
    let last = 'unregistered'
    const registration = new CarrierRegistration(account, {
      ...this.#deps,
      onChange: (state, answer) => {
        this.#deps.log(state === 'failed' ? 'warn' : 'info', `carrier registration is ${state}`, {
          carrier,
          status: answer?.status,
          reason: answer?.reason,
        })
        if (state === 'registering' || state === last) return
        const reason = answer === null ? '' : `${answer.status} ${answer.reason}`
        const subject = { kind: 'registration', subjectId: carrierId, tenantId, name: carrier }
        const change = { ...subject, from: last, to: state, cause: 'register', reason } as const
        last = state
        this.#deps.onStateChange?.({ ...change, kind: 'registration' })
      },
    })
    this.#registrations.set(carrierId, registration)
    if (this.#isRunning) this.#begin(registration)
  }

  #begin(registration: CarrierRegistration): void {
    const { schedule, random } = this.#deps
    schedule(() => {
      if (this.#isRunning && [...this.#registrations.values()].includes(registration))
        registration.begin()
    }, random() * SPREAD_MS)
  }
}

interface Gateway {
  readonly carrier: string
  readonly tenantId: number | null
  readonly uri: string
}

/** Undefined: the carrier is not registered with. */
function accountOf({ auth, gateways, isActive }: CarrierRecord): Account | undefined {
  const { type, username, password, realm, fromDomain: domain, expiresSeconds } = auth
  if (!isActive || type !== 'register' || username === null || password === null) return undefined
  const outbound = gateways.filter(({ isOutbound }) => isOutbound)
  const registrars = (outbound.length > 0 ? outbound : gateways)
    .toSorted((one, other) => one.priority - other.priority)
    .map(gatewayUri)
  if (registrars.length === 0) return undefined
  return {
    registrars,
    username,
    password,
    realm,
    domain,
    expiresSeconds: expiresSeconds ?? DEFAULT_EXPIRES_SECONDS,
  }
}

// Which carrier gateways answer OPTIONS: the dispatcher's prober, at longer intervals.

/**
 * `unproven`: it has never answered a probe. Many carriers ignore OPTIONS, so calls may go there
 * when no other gateway is left.
 */
type GatewayReachability = 'up' | 'unproven' | 'down'

interface GatewayProbesDeps {
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

class GatewayProbes {
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
