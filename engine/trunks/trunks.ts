/** Registrations at carriers, and probes of their gateways. */
import type { Log } from '../../schema/contracts/log.ts'
import type { CarrierRegistrationStatus, ProbedStatus } from '../../schema/contracts/engine.ts'
import { type ProbedStateChange, ProbedTargets } from '../dispatcher/probed-targets.ts'
import { type CarrierRecord, gatewayUri } from '../routing/routing-records.ts'
import {
  CarrierRegistration,
  type CarrierAccount,
  type RegistrationDeps,
} from './carrier-registration.ts'
import type { ProbeSettings } from '../dispatcher/destination-set.ts'
import type { SendProbe } from '../dispatcher/probe-loop.ts'

interface TrunksDeps extends Omit<RegistrationDeps, 'onChange'> {
  readonly sendProbe: SendProbe
  readonly intervalMs: number
  readonly failuresToProbing: number
  readonly successesToActive: number
  /** How long an answer may wait to be read here. Default: not at all. */
  readonly lagMs?: (() => number) | undefined
  /** A gateway or a registration is in another state. */
  readonly onStateChange?: (change: TrunkChange) => void
  readonly log: Log
}

interface TrunkChange {
  readonly kind: 'gateway' | 'registration'
  /** Id of the gateway, or of the carrier. */
  readonly subjectId: number
  readonly tenantId: number | null
  readonly name: string
  readonly from: string
  readonly to: string
  readonly cause: ProbedStateChange['cause'] | 'register'
  readonly reason: string
}

/**
 * `unproven`: it has never answered a probe. Many carriers ignore OPTIONS, so calls may go there
 * when no other gateway is left.
 */
type GatewayReachability = 'up' | 'unproven' | 'down'

/** Any answer to OPTIONS shows a live gateway, but for those that say that it cannot serve. */
const OK_CODES: ProbeSettings['okCodes'] = [
  { from: 200, to: 407 },
  { from: 409, to: 499 },
  { from: 501, to: 501 },
  { from: 505, to: 699 },
]

const DEFAULT_EXPIRES_SECONDS = 3_600
/** The first REGISTERs of all carriers are spread over this time. */
const SPREAD_MS = 500
/** How long the end of the process waits for carriers. */
const UNREGISTER_MS = 1_000

export class Trunks {
  readonly #deps: TrunksDeps
  /** Gateways to which calls may go, probed as the dispatcher probes nodes, at longer intervals. */
  readonly #probes: ProbedTargets
  readonly #registrations = new Map<number, CarrierRegistration>()
  readonly #gateways = new Map<number, Gateway>()
  #isRunning = false

  constructor(deps: TrunksDeps) {
    this.#deps = deps
    this.#probes = new ProbedTargets({
      ...deps,
      onChange: (change) => this.#onGatewayChange(change),
    })
  }

  start(): void {
    this.#isRunning = true
    this.#probes.start()
    for (const registration of this.#registrations.values()) this.#begin(registration)
  }

  /** Ends all registrations. Resolves when the carriers have answered, or after a bounded time. */
  async stop(): Promise<void> {
    this.#isRunning = false
    this.#probes.stop()
    const registrations = [...this.#registrations.values()]
    this.#registrations.clear()
    const farewells = Promise.all(registrations.map((registration) => registration.end()))
    let cancel: () => void = () => undefined
    const tooLate = new Promise<void>((resolve) => {
      cancel = this.#deps.schedule(resolve, UNREGISTER_MS)
    })
    if (registrations.length > 0) await Promise.race([farewells, tooLate])
    cancel()
  }

  /** Stops without ending registrations: another process registers and probes instead. */
  leave(): void {
    this.#isRunning = false
    this.#probes.stop()
    for (const registration of this.#registrations.values()) registration.leave()
    this.#registrations.clear()
  }

  /** Follows the carriers as they are from now on; what has not changed is left alone. */
  watch(carriers: readonly CarrierRecord[]): void {
    this.#watchGateways(carriers)
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
    const report = this.#probes.report(gatewayId)
    if (report === undefined || report.state === 'active') return 'up'
    return report.probes.answered === 0 ? 'unproven' : 'down'
  }

  /** The result of a live INVITE to a gateway; see the dispatcher's `reportOutcome`. */
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

  #watchGateways(carriers: readonly CarrierRecord[]): void {
    const { intervalMs, failuresToProbing, successesToActive } = this.#deps
    const settings: ProbeSettings = {
      intervalMs,
      failuresToProbing,
      successesToActive,
      timeoutMs: intervalMs / 2,
      okCodes: OK_CODES,
    }
    const used = carriers.filter(({ isActive, direction }) => isActive && direction !== 'in')
    const gateways = used.flatMap((carrier) => carrier.gateways.filter((each) => each.isOutbound))
    this.#probes.watch(
      gateways.map((gateway) => ({
        id: gateway.gatewayId,
        destination: gatewayUri(gateway),
        settings,
        operatorState: 'active',
      })),
    )
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
    this.#deps.onStateChange?.({
      kind: 'gateway',
      subjectId: gatewayId,
      tenantId,
      name: uri,
      from,
      to,
      cause,
      reason,
    })
  }

  #add({ carrierId, name: carrier, tenantId }: CarrierRecord, account: CarrierAccount): void {
    // An attempt under way is no change of state: the carrier knows us, or it does not.
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
        const from = last
        last = state
        this.#deps.onStateChange?.({
          kind: 'registration',
          subjectId: carrierId,
          tenantId,
          name: carrier,
          from,
          to: state,
          cause: 'register',
          reason,
        })
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
function accountOf({ auth, gateways, isActive }: CarrierRecord): CarrierAccount | undefined {
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
