/** Shares in PostgreSQL. A share is set, never added to, so a request may be repeated. */
import type { InstanceIdentity } from '../../schema/contracts/instances.ts'
import { GONE_MS } from '../../schema/instances/heartbeat.ts'
import type { Store } from '../../schema/storage/store.ts'
import { lockedWallets, lockWait } from '../../schema/sql/row-locks.ts'
import type { PreparedStatement } from '../../schema/sql/statements.ts'
import type { ShareTable } from '../../schema/tables/installation.ts'

export interface ShareRequest {
  readonly resource: string
  /** The limit of all instances together. Infinity: the database knows it. */
  readonly limit: number
  /**
   * The use here: as much is stored, whatever the limit. Of a wallet no more than was stored: the
   * rest may be spent already.
   */
  readonly used: number
  /** The amount that is needed. */
  readonly base: number
  /** The extra amount that is wanted out of a fair part of the free amount. */
  readonly extra: number
  /** The version of the newest answer: the next one is greater, whatever a server has lost. */
  readonly version: number
}

export interface StoredShare {
  readonly amount: number
  /** Grows with each change of the stored share: the greatest is the newest. */
  readonly version: number
}

export interface ShareAnswer extends StoredShare {
  readonly resource: string
  /** The sum of the shares of other processes. */
  readonly elsewhere: number
  /** The limit of the day bounds the share, and not the money. */
  readonly isOfDay: boolean
}

/** One run of an instance. */
export interface ShareOwner {
  /** The name of the instance. */
  readonly name: string
  /** The name of this run: no other run has had it. */
  readonly process: string
}

/** The rows of this run in the database. */
export interface ShareStore {
  /**
   * @param instances how many of them get a fair part of the free amount.
   * @param isAlone no other process of this instance goes on: this one takes over their shares.
   * @param now the time whose day counts for limits of a day.
   */
  take(
    requests: readonly ShareRequest[],
    instances: number,
    isAlone: boolean,
    now: number,
  ): Promise<readonly ShareAnswer[]>
  /**
   * Deducts from the share of a wallet, which the caller has locked. Undefined: this run has no
   * share of it.
   */
  spend(resource: string, amount: number): Promise<StoredShare | undefined>
  /** Whether the server answers at all: the statement waits for no row. Never rejects. */
  isServerThere(): Promise<boolean>
  /** Returns those of `resources` whose row another transaction has locked. Waits for no row. */
  locked(resources: readonly string[]): Promise<ReadonlySet<string>>
  /** Removes the rows of all other processes of this instance: they have ended. */
  freeOthersOfInstance(): Promise<void>
  /** Removes the unused rows of this process, which ends. Used ones stay: its calls may go on. */
  forgetUnused(): Promise<void>
  /** Removes rows of this process that no request has used since the last sweep. */
  sweep(): Promise<void>
  /**
   * Removes the rows of an instance that is gone for good. It was read a moment ago that it is: if
   * it is back, it has registered before it holds anything.
   */
  release(instance: InstanceIdentity): Promise<void>
}

/**
 * A statement waits for so long at a locked wallet. Then it ends without having changed anything,
 * and leaves out the wallets that are locked: others must not wait for them.
 */
const LOCK_WAIT_MS = 200

export class ShareRows implements ShareStore {
  readonly #kind: ShareTable['kind']
  readonly #owner: readonly [node: string, process: string]
  readonly #statements: ReturnType<typeof prepare>
  #request = 0
  #requestAtSweep = 0

  constructor(
    store: Pick<Store, 'statements'>,
    kind: ShareTable['kind'],
    { name, process }: ShareOwner,
  ) {
    this.#kind = kind
    this.#owner = [name, process]
    this.#statements = prepare(store, kind)
  }

