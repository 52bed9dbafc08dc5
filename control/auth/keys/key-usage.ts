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

/** The uses of one key. */
class Usage {
  /** Successful requests since the last flush. */
  requests = 0
  lastUsedAt = 0
  readonly keyId: number
  readonly #unstored: Set<Usage>

  constructor(keyId: number, unstored: Set<Usage>) {
    this.keyId = keyId
    this.#unstored = unstored
  }

  used(now: number): void {
    this.lastUsedAt = now
    this.#unstored.add(this)
  }

  /** The response to a request of the key is a success. */
  succeeded(): void {
    this.requests += 1
    this.#unstored.add(this)
  }
}

interface UsageRow {
  readonly id: number
  readonly requests: number
  readonly lastUsedAt: number
}

export class KeyUsage {
  readonly #store: Store
  readonly #write: Statement<UsageRow, unknown>
  /** Bounded by the number of keys. */
  readonly #keys = new Map<number, Usage>()
  /** Those that the next flush writes: few of many keys are used within a second. */
  readonly #unstored = new Set<Usage>()

  constructor(store: Store) {
    this.#store = store
    this.#write = compile(store, (db, param) =>
      db
        .updateTable('application_key')
        .set((key) => ({
          request_count: key('request_count', '+', param('requests')),
          last_used_at: param('lastUsedAt'),
        }))
        .where('id', '=', param('id')),
    )
  }

  /** Notes a use of the key. */
  seen(keyId: number, now: number): Pick<Usage, 'succeeded'> {
    const usage = this.#keys.get(keyId) ?? this.#add(keyId)
    usage.used(now)
    return usage
  }

  #add(keyId: number): Usage {
    const usage = new Usage(keyId, this.#unstored)
    this.#keys.set(keyId, usage)
    return usage
  }

  /** All or nothing: after a failed write, the counters are kept for the next flush. */
  flush(): void {
    if (this.#unstored.size === 0) return
    transaction(this.#store, () => {
      for (const { keyId: id, requests, lastUsedAt } of this.#unstored)
        this.#write.run({ id, requests, lastUsedAt })
    })
    for (const usage of this.#unstored) usage.requests = 0
    this.#unstored.clear()
  }
}
