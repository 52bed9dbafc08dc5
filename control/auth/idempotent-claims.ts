/**
 * Which node carries out a request with an `Idempotency-Key`, where several share a database: the one that claims it
 * first. A claim ends when the answer is stored, when the next run of its node begins (`registerNode`), or by itself when
 * its node has died for good: what came of the request is unknown then, as after a crash of a single process.
 */
import type { Store } from '../../schema/open.ts'
import { prepare } from '../../schema/sql/prepared.ts'

/** Identifies a request; its repetition has the same identity. */
export interface Identity {
  readonly actor: string
  readonly operation: string
  readonly keyHash: Buffer
}

/** Longer than any request takes. */
const CLAIMED_MS = 300_000

interface Claim extends Identity {
  readonly requestHash: Buffer
  readonly claim: Buffer
}

export class IdempotentClaims {
  readonly #statements: ReturnType<typeof prepareAll>
  readonly #now: () => number

  constructor(store: Store, now: () => number) {
    this.#statements = prepareAll(store)
    this.#now = now
  }

  /** Resolves with the hash of the request that another claim is for; undefined: this one is taken. */
  async take(claim: Claim): Promise<Buffer | undefined> {
    const now = this.#now()
    for (;;) {
      const taken = await this.#statements.take.run({ ...claim, now, until: now + CLAIMED_MS })
      if (taken > 0) return undefined
      const other = await this.#statements.find.get(claim)
      // It may just have ended.
      if (other !== undefined) return other.request_hash
    }
  }

  /** Runs in the caller's transaction. */
  async end({ actor, operation, keyHash, claim }: Omit<Claim, 'requestHash'>): Promise<void> {
    await this.#statements.end.run({ actor, operation, keyHash, claim })
  }

  /** Deletes those of nodes that have died. */
  async sweep(): Promise<void> {
    await this.#statements.sweep.run({ now: this.#now() })
  }
}

const prepareAll = (store: Store) => ({
  take: prepare<Claim & { now: number; until: number }, unknown>(store, (db, param) =>
    db
      .insertInto('idempotent_claim')
      .values({
        actor: param('actor'),
        operation: param('operation'),
        key_hash: param('keyHash'),
        request_hash: param('requestHash'),
        claim: param('claim'),
        claimed_until: param('until'),
      })
      .onConflict((conflict) =>
        conflict
          .columns(['actor', 'operation', 'key_hash'])
          .doUpdateSet((row) => ({
            request_hash: row.ref('excluded.request_hash'),
            claim: row.ref('excluded.claim'),
            claimed_until: row.ref('excluded.claimed_until'),
          }))
          .where('idempotent_claim.claimed_until', '<=', param('now')),
      ),
  ),
  find: prepare<Identity, { request_hash: Buffer }>(store, (db, param) =>
    db
      .selectFrom('idempotent_claim')
      .select('request_hash')
      .where('actor', '=', param('actor'))
      .where('operation', '=', param('operation'))
      .where('key_hash', '=', param('keyHash')),
  ),
  end: prepare<Omit<Claim, 'requestHash'>, unknown>(store, (db, param) =>
    db
      .deleteFrom('idempotent_claim')
      .where('actor', '=', param('actor'))
      .where('operation', '=', param('operation'))
      .where('key_hash', '=', param('keyHash'))
      .where('claim', '=', param('claim')),
  ),
  sweep: prepare<{ now: number }, unknown>(store, (db, param) =>
    db.deleteFrom('idempotent_claim').where('claimed_until', '<=', param('now')),
  ),
})
