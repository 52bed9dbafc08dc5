/**
 * The state of every probed destination: takes probe results, outcomes of live calls and operators'
 * decisions, and reports changes of state. It knows destinations, not dispatcher sets, so that a
 * second instance probes the gateways of carriers.
 */
import type { Every, Schedule } from '../../schema/clock.ts'
import { afterCall, afterProbe, type Health, newHealth, type OperatorState } from './node-health.ts'
import { Prober } from './prober.ts'
import type { NodeState } from '../../schema/contracts/engine.ts'
import { type ProbeTarget, type SendProbe, type ProbeVerdict } from './probe-loop.ts'

export interface ProbedTarget extends ProbeTarget {
  readonly operatorState: OperatorState
}

export interface ProbedStateChange {
  readonly id: number
  readonly from: NodeState
  readonly to: NodeState
  readonly cause: 'probe' | 'call' | 'operator' | 'reload'
  /** The result of the last probe, or who acted. */
  readonly reason: string
  readonly at: number
  /** The operator, as in the audit log; absent: no operator, or not known. */
  readonly by?: string | undefined
}

/** Health, latency and counts of one target. */
export interface ProbeReport extends Health {
  /** Smoothed round trip; undefined until a probe was answered. */
  readonly latencyMs: number | undefined
  readonly lastProbe: Pick<ProbeVerdict, 'at' | 'status' | 'reason'> | undefined
  /** Probes that ended: with any answer, and without success. */
  readonly probes: { readonly sent: number; readonly answered: number; readonly failed: number }
}

export interface ProbedTargetsDeps {
  readonly now: () => number
  readonly schedule: Schedule
  /** Rounds of the process with which the first targets are probed. */
  readonly every?: Every | undefined
  readonly sendProbe: SendProbe
  readonly onChange: (change: ProbedStateChange) => void
  /** How long an answer may wait to be read here. Default: not at all. */
  readonly lagMs?: (() => number) | undefined
}

interface WatchedTarget {
  target: ProbedTarget
  report: ProbeReport
}

export class ProbedTargets {
  readonly #deps: ProbedTargetsDeps
  readonly #prober: Prober
  #watched: ReadonlyMap<number, WatchedTarget> = new Map()

  constructor(deps: ProbedTargetsDeps) {
    this.#deps = deps
    this.#prober = new Prober({
      now: deps.now,
      schedule: deps.schedule,
      every: deps.every,
      sendProbe: deps.sendProbe,
      lagMs: deps.lagMs,
      onVerdict: (id, verdict) => this.#onVerdict(id, verdict),
    })
  }

  start(): void {
    this.#prober.start()
  }

  stop(): void {
    this.#prober.stop()
  }

  /**
   * Replaces the targets. One with the same id and destination keeps its health, unless the
   * decision of the operator has changed meanwhile; every other starts anew. Returns the changes of
   * state, for the caller to report once its own tables are new.
   */
  watch(targets: readonly ProbedTarget[]): readonly ProbedStateChange[] {
    const before = this.#watched
    this.#watched = new Map(
      targets.map((target) => [target.id, { target, report: carriedOver(target, before) }]),
    )
    this.#prober.watch(targets)
    const at = this.#deps.now()
    const changes: ProbedStateChange[] = []
    for (const { target, report } of this.#watched.values()) {
      const from = before.get(target.id)?.report.state
      if (from === undefined || from === report.state) continue
      changes.push({
        id: target.id,
        from,
        to: report.state,
        cause: 'reload',
        reason: 'reloaded',
        at,
      })
    }
    return changes
  }

  stateOf(id: number): NodeState | undefined {
    return this.#watched.get(id)?.report.state
  }

  report(id: number): ProbeReport | undefined {
    return this.#watched.get(id)?.report
  }

  /** A failed call is a failed probe, and asks for a real one at once. */
  reportCall(id: number, outcome: 'answered' | 'failed'): void {
    const watched = this.#watched.get(id)
    if (!watched) return
    const health = afterCall(watched.report, outcome, watched.target.settings)
    this.#move(watched, health, 'call', `call ${outcome}`)
    if (outcome === 'failed') this.#prober.probeNow(id)
  }

  /**
   * The operator's decision takes effect at once; a probe follows, so that a wrong one is soon
   * noticed.
   */
  setState(id: number, state: NodeState, by?: string): void {
    const watched = this.#watched.get(id)
    if (!watched) return
    const operatorState = state === 'inactive' ? 'inactive' : 'active'
    watched.target = { ...watched.target, operatorState }
    this.#move(watched, newHealth(state), 'operator', 'set by operator', by)
    if (state !== 'inactive') this.#prober.probeNow(id)
  }

  #onVerdict(id: number, verdict: ProbeVerdict): void {
    const watched = this.#watched.get(id)
    if (!watched) return
    const { report, target } = watched
    const { at, isUp, status, reason, latencyMs: sampleMs } = verdict
    const { latencyMs, probes } = report
    const { state, failures, successes } = afterProbe(report, isUp, target.settings)
    watched.report = {
      state,
      failures,
      successes,
      lastProbe: { at, status, reason },
      latencyMs: sampleMs === undefined ? latencyMs : smoothLatency(latencyMs, sampleMs),
      probes: {
        sent: probes.sent + 1,
        answered: probes.answered + (status === 0 ? 0 : 1),
        failed: probes.failed + (isUp ? 0 : 1),
      },
    }
    if (state !== report.state)
      this.#report(watched, report.state, 'probe', status === 0 ? reason : `${status} ${reason}`)
  }

  #move(
    watched: WatchedTarget,
    health: Health,
    cause: ProbedStateChange['cause'],
    reason: string,
    by?: string,
  ): void {
    const from = watched.report.state
    const { state, failures, successes } = health
    watched.report = { ...watched.report, state, failures, successes }
    if (from !== state) this.#report(watched, from, cause, reason, by)
  }

  #report(
    { target, report }: WatchedTarget,
    from: NodeState,
    cause: ProbedStateChange['cause'],
    reason: string,
    by?: string,
  ): void {
    this.#deps.onChange({
      id: target.id,
      from,
      to: report.state,
      cause,
      reason,
      at: this.#deps.now(),
      ...(by !== undefined && { by }),
    })
  }
}

const noProbes = { sent: 0, answered: 0, failed: 0 }

function carriedOver(
  target: ProbedTarget,
  before: ReadonlyMap<number, WatchedTarget>,
): ProbeReport {
  const known = before.get(target.id)
  const isSameNode = known?.target.destination === target.destination
  const fresh = newHealth(target.operatorState)
  if (!known || !isSameNode)
    return { ...fresh, latencyMs: undefined, lastProbe: undefined, probes: noProbes }
  const isInactive = known.report.state === 'inactive'
  const hasOperatorChanged = isInactive !== (target.operatorState === 'inactive')
  return hasOperatorChanged ? { ...known.report, ...fresh } : known.report
}

/** Smoothed round trip, as RFC 6298 §2 smooths it: an eighth of each new sample. Milliseconds. */
export function smoothLatency(smoothedMs: number | undefined, sampleMs: number): number {
  return smoothedMs === undefined ? sampleMs : smoothedMs + (sampleMs - smoothedMs) / 8
}
