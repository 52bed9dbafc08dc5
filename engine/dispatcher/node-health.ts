/**
 * The state of one node after probes, live calls and decisions of operators (SPECIFICATION.md §3.2
 * and §11). Pure: the caller has the value.
 *
 * A node that was never probed is `active`: after a start the first call must not wait for three
 * probes, and a dead node costs one failover step until its first probes have failed.
 */
import type { NodeState } from '../../schema/contracts/engine.ts'

/** The state that an operator has chosen; `probing` is never stored. */
export type OperatorState = 'active' | 'inactive'

export interface Health {
  readonly state: NodeState
  /** Consecutive failures and successes; one of them is always 0. */
  readonly failures: number
  readonly successes: number
}

export interface ProbeThresholds {
  readonly failuresToProbing: number
  readonly successesToActive: number
}

export function newHealth(state: NodeState): Health {
  return { state, failures: 0, successes: 0 }
}

/** The health after one OPTIONS result. Only an operator ends maintenance (`inactive`). */
export function afterProbe(health: Health, isUp: boolean, limits: ProbeThresholds): Health {
  if (health.state === 'inactive') return health
  const failures = isUp ? 0 : health.failures + 1
  const successes = isUp ? health.successes + 1 : 0
  if (health.state === 'active' && failures >= limits.failuresToProbing)
    return { state: 'probing', failures, successes }
  if (health.state === 'probing' && successes >= limits.successesToActive)
    return { state: 'active', failures, successes }
  return { state: health.state, failures, successes }
}

/**
 * A live INVITE that failed counts as one failed probe; one that was answered forgives the
 * failures before it, but does not bring a node back: only probes do (SPECIFICATION.md §10.4).
 */
export function afterCall(
  health: Health,
  outcome: 'answered' | 'failed',
  limits: ProbeThresholds,
): Health {
  if (outcome === 'failed') return afterProbe(health, false, limits)
  return health.failures === 0 ? health : { ...health, failures: 0 }
}