  async take(
    requests: readonly ShareRequest[],
    instances: number,
    isAlone: boolean,
    now: number,
  ): Promise<readonly ShareAnswer[]> {
    this.#request += 1
    const asked = requests.map(({ resource: name, limit, ...rest }) => ({
      name,
      at_most: limit === Infinity ? null : limit,
      ...rest,
    }))
    const values = [JSON.stringify(asked), this.#kind, ...this.#owner, this.#request, instances]
    const rows = await this.#statements.take.all([...values, isAlone ? 1 : 0, Math.floor(now)])
    return rows.map((row) => ({
      resource: row.of_resource,
      amount: row.granted,
      version: row.stored_as,
      elsewhere: row.elsewhere,
      isOfDay: row.is_of_day === 1,
    }))
  }

  spend(resource: string, amount: number): Promise<StoredShare | undefined> {
    return this.#statements.spend.get([this.#kind, ...this.#owner, resource, amount])
  }

  isServerThere(): Promise<boolean> {
    return this.#statements.probe.all([]).then(
      () => true,
      () => false,
    )
  }

  async locked(resources: readonly string[]): Promise<ReadonlySet<string>> {
    // Rows of the other kinds are locked by single statements only, which end at once.
    if (this.#kind !== 'wallet') return new Set()
    const rows = await this.#statements.locked.all([JSON.stringify(resources)])
    return new Set(rows.map(({ id }) => String(id)))
  }

  async freeOthersOfInstance(): Promise<void> {
    await this.#statements.freeOthers.run([this.#kind, ...this.#owner])
  }

  async forgetUnused(): Promise<void> {
    await this.#statements.forget.run([this.#kind, ...this.#owner])
  }

  async sweep(): Promise<void> {
    const before = this.#requestAtSweep
    this.#requestAtSweep = this.#request
    await this.#statements.sweep.run([this.#kind, ...this.#owner, before])
  }

  async release({ name, epoch }: InstanceIdentity): Promise<void> {
    await this.#statements.release.run([this.#kind, name, epoch, GONE_MS])
  }
}

interface Row {
  readonly of_resource: string
  readonly granted: number
  readonly elsewhere: number
  readonly stored_as: number
  readonly is_of_day: 0 | 1
}

const taken = 'take_shares(CAST($1 AS json), $2, $3, $4, $5, $6, $7, $8)'

/** The function runs after the setting, because it reads a column of that. */
const takeOfWallets = `SELECT shares.* FROM (SELECT ${lockWait(LOCK_WAIT_MS)} AS wait OFFSET 0)
  AS setting,
  LATERAL ${taken.replace('$1', 'CASE WHEN setting.wait IS NOT NULL THEN $1 END')} AS shares`

function prepare({ statements }: Pick<Store, 'statements'>, kind: ShareTable['kind']) {
  const statement = <R>(sql: string): PreparedStatement<R> => statements.prepare<R>(sql)
  return {
    take: statement<Row>(kind === 'wallet' ? takeOfWallets : `SELECT * FROM ${taken}`),
    locked: statement<{ readonly id: number }>(lockedWallets),
    spend: statement<StoredShare>(
      `UPDATE share SET amount = amount - CAST($5 AS bigint), version = version + 1
       WHERE kind = $1 AND node = $2 AND process = $3 AND resource = $4 RETURNING amount, version`,
    ),
    probe: statement('SELECT 1'),
    freeOthers: statement('DELETE FROM share WHERE kind = $1 AND node = $2 AND process <> $3'),
    forget: statement(
      'DELETE FROM share WHERE kind = $1 AND node = $2 AND process = $3 AND amount = 0',
    ),
    /** An older request may still be on its way: only its row tells that it was overtaken. */
    sweep: statement(
      `DELETE FROM share
       WHERE kind = $1 AND node = $2 AND process = $3 AND amount = 0 AND request < $4`,
    ),
    /**
     * An instance that registers waits for the lock. Its grants last as long as the longest one.
     */
    release: statement(
      `WITH gone AS (
         SELECT name FROM node WHERE name = $2 AND epoch = $3 AND state = 'stopped'
           AND heartbeat_at + longest_grant_seconds * 1000
             < extract(epoch FROM clock_timestamp()) * 1000 - $4
         FOR SHARE
       )
       DELETE FROM share USING gone WHERE share.node = gone.name AND kind = $1`,
    ),
  }
}
