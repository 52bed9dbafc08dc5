/** A line in the log when another node of the installation is not heard any more, and when it is heard again. */
import type { Log } from '../../schema/contracts/log.ts'
import type { NodesPort } from '../../schema/contracts/nodes.ts'
import { HEARTBEAT_TTL_MS } from '../../schema/nodes/node-registry.ts'

export interface LostNodesDeps {
  readonly nodes: Pick<NodesPort, 'list' | 'condition'>
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly log: Log
}

/** How often to call `look`. Milliseconds. */
export const LOST_NODES_LOOK_MS = 1_000

export class LostNodes {
  readonly #deps: LostNodesDeps
  readonly #lost = new Set<string>()
  #heardSince: number | undefined

  constructor(deps: LostNodesDeps) {
    this.#deps = deps
  }

  look(): void {
    const { nodes, now, log } = this.#deps
    if (nodes.condition !== 'valid') {
      this.#heardSince = undefined
      return
    }
    // While the server was away no node was heard: each gets the time to say that it lives.
    this.#heardSince ??= now()
    if (now() - this.#heardSince < HEARTBEAT_TTL_MS) return
    for (const { name, state, address, liveCalls, isThis } of nodes.list()) {
      if (isThis) continue
      if (state === 'lost' && !this.#lost.has(name)) {
        this.#lost.add(name)
        log('error', 'another node is not heard any more: it is down, paused or cut off', {
          ...{ node: name, address, liveCalls },
        })
      }
      if ((state === 'serving' || state === 'draining') && this.#lost.delete(name))
        log('info', 'another node is heard again', { node: name, address })
    }
  }
}
