/** Counts that the nodes of one database share: how often something has happened within a window. */
import { createHash } from 'node:crypto'
import type { Store } from '../../schema/open.ts'
import type { PreparedStatement } from '../../schema/sql/statements.ts'

/** What is counted together, such as the requests of a key. */
export interface Bucket {
  readonly kind: 'key' | 'session' | 'login' | 'failed login'
  /** May be text of a client. */
  readonly name: string
}

export interface Granted {
  /** From 0 to as many as were wanted. */
  readonly granted: number
  /** Of the window, by all nodes, with these. */
  readonly used: number
  /** When the oldest ones leave the window. */
  readonly opensInMs: number
}

interface Row {
  readonly granted: number
  readonly used: number
  readonly opens_in_ms: number
}

export class Permits {
  readonly #store: Pick<Store, 'statements'>
  readonly #take: PreparedStatement<Row>
  readonly #forget: PreparedStatement<unknown>

  /** @param store on a database server. */
  constructor(store: Pick<Store, 'statements'>) {
    this.#store = store
    this.#take = store.statements.prepare('SELECT * FROM take_permits($1, $2, $3, $4)')
    this.#forget = store.statements.prepare('DELETE FROM rate_grant WHERE bucket = $1')
  }

  /** Takes up to `wanted` of the `limit` that all nodes together have in each window. */
  async take(bucket: Bucket, limit: number, wanted: number, windowMs: number): Promise<Granted> {
    const row = await this.#take.get([nameOf(bucket), limit, wanted, windowMs])
    if (row === undefined) throw new Error('take_permits returned no row')
    return { granted: row.granted, used: row.used, opensInMs: Math.max(1, row.opens_in_ms) }
  }

  /** Begins the window of a bucket anew. */
  async clear(bucket: Bucket): Promise<void> {
    await this.#forget.run([nameOf(bucket)])
  }

  /** Deletes a few of those that have left their windows. Milliseconds UTC. */
  async sweep(before: number, limit: number): Promise<number> {
    return this.#store.statements
      .prepare(
        'DELETE FROM rate_grant WHERE id IN (SELECT id FROM rate_grant WHERE ends_at < $1 LIMIT $2)',
      )
      .run([before, limit])
  }
}

const nameOf = ({ kind, name }: Bucket): string =>
  `${kind} ${createHash('sha256').update(name).digest('base64url')}`
