/**
 * Leases in PostgreSQL. A wallet's row is locked before its leases are read or changed, several wallets in the order
 * of their ids; the sum of its leases stands beside its balance, so that one statement decides.
 */
import type { NodeIdentity } from '../../../schema/contracts/nodes.ts'
import { GONE_MS } from '../../../schema/nodes/heartbeat.ts'
import type { Store } from '../../../schema/open.ts'
import type { PreparedStatement } from '../../../schema/sql/statements.ts'
import { lockedTransaction } from '../../../schema/sql/query.ts'
import { bothNames, type LeaseNames } from './lease-names.ts'

/** A lease as it is stored. */
export interface StoredLease {
  readonly walletId: number
  readonly amountMicros: bigint
  readonly version: number
}

export interface LeaseRequest {
  readonly walletId: number
  /** What waiting calls need. */
  readonly needMicros: bigint
  /** What is wanted beyond, out of a fair share of what is free. */
  readonly wantMicros: bigint
}

export interface LeaseAnswer extends StoredLease {
  /** Leased to other processes. */
  readonly elsewhereMicros: bigint
  /** It was less than was needed. */
  readonly isShort: boolean
  /** The limit of the day has made it less. */
  readonly isShortOfDay: boolean
}

export interface LeaseReturn {
  readonly walletId: number
  readonly amountMicros: bigint
}

export class LeaseRows {
  readonly #store: Store
  readonly #names: LeaseNames
  readonly #statements: ReturnType<typeof prepare>
  #request: number

  constructor(store: Store, names: LeaseNames, epoch: number) {
    this.#store = store
    this.#names = names
    this.#request = epoch * REQUESTS_OF_A_RUN
    this.#statements = prepare(store)
  }

