/** A line in the log when another node of the installation is not heard any more, and when it is heard again. */
import type { Log } from '../../schema/contracts/log.ts'
import type { NodesPort, NodeStatus } from '../../schema/contracts/nodes.ts'
import { HEARTBEAT_TTL_MS } from '../../schema/nodes/node-registry.ts'
import type { NodeChange } from './node-news.ts'

export interface LostNodesDeps {
  readonly nodes: Pick<NodesPort, 'list' | 'condition' | 'heartbeatAgeMs'>
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly log: Log
  /** All nodes that live see the same. Absent: there is only the log. */
  readonly tell?: (change: NodeChange) => void
}

/** How often to call `look`. Milliseconds. */
export const LOST_NODES_LOOK_MS = 1_000

export class LostNodes {
  readonly #deps: LostNodesDeps
  readonly #lost = new Map<string, Pick<NodeStatus, 'epoch' | 'startedAt'>>()
  /** Names of nodes that this process has heard. */
  readonly #heard = new Set<string>()
  #heardSince: number | undefined

  constructor(deps: LostNodesDeps) {
    this.#deps = deps
  }

  look(): void {
    const { nodes, now, log, tell = () => undefined } = this.#deps
    if (nodes.condition !== 'valid' || nodes.heartbeatAgeMs >= HEARTBEAT_TTL_MS) {
      this.#heardSince = undefined
      return
    }
    // While the server was away no node was heard: each gets the time to say that it lives.
    this.#heardSince ??= now()
    if (now() - this.#heardSince < HEARTBEAT_TTL_MS) return
    for (const { name, state, address, liveCalls, isThis, epoch, startedAt } of nodes.list()) {
      if (isThis) continue
      const lost = this.#lost.get(name)
      if (state === 'lost' && lost === undefined) {
        this.#lost.set(name, { epoch, startedAt })
        tell({ type: 'node.lost', node: name, address, epoch })
        log('error', 'another node is not heard any more: it is down, paused or cut off', {
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
      if (isBack) log('info', 'another node is heard again', { node: name, address })
      // It may have come back while no other node was there to tell it: its next loss would not be told, either.
      if (!isBack && this.#heard.has(name)) continue
      this.#heard.add(name)
      tell({ type: 'node.recovered', node: name, address, epoch })
    }
  }
}
