/**
 * Counts `request_count` and `last_used_at` in memory; `flush` writes them at least once a second and at
 * shutdown (SPECIFICATION.md §4.6). Every authenticated request is a use, but only successful ones are counted
 * (SPECIFICATION.md §2.1).
 */
import { compile, type Statement } from '../../../schema/compiled.ts'
import type { Store } from '../../../schema/open.ts'
import { transaction } from '../../../schema/query.ts'

/** Maximum delay of the stored counters. */
export const USAGE_FLUSH_INTERVAL_MS = 1_000

interface Usage {
  /** Successful requests since the last flush. */
  requests: number
  lastUsedAt: number
  isStored: boolean
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
  readonly #keys = new Map<number, Usage>()

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

  /** Notes a use of the key. The response adds the request to `requests` when it succeeds. */
  seen(keyId: number, now: number): Pick<Usage, 'requests'> {
    const known = this.#keys.get(keyId)
    if (known === undefined) {
      const usage = { requests: 0, lastUsedAt: now, isStored: false }
      this.#keys.set(keyId, usage)
      return usage
    }
    known.lastUsedAt = now
    known.isStored = false
    return known
  }

  /** All or nothing: after a failed write, the counters are kept for the next flush. */
  flush(): void {
    const pending = [...this.#keys].filter(([, usage]) => !usage.isStored || usage.requests > 0)
    if (pending.length === 0) return
    transaction(this.#store, () => {
      for (const [id, { requests, lastUsedAt }] of pending)
        this.#add.run({ id, requests, lastUsedAt })
    })
    for (const [, usage] of pending) {
      usage.requests = 0
      usage.isStored = true
    }
  }
}
