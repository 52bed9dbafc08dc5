/** Several nodes, each as a process of its own, that count calls of one carrier on one PostgreSQL. What they tell each other may be late or lost. */
import { setTimeout as later } from 'node:timers/promises'
import { limitShares, NodeShares } from '../../engine/shares/node-shares.ts'
import { CarrierLimits } from '../../engine/routing/carrier-limits.ts'
import type { NodeIdentity } from '../../schema/contracts/nodes.ts'
import type { Store } from '../../schema/open.ts'
import { openStore } from '../../schema/postgres/open.ts'
import { freshDatabase } from './postgres.ts'
import { EndingTimers } from './ending-timers.ts'
import { noSecrets } from './sharing-nodes.ts'

const carrierId = 1
type Handler = (payload: string) => void

export interface LimitNode {
  readonly name: string
  readonly limits: NodeShares
  /** Live calls of the carrier here. */
  calls: number
  /** When calls have started here, in milliseconds. */
  readonly starts: number[]
  /** Other nodes may take it for gone. */
  isHolding: boolean
  readonly log: string[]
  /** A call to the carrier; resolves with whether it has begun. */
  dial(): Promise<boolean>
  /** Ends its timers, as a process that is killed. */
  kill(): Promise<void>
  stop(): Promise<void>
}

export class SharedCarrier {
  readonly url: string
  /** Of the test itself. */
  readonly store: Store
  readonly #close: () => Promise<void>
  readonly #random: () => number
  readonly nodes = new Map<string, LimitNode>()
  readonly #handlers = new Map<string, Set<Handler>>()
  maxCalls = 0
  maxCps = 0
  /** Nodes that are gone for good. */
  gone: readonly NodeIdentity[] = []
  /** Of what nodes tell each other. */
  lossRate = 0
  #processes = 0
  /** The most calls that were there at once on all nodes. */
  mostCalls = 0

  private constructor(
    url: string,
    store: Store,
    { random, close }: { readonly random: () => number; readonly close: () => Promise<void> },
  ) {
    this.url = url
    this.store = store
    this.#random = random
    this.#close = close
  }

  static async open(random: () => number = () => 0.5): Promise<SharedCarrier> {
    const { url, drop } = await freshDatabase()
    const store = await openStore(url, { ...noSecrets, now: 0, connections: 2 })
    const close = async (): Promise<void> => {
      await store.close()
      await drop()
    }
    return new SharedCarrier(url, store, { random, close })
  }

  get calls(): number {
    return [...this.nodes.values()].reduce((sum, { calls }) => sum + calls, 0)
  }

  /** A node; of the same name: started again, with these calls of the last run. */
  async node(
    name: string,
    { calls = 0, url = this.url }: { readonly calls?: number; readonly url?: string } = {},
  ): Promise<LimitNode> {
    const store = await openStore(url, { ...noSecrets, now: 0, connections: 3 })
    const timers = new EndingTimers()
    const { schedule } = timers
    const log: string[] = []
    const now = (): number => performance.now()
    this.#processes += 1
    const limits = new NodeShares(limitShares, {
      store,
      now,
      schedule,
      log: (level, message) => void log.push(`${level} ${message}`),
      members: {
        name,
        process: `${this.#processes}`,
        canHold: () => node.isHolding,
        size: () => Math.max(1, this.nodes.size),
        gone: () => this.gone,
        notices: {
          on: (channel, handler) => this.#on(channel, handler),
          notify: (channel, payload) => this.#notify(channel, payload),
        },
      },
    })
    const carriers = new CarrierLimits(() => node.calls, now, { shares: limits, schedule })
    const limited = () => ({ carrierId, maxCalls: this.maxCalls, maxCps: this.maxCps })
    let onKilled = (): void => undefined
    const killed = new Promise<false>((resolve) => {
      onKilled = () => resolve(false)
    })
    const end = async (): Promise<void> => {
      timers.end()
      onKilled()
      this.nodes.delete(name)
      await store.close()
    }
    const node: LimitNode = {
      name,
      limits,
      calls,
      starts: [],
      isHolding: true,
      log,
      kill: end,
      dial: async () => {
        // As call control does: a call that is admitted at once is counted at once.
        const admitted = carriers.admit(limited())
        const isAdmitted =
          typeof admitted === 'boolean' ? admitted : await Promise.race([admitted, killed])
        if (timers.isEnded || !isAdmitted) return false
        node.calls += 1
        node.starts.push(now())
        this.mostCalls = Math.max(this.mostCalls, this.calls)
        return true
      },
      stop: async () => {
        await limits.stop()
        await end()
      },
    }
    // A busy machine may take longer for the first connections than a call waits.
    await Promise.all(
      Array.from({ length: 2 }, () => store.statements.prepare('SELECT pg_sleep(0.02)').all([])),
    )
    this.nodes.set(name, node)
    carriers.noteCalls(limited())
    await limits.alone()
    return node
  }

  async close(): Promise<void> {
    for (const node of [...this.nodes.values()]) await node.stop()
    await this.#close()
  }

  /** As when it was silent for too long. `epoch`: that it had is taken. */
  async takeForGone(name: string, epoch = 1): Promise<void> {
    await this.store.statements
      .prepare(
        `INSERT INTO node (name, epoch, install_id, address, sip_uri, version, state, live_calls, started_at, heartbeat_at)
           VALUES ($1, 1, '', '', '', '', 'stopped', 0, 0, 0)`,
      )
      .run([name])
    this.gone = [{ name, epoch }]
  }

  /** What the database says that nodes hold. */
  async stored(resource = `carrier ${carrierId} calls`): Promise<Readonly<Record<string, number>>> {
    const rows = await this.store.statements
      .prepare<{ readonly node: string; readonly slots: number }>(
        `SELECT node, sum(amount)::bigint AS slots FROM share
           WHERE kind = 'limit' AND resource = $1 GROUP BY node HAVING sum(amount) > 0 ORDER BY node`,
      )
      .all([resource])
    return Object.fromEntries(rows.map(({ node, slots }) => [node, slots]))
  }

  #on(channel: string, handler: Handler): () => void {
    const handlers = this.#handlers.get(channel) ?? new Set()
    this.#handlers.set(channel, handlers.add(handler))
    return () => void handlers.delete(handler)
  }

  #notify(channel: string, payload: string): void {
    if (this.#random() < this.lossRate) return
    void this.#deliver(channel, payload, Math.floor(this.#random() * 5))
  }

  async #deliver(channel: string, payload: string, delayMs: number): Promise<void> {
    await later(delayMs)
    for (const handler of this.#handlers.get(channel) ?? []) handler(payload)
  }
}
