/**
 * Reports to webhooks and readers of events that an instance is lost, is back, or was fenced. All
 * instances that live see it; the row of the first one that writes it is the claim, and the
 * delivery is stored in its transaction.
 */
import type { EngineHappening, EventSink } from '../../schema/contracts/engine.ts'
import type { Log } from '../../schema/contracts/log.ts'
import { HEARTBEAT_TTL_MS } from '../../schema/instances/instance-registry.ts'
import type { Store } from '../../schema/storage/store.ts'
import { transaction } from '../../schema/sql/query.ts'

export interface InstanceChange {
  readonly type: 'node.lost' | 'node.recovered' | 'node.fenced'
  readonly node: string
  readonly address: string
  /** Number of the run that it is about. */
  readonly epoch: number
}

export interface InstanceNewsDeps {
  readonly store: Pick<Store, 'statements'>
  readonly sink: Pick<EventSink, 'writeAll'>
  readonly events: { add(happening: EngineHappening): void }
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly log: Log
}

export class InstanceNews {
  readonly #deps: InstanceNewsDeps
  readonly #claims: ReturnType<typeof prepare>
  /**
   * Changes that the database did not take yet, by type and instance: no more than there are
   * instances.
   */
  readonly #untold = new Map<string, InstanceChange>()
  #telling: Promise<void> | undefined

  constructor(deps: InstanceNewsDeps) {
    this.#deps = deps
    this.#claims = prepare(deps.store)
  }

  /** Soon. What fails is tried again by `retry`. */
  add(change: InstanceChange): void {
    this.#untold.set(`${change.type} ${change.node}`, change)
    void this.retry()
  }

  /** Never rejects. One at a time. */
  retry(): Promise<void> {
    this.#telling ??= this.#tellAll().finally(() => (this.#telling = undefined))
    return this.#telling
  }

  async #tellAll(): Promise<void> {
    try {
      for (const [key, change] of [...this.#untold]) {
        if (await this.#tell(change)) this.#deps.events.add({ ...change, tenantId: null })
        if (this.#untold.get(key) === change) this.#untold.delete(key)
      }
    } catch (error) {
      this.#deps.log('warn', 'the loss or return of an instance cannot be reported yet', { error })
    }
  }

  /** False: another instance has reported it, or it is no longer true. */
  #tell({ type, ...data }: InstanceChange): Promise<boolean> {
    return transaction(this.#deps.store, async () => {
      const claimed = await this.#claims[type].all([data.node, data.epoch])
      if (claimed.length === 0) return false
      const at = new Date(this.#deps.now()).toISOString()
      await this.#deps.sink.writeAll([{ type, tenantId: null, data: { ...data, at } }])
      return true
    })
  }
}

const SILENT = `node.heartbeat_at <
  extract(epoch FROM clock_timestamp()) * 1000 - ${HEARTBEAT_TTL_MS}`

/** A row as long as the instance is lost, and one for the last run of it that was fenced. */
function prepare({ statements }: Pick<Store, 'statements'>) {
  const claim = (sql: string) => statements.prepare<{ readonly name: string }>(sql)
  return {
    'node.lost': claim(
      `INSERT INTO setting (name, value)
       SELECT 'lost node ' || node.name, CAST($2 AS text) FROM node
       WHERE node.name = $1 AND node.epoch = CAST($2 AS bigint)
         AND node.state <> 'stopped' AND ${SILENT}
       ON CONFLICT (name) DO NOTHING RETURNING name`,
    ),
    'node.recovered': claim(
      `DELETE FROM setting USING node
       WHERE setting.name = 'lost node ' || node.name AND node.name = $1
         AND node.epoch = CAST($2 AS bigint) AND NOT (${SILENT}) RETURNING setting.name`,
    ),
    'node.fenced': claim(
      `INSERT INTO setting (name, value) VALUES ('fenced node ' || $1, CAST($2 AS text))
       ON CONFLICT (name) DO UPDATE SET value = excluded.value
         WHERE CAST(setting.value AS bigint) < CAST(excluded.value AS bigint) RETURNING name`,
    ),
  }
}
