/** The one process that serves an SQLite database. */
import type { NodesPort, NodeStatus } from '../contracts/nodes.ts'

export interface OnlyNodeDeps {
  readonly name: string
  readonly address: () => string
  readonly version: string
  readonly state: () => 'starting' | 'serving' | 'draining'
  readonly liveCalls: () => number
  /** Milliseconds UTC. */
  readonly startedAt: number
  readonly now: () => number
}

export class OnlyNode implements NodesPort {
  readonly identity: NodesPort['identity']
  readonly condition = 'valid'
  readonly differingSettings = new Map<string, readonly string[]>()
  readonly heartbeatAgeMs = 0
  readonly #deps: OnlyNodeDeps

  constructor(deps: OnlyNodeDeps) {
    this.identity = { name: deps.name, epoch: 0 }
    this.#deps = deps
  }

  list(): readonly NodeStatus[] {
    const { address, version, state, liveCalls, startedAt, now } = this.#deps
    return [
      {
        ...this.identity,
        address: address(),
        version,
        state: state(),
        startedAt,
        liveCalls: liveCalls(),
        heartbeatAt: now(),
        isThis: true,
        sipUri: null,
        sipAddresses: [],
      },
    ]
  }
}
