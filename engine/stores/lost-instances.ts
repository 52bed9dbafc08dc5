import type { InstanceStatus, InstancesPort } from '../../schema/contracts/instances.ts'
import { HEARTBEAT_TTL_MS } from '../../schema/instances/instance-registry.ts'
import type { InstanceChange } from './instance-news.ts'
import type { Log } from '../../schema/contracts/log.ts'

/** Logs when another instance of the installation is lost, and when it is back. */
export class LostInstances {
  readonly #deps: LostInstancesDeps
  readonly #lost = new Map<string, Pick<InstanceStatus, 'epoch' | 'startedAt'>>()
  /** Names of instances that this process has seen alive. */
  readonly #seen = new Set<string>()
  #answersSince: number | undefined

  constructor(deps: LostInstancesDeps) {
    this.#deps = deps
  }

  poll(): void {
    const { instances, now, log, tell = () => undefined } = this.#deps
    if (instances.condition !== 'valid' || instances.heartbeatAgeMs >= HEARTBEAT_TTL_MS) {
      this.#answersSince = undefined
      return
    }
    // While the server did not answer, no instance could report: each gets the time to do so.
    this.#answersSince ??= now()
    if (now() - this.#answersSince < HEARTBEAT_TTL_MS) return
    for (const { name, state, address, liveCalls, isThis, epoch, startedAt } of instances.list()) {
      if (isThis) continue
      const lost = this.#lost.get(name)
      if (state === 'lost' && lost === undefined) {
        this.#lost.set(name, { epoch, startedAt })
        tell({ type: 'node.lost', node: name, address, epoch })
        log('error', 'another instance sends no heartbeat: it is down, paused or cut off', {
          node: name,
          address,
          liveCalls,
        })
      }
      // The run that was lost is over, and no other one has begun.
      if (lost && state === 'stopped' && epoch > lost.epoch && startedAt === lost.startedAt) {
        this.#lost.set(name, { epoch, startedAt })
        tell({ type: 'node.fenced', node: name, address, epoch: lost.epoch })
      }
      if (state !== 'serving' && state !== 'draining') continue
      const isBack = this.#lost.delete(name)
      if (isBack) log('info', 'another instance sends heartbeats again', { node: name, address })
      // It may have come back while no other instance was there to report it: its next loss would
      // not be reported, either.
      if (!isBack && this.#seen.has(name)) continue
      this.#seen.add(name)
      tell({ type: 'node.recovered', node: name, address, epoch })
    }
  }
}

export interface LostInstancesDeps {
  readonly instances: Pick<InstancesPort, 'list' | 'condition' | 'heartbeatAgeMs'>
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly log: Log
  /** All instances that live see the same. Absent: there is only the log. */
  readonly tell?: (change: InstanceChange) => void
}

/** How often to call `poll`. Milliseconds. */
export const LOST_INSTANCES_POLL_MS = 1_000
