/**
 * `request_count` and `last_used_at`, written behind: a request adds to memory, whoever has the
 * timer flushes at least once a second and at shutdown (decisions.md §5).
 */
import { compile, type Statement } from '../../../schema/compiled.ts'
import type { Store } from '../../../schema/open.ts'
import { transaction } from '../../../schema/query.ts'

/** The longest that stored counters may lag behind. */
export const USAGE_FLUSH_INTERVAL_MS = 1_000

interface Usage {
  requests: number
  lastUsedAt: number
}

interface UsageRow {
  readonly id: number
  readonly requests: number
  readonly lastUsedAt: number
}

export class KeyUsage {
  readonly #store: Store
  readonly #add: Statement<UsageRow, unknown>
  /** Bounded by the number of keys. */
  readonly #pending = new Map<number, Usage>()

  constructor(store: Store) {
    this.#store = store
    this.#add = compile(store, (db, param) =>
      db
        .updateTable('application_key')
        .set((key) => ({
          request_count: key('request_count', '+', param('requests')),
          last_used_at: param('lastUsedAt'),
        }))
        .where('id', '=', param('id')),
    )
  }

  record(keyId: number, now: number): void {
    const usage = this.#pending.get(keyId)
    if (usage === undefined) {
      this.#pending.set(keyId, { requests: 1, lastUsedAt: now })
      return
    }
    usage.requests += 1
    usage.lastUsedAt = now
  }

  /** All or nothing: when the database refuses, the counters are kept for the next flush. */
  flush(): void {
    if (this.#pending.size === 0) return
    transaction(this.#store, () => {
      for (const [id, usage] of this.#pending) this.#add.run({ id, ...usage })
    })
    this.#pending.clear()
  }
}
