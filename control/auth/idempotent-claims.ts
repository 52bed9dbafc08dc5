import type { Store } from '../../schema/storage/store.ts'
import { execute, first } from '../../schema/sql/query.ts'

/** Identifies a request; its repetition has the same identity. */
export interface RequestIdentity {
  readonly actor: string
  readonly operation: string
  readonly key_hash: Buffer
}

export const identityColumns = ['actor', 'operation', 'key_hash'] as const

/** Longer than any request takes. */
const CLAIMED_MS = 300_000

interface Claim extends RequestIdentity {
  readonly request_hash: Buffer
  readonly claim: Buffer
}

/**
 * Which instance carries out a request with an `Idempotency-Key`, where several share a database:
 * the one that claims it first. A claim ends when the answer is stored, when the next run of its
 * instance begins (`registerInstance`), or by itself when its instance has died for good: the
 * outcome of the request is unknown then, as after a crash of a single process.
 */
export class IdempotentClaims {
  readonly #store: Store
  readonly #now: () => number

  constructor(store: Store, now: () => number) {
    this.#store = store
    this.#now = now
  }

  /**
   * Resolves with the hash of the request that another claim is for; undefined: this one is taken.
   */
  async take(claim: Claim): Promise<Buffer | undefined> {
    const { db } = this.#store
    const { actor, operation, key_hash } = claim
    const now = this.#now()
    const take = db
      .insertInto('idempotent_claim')
      .values({ ...claim, claimed_until: now + CLAIMED_MS })
      .onConflict((conflict) =>
        conflict
          .columns(identityColumns)
          .doUpdateSet((row) => ({
            request_hash: row.ref('excluded.request_hash'),
            claim: row.ref('excluded.claim'),
            claimed_until: row.ref('excluded.claimed_until'),
          }))
          .where('idempotent_claim.claimed_until', '<=', now),
      )
    const find = db
      .selectFrom('idempotent_claim')
      .select('request_hash')
      .where((row) => row.and({ actor, operation, key_hash }))
    for (;;) {
      if ((await execute(this.#store, take)) > 0) return undefined
      const other = await first(this.#store, find)
      // The other claim may just have ended.
      if (other !== undefined) return other.request_hash
    }
  }

  /** Runs in the caller's transaction. */
  async end({ actor, operation, key_hash, claim }: Claim): Promise<void> {
    const query = this.#store.db
      .deleteFrom('idempotent_claim')
      .where((row) => row.and({ actor, operation, key_hash, claim }))
    await execute(this.#store, query)
  }

  /** Deletes those of instances that have died. */
  async sweep(): Promise<void> {
    const query = this.#store.db.deleteFrom('idempotent_claim')
    await execute(this.#store, query.where('claimed_until', '<=', this.#now()))
  }
}