  get #node(): string {
    return this.#names.own
  }

  /**
   * The leases of this process. What was sent before under its name, by an earlier process or by this one, changes nothing from now on.
   *
   * @param newestVersion that this process has heard of: a server that has taken over may be behind it.
   */
  async takeOver(newestVersion = 0): Promise<readonly StoredLease[]> {
    this.#request += 1
    const values = [this.#node, this.#request, newestVersion]
    const rows = await this.#statements.takeOver.all(values)
    for (const { request } of rows) this.#request = Math.max(this.#request, request)
    return rows.map(toLease)
  }

  /** What the other process of this node has leased, which has ended, is leased by this one. */
  async takeOther(): Promise<readonly StoredLease[]> {
    const { lockOf, takeOther } = this.#statements
    const { own, other } = this.#names
    const taken: StoredLease[] = []
    for (;;) {
      const some = await lockedTransaction(this.#store, async () => {
        const wallets = await lockOf.all([other])
        if (wallets.length === 0) return []
        return takeOther.all([other, own, JSON.stringify(wallets.map(({ id }) => id))])
      })
      if (some.length === 0) return taken
      taken.push(...some.map(toLease))
    }
  }

  /** Leases what is free, in one statement. `shares`: among so many processes. Safe to repeat: it only adds to a lease. */
  async request(
    requests: readonly LeaseRequest[],
    shares: number,
    today: number,
  ): Promise<readonly LeaseAnswer[]> {
    this.#request += 1
    const rows = requests.map(({ walletId, needMicros, wantMicros }) => ({
      wallet_id: walletId,
      need: String(needMicros),
      want: String(wantMicros),
    }))
    const values = [JSON.stringify(rows), this.#node, this.#request, shares, today]
    return (await this.#statements.request.all(values)).map((row) => ({
      ...toLease(row),
      elsewhereMicros: BigInt(row.elsewhere),
      isShort: row.is_short === 1,
      isShortOfDay: row.is_short_of_day === 1,
    }))
  }

  /** Asks for nothing, and waits for no row. Never rejects. */
  isServerThere(): Promise<boolean> {
    return this.#statements.probe.all([]).then(
      () => true,
      () => false,
    )
  }

  /** Gives back, in one statement. A lease that is not among the answers is unchanged. */
  async giveBack(returns: readonly LeaseReturn[]): Promise<readonly StoredLease[]> {
    this.#request += 1
    const rows = returns.map(({ walletId, amountMicros }) => ({
      wallet_id: walletId,
      amount: String(amountMicros),
    }))
    const values = [JSON.stringify(rows), this.#node, this.#request]
    return (await this.#statements.giveBack.all(values)).map(toLease)
  }

  /** What was deducted from a wallet, which is locked, is taken from the lease that it was promised from. */
  async take({ walletId, amountMicros }: LeaseReturn): Promise<StoredLease | undefined> {
    const values = [walletId, this.#node, amountMicros]
    const row = await this.#statements.take.get(values)
    return row && toLease(row)
  }

  /**
   * Frees what a node has leased that is gone for good; a few hundred wallets of one of its processes at a time: two
   * lists in one transaction would not be locked in the order of their ids. False: nothing is left, or the node is back:
   * that it is gone was read a moment ago, and it registers before it leases.
   */
  release({ name, epoch }: NodeIdentity): Promise<boolean> {
    const { lockGone, lockOf, free, freeWallets } = this.#statements
    return lockedTransaction(this.#store, async () => {
      if ((await lockGone.get([name, epoch, GONE_MS])) === undefined) return false
      for (const holder of bothNames(name)) {
        const wallets = await lockOf.all([holder])
        if (wallets.length === 0) continue
        const ids = JSON.stringify(wallets.map(({ id }) => id))
        await freeWallets.run([holder, ids])
        await free.run([holder, ids])
        return true
      }
      return false
    })
  }
}

interface LeaseRow {
  readonly wallet_id: number
  readonly amount: string
  readonly version: number
}

const toLease = ({ wallet_id: walletId, amount, version }: LeaseRow): StoredLease => ({
  walletId,
  version,
  amountMicros: BigInt(amount),
})

/** The numbers of a later run are greater: 2^53 are safe. */
const REQUESTS_OF_A_RUN = 2 ** 32
/** A process has fewer under way when it ends. */
const REQUESTS_UNDER_WAY = 2 ** 20
/** Wallets of a dead process that are freed at once. */
const RELEASED_AT_ONCE = 500

function prepare({ statements }: Store) {
  const statement = <R>(sql: string): PreparedStatement<R> => statements.prepare<R>(sql)
  return {
    takeOver: statement<LeaseRow & { readonly request: number }>(
      `WITH locked AS MATERIALIZED (
         SELECT id FROM wallet WHERE id IN (SELECT wallet_id FROM wallet_lease WHERE node = $1)
         ORDER BY id FOR NO KEY UPDATE
       )
       UPDATE wallet_lease SET request = greatest(request + ${REQUESTS_UNDER_WAY}, CAST($2 AS bigint)),
         version = greatest(version, CAST($3 AS bigint)) + 1
       FROM locked WHERE wallet_id = locked.id AND node = $1
       RETURNING wallet_id, CAST(amount_micros AS text) AS amount, version, request`,
    ),
    takeOther: statement<LeaseRow>(
      `WITH chosen AS (
         SELECT CAST(value AS bigint) AS id FROM json_array_elements_text(CAST($3 AS json))
       ), emptied AS (
         UPDATE wallet_lease SET amount_micros = 0, version = version + 1, request = request + ${REQUESTS_UNDER_WAY}
         WHERE node = $1 AND wallet_id IN (SELECT id FROM chosen)
       )
       INSERT INTO wallet_lease AS lease (wallet_id, node, amount_micros, version, request)
       SELECT wallet_id, CAST($2 AS text), amount_micros, 1, 0 FROM wallet_lease
       WHERE node = $1 AND wallet_id IN (SELECT id FROM chosen)
       ON CONFLICT (wallet_id, node) DO UPDATE
         SET amount_micros = lease.amount_micros + excluded.amount_micros, version = lease.version + 1
       RETURNING wallet_id, CAST(amount_micros AS text) AS amount, version`,
    ),
    probe: statement('SELECT 1'),
    request: statement<
      LeaseRow & {
        readonly elsewhere: string
        readonly is_short: 0 | 1
        readonly is_short_of_day: 0 | 1
      }
    >(
      `WITH asked AS (
         SELECT * FROM json_to_recordset(CAST($1 AS json)) AS t(wallet_id bigint, need bigint, want bigint)
       ), locked AS MATERIALIZED (
         SELECT id, customer_id, balance_micros, leased_micros, spent_micros, spent_on FROM wallet
         WHERE id IN (SELECT wallet_id FROM asked) ORDER BY id FOR NO KEY UPDATE
       ), room AS (
         SELECT locked.*, asked.need, asked.want,
           greatest(balance_micros + credit_limit_micros - leased_micros, 0) AS money,
           CASE WHEN max_daily_spend_micros = 0 THEN NULL
             ELSE greatest(max_daily_spend_micros - leased_micros -
               CASE WHEN spent_on >= CAST($5 AS bigint) THEN spent_micros ELSE 0 END, 0) END AS day
         FROM locked JOIN asked ON asked.wallet_id = locked.id
         JOIN customer ON customer.id = locked.customer_id
       ), granted AS (
         SELECT *, least(money, coalesce(day, money), greatest(need,
           least(want, least(money, coalesce(day, money)) / CAST($4 AS bigint)))) AS delta FROM room
       ), made AS (
         INSERT INTO wallet_lease AS lease (wallet_id, node, amount_micros, version, request)
         SELECT id, CAST($2 AS text), delta, 1, CAST($3 AS bigint) FROM granted ORDER BY id
         ON CONFLICT (wallet_id, node) DO UPDATE
           SET amount_micros = lease.amount_micros + excluded.amount_micros,
               version = lease.version + 1, request = excluded.request
           WHERE lease.request < excluded.request
         RETURNING wallet_id, amount_micros, version
       )
       UPDATE wallet SET leased_micros = granted.leased_micros + granted.delta
       FROM granted JOIN made ON made.wallet_id = granted.id WHERE wallet.id = granted.id
       RETURNING wallet.id AS wallet_id, CAST(made.amount_micros AS text) AS amount, made.version,
         CAST(wallet.leased_micros - made.amount_micros AS text) AS elsewhere,
         granted.delta < granted.need AS is_short,
         coalesce(granted.day < granted.money AND granted.delta < granted.need, FALSE) AS is_short_of_day`,
    ),
    giveBack: statement<LeaseRow>(
      `WITH back AS (
         SELECT * FROM json_to_recordset(CAST($1 AS json)) AS t(wallet_id bigint, amount bigint)
       ), locked AS MATERIALIZED (
         SELECT id, leased_micros FROM wallet
         WHERE id IN (SELECT wallet_id FROM back) ORDER BY id FOR NO KEY UPDATE
       ), changed AS (
         UPDATE wallet_lease AS lease SET amount_micros = lease.amount_micros - back.amount,
           version = lease.version + 1, request = CAST($3 AS bigint)
         FROM back JOIN locked ON locked.id = back.wallet_id
         WHERE lease.wallet_id = back.wallet_id AND lease.node = $2 AND lease.request < CAST($3 AS bigint)
         RETURNING lease.wallet_id, lease.amount_micros, lease.version, back.amount, locked.leased_micros
       )
       UPDATE wallet SET leased_micros = changed.leased_micros - changed.amount
       FROM changed WHERE wallet.id = changed.wallet_id
       RETURNING wallet.id AS wallet_id, CAST(changed.amount_micros AS text) AS amount, changed.version`,
    ),
    take: statement<LeaseRow>(
      `WITH taken AS (
         UPDATE wallet_lease SET amount_micros = amount_micros - CAST($3 AS bigint), version = version + 1
         WHERE wallet_id = $1 AND node = $2 RETURNING wallet_id, amount_micros, version
       ), changed AS (
         UPDATE wallet SET leased_micros = leased_micros - CAST($3 AS bigint)
         FROM taken WHERE wallet.id = taken.wallet_id
       )
       SELECT wallet_id, CAST(amount_micros AS text) AS amount, version FROM taken`,
    ),
    /** A node that registers waits for the lock. Its grants last as long as the longest one. */
    lockGone: statement<{ readonly name: string }>(
      `SELECT name FROM node WHERE name = $1 AND epoch = $2 AND state = 'stopped'
         AND heartbeat_at + longest_grant_seconds * 1000 < extract(epoch FROM clock_timestamp()) * 1000 - $3
       FOR SHARE`,
    ),
    lockOf: statement<{ readonly id: number }>(
      `SELECT id FROM wallet WHERE id IN (
         SELECT wallet_id FROM wallet_lease WHERE node = $1 AND amount_micros > 0
         ORDER BY wallet_id LIMIT ${RELEASED_AT_ONCE}
       ) ORDER BY id FOR NO KEY UPDATE`,
    ),
    freeWallets: statement(
      `UPDATE wallet SET leased_micros = leased_micros - lease.amount_micros FROM wallet_lease AS lease
       WHERE lease.wallet_id = wallet.id AND lease.node = $1
         AND wallet.id IN (SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST($2 AS json)))`,
    ),
    free: statement(
      `UPDATE wallet_lease SET amount_micros = 0, version = version + 1 WHERE node = $1
         AND wallet_id IN (SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST($2 AS json)))`,
    ),
  }
}
