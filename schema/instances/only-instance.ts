import type { InstanceIdentity, InstancesPort, InstanceStatus } from '../contracts/instances.ts'
import type { HeartbeatDeps } from './heartbeat.ts'

interface OnlyInstanceDeps extends Pick<HeartbeatDeps, 'address' | 'version'> {
  readonly name: string
  /** Milliseconds UTC. */
  readonly startedAt: number
  readonly now: () => number
}

/** The one process that serves an SQLite database. */
export class OnlyInstance implements InstancesPort {
  readonly identity: InstanceIdentity
  readonly condition = 'valid'
  readonly differingSettings = new Map<string, readonly string[]>()
  readonly heartbeatAgeMs = 0
  readonly clockDifferenceMs = 0
  readonly #deps: OnlyInstanceDeps
  #state: InstanceStatus['state'] = 'starting'
  #address: string
  #countCalls = (): number => 0

  constructor(deps: OnlyInstanceDeps) {
    this.identity = { name: deps.name, epoch: 0 }
    this.#deps = deps
    this.#address = deps.address
  }

  list(): readonly InstanceStatus[] {
    const { version, startedAt, now } = this.#deps
    return [
      {
        ...this.identity,
        address: this.#address,
        version,
        state: this.#state,
        startedAt,
        liveCalls: this.#countCalls(),
        heartbeatAt: now(),
        clockDifferenceMs: 0,
        isThis: true,
        sipUri: null,
        sipAddresses: [],
      },
    ]
  }

  onFenced(): void {
    // No other process has its name.
  }

  mayHaveSlept(): boolean {
    return false
  }

  isHoldingMoney(): boolean {
    return true
  }

  isHolding(): boolean {
    return true
  }

  gone(): readonly InstanceIdentity[] {
    return []
  }

  async become(state: InstanceStatus['state'], address = this.#address): Promise<void> {
    this.#state = state
    this.#address = address
  }

  countCalls(count: () => number): void {
    this.#countCalls = count
  }

  grantsFor(): void {
    // No other process waits for the end of its grants.
  }

  async end(): Promise<void> {
    // No other process reads its state.
  }
}
