/** Statements on a PostgreSQL server. */
import pg from 'pg'
import { Hosts } from '../net/hosts.ts'
import { type CopiedRow, copyRows } from './copied-rows.ts'
import { DatabaseUnavailable, failureOf, isUnreadableFile } from './failure.ts'
import type { PreparedStatement, JsonRow, RowsText, SqlValue, Statements } from './statements.ts'
import { type DatabaseTransaction, TransactionScope } from './transaction-scope.ts'
import { StatementNames } from './statement-names.ts'

export interface PostgresOptions {
  readonly url: string
  /** Connections at most; statements beyond wait for one. */
  readonly connections?: number
  /** How long to wait for a connection. Milliseconds. */
  readonly connectTimeoutMs?: number
  /**
   * How long a statement may take; also how long a transaction may stay without one. Milliseconds.
   */
  readonly statementTimeoutMs?: number
}

interface OpenTransaction extends DatabaseTransaction {
  readonly client: pg.PoolClient
  /** Settles after the last statement so far: a connection runs one statement after the other. */
  last: Promise<unknown>
}

/** `queued`: serializable, and one of those at a time. */
type Isolation = 'serializable' | 'queued' | 'read committed'

/** The work of a transaction starts so often at most, when others change the rows that it reads. */
const MAX_ATTEMPTS = 20
/**
 * After so many attempts such transactions queue: on all instances together, one of them runs at a
 * time.
 */
const FREE_ATTEMPTS = 3
/** The number of the advisory lock of that queue. */
const QUEUE_LOCK = 0x70_11_6a_80

/**
 * A transaction is serializable: what it reads is still true when it writes, whatever others do
 * meanwhile. If it is not, PostgreSQL refuses it, and its work runs again. A statement outside a
 * transaction is one by itself.
 */
export class PostgresStatements implements Statements {
  readonly isShared = true
  readonly #pool: pg.Pool
  readonly #hosts: Hosts
  readonly #scope = new TransactionScope<OpenTransaction>()
  readonly #names = new StatementNames()
  readonly #clients = new Set<pg.PoolClient>()
  #isCut = false

  /** Connects when the first statement runs. */
  constructor({
    url,
    connections = 10,
    connectTimeoutMs = 5_000,
    statementTimeoutMs = 10_000,
  }: PostgresOptions) {
    this.#hosts = new Hosts(url)
    this.#pool = new pg.Pool({
      // oxlint-disable-next-line typescript/no-misused-promises -- the pool waits for it
      onConnect: (client) => this.#hosts.check(client),
      max: connections,
      connectionTimeoutMillis: connectTimeoutMs,
      statement_timeout: statementTimeoutMs,
      // The server may not answer at all.
      query_timeout: statementTimeoutMs + 1_000,
      idle_in_transaction_session_timeout: statementTimeoutMs,
      keepAlive: true,
      application_name: 'tollgate',
      types: { getTypeParser: (type: number) => parsers.get(type) ?? asText },
    })
    // The pool replaces a broken connection; the next statement on it fails, if there is one.
    this.#pool.on('error', ignored)
    this.#pool.on('connect', (client) => {
      client.on('error', ignored)
      this.#clients.add(client)
    })
    this.#pool.on('remove', (client) => void this.#clients.delete(client))
  }

  prepare<R>(sql: string): PreparedStatement<R> {
    return {
      all: async (values) => (await this.#run<R & pg.QueryResultRow>(sql, values)).rows,
      get: async (values) => (await this.#run<R & pg.QueryResultRow>(sql, values)).rows[0],
      arrays: async (values) => (await this.#run(sql, values, 'array')).rows,
      run: async (values) => (await this.#run(sql, values)).rowCount ?? 0,
    }
  }

  prepareRows<R>({
    table,
    columns,
    sql,
    locks,
  }: RowsText): (rows: readonly JsonRow[]) => Promise<R[]> {
    const given = `json_populate_recordset(NULL::${table}, CAST($1 AS json))`
    const rows = `SELECT ${columns.join()} FROM ${given}`
    const end = locks === true ? ' FOR NO KEY UPDATE' : ''
    const statement = this.prepare<R>(`WITH given AS MATERIALIZED (${rows}) ${sql}${end}`)
    return async (rows) => (rows.length === 0 ? [] : statement.all([jsonRows(rows)]))
  }

  copied(sql: string): Promise<readonly CopiedRow[]> {
    return this.#use((client) => copyRows(client, sql))
  }

  transaction<T>(work: () => Promise<T>): Promise<T> {
    return this.#repeated(work, (attempt) => (attempt <= FREE_ATTEMPTS ? 'serializable' : 'queued'))
  }

  /** Runs again only after a deadlock with another transaction. */
  lockedTransaction<T>(work: () => Promise<T>): Promise<T> {
    return this.#repeated(work, () => 'read committed')
  }

  /** The server waits for its disk. */
  groupTransaction<T>(work: () => Promise<T>): Promise<T> {
    return this.lockedTransaction(work)
  }

  onDisk(): Promise<void> {
    return Promise.resolve()
  }

  async #repeated<T>(work: () => Promise<T>, how: (attempt: number) => Isolation): Promise<T> {
    const outer = this.#scope.current
    if (outer !== undefined)
      return this.#scope.savepoint(outer, work, (sql) => this.#inside(outer, asking({ text: sql })))
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#attempt(work, how(attempt))
      } catch (error) {
        if (attempt === MAX_ATTEMPTS || !mayPass(error, attempt)) throw error
      }
    }
  }

  afterCommit(work: () => void): void {
    this.#scope.afterCommit(work)
  }

  async notify(channel: string, payload: string): Promise<void> {
    await this.#run('SELECT pg_notify($1, $2)', [channel, payload])
  }

  /** Runs `work` in one transaction, while no other one on the server has this lock; once. */
  exclusively<T>(lock: number, work: () => Promise<T>): Promise<T> {
    // Each statement sees everything committed before it began, including the work of the last
    // owner of the lock.
    return this.#attempt(async () => {
      await this.execute(`SELECT pg_advisory_xact_lock(${lock})`)
      return work()
    }, 'read committed')
  }

  /** Runs texts without parameters, one or several, such as those of a migration. */
  async execute(sql: string): Promise<void> {
    await this.#use(asking({ text: sql }))
  }

  /**
   * Breaks all connections: running and later statements fail, and none waits for an unreachable
   * server.
   */
  cut(): void {
    this.#isCut = true
    for (const { connection } of this.#clients) connection.stream.destroy()
  }

  /** Waits for the statements that run. */
  close(): Promise<void> {
    return this.#pool.end()
  }

  #run<R extends pg.QueryResultRow>(
    sql: string,
    values: readonly SqlValue[],
    rowMode?: 'array',
  ): Promise<pg.QueryResult<R>> {
    const name = this.#names.of(sql)
    const query = {
      text: sql,
      values: values.map(storable),
      ...(name !== undefined && { name }),
      ...(rowMode !== undefined && { rowMode }),
    }
    return this.#use(asking<R>(query))
  }

  #use<T>(ask: Asking<T>): Promise<T> {
    const { current } = this.#scope
    return current === undefined ? this.#outside(ask) : this.#inside(current, ask)
  }

  async #outside<T>(ask: Asking<T>): Promise<T> {
    const client = await this.#connect()
    try {
      return await answered(client, ask)
    } catch (error) {
      breakIfLost(client, error)
      throw error
    } finally {
      client.release(broken.has(client))
    }
  }

  #inside<T>(transaction: OpenTransaction, ask: Asking<T>): Promise<T> {
    const result = transaction.last.then(async () => {
      try {
        return await answered(transaction.client, ask)
      } catch (error) {
        const kind = failureOf(error)?.kind
        // Even if the work catches the error, this transaction cannot be committed.
        if (kind === 'conflict' || kind === 'unavailable')
          transaction.failure ??= error instanceof Error ? error : new Error(String(error))
        throw error
      }
    })
    transaction.last = result.catch(ignored)
    return result
  }

  async #attempt<T>(work: () => Promise<T>, how: Isolation): Promise<T> {
    const client = await this.#connect()
    const transaction: OpenTransaction = {
      client,
      last: Promise.resolve(),
      isOver: false,
      failure: undefined,
      savepoints: 0,
      afterCommit: [],
    }
    let result: T
    try {
      // Stands before BEGIN: the transaction must see the commits of those before it in the queue.
      if (how === 'queued') await send(client, { text: `SELECT pg_advisory_lock(${QUEUE_LOCK})` })
      const level = how === 'queued' ? 'serializable' : how
      await send(client, { text: `BEGIN ISOLATION LEVEL ${level}` })
      result = await this.#scope.run(transaction, work)
      await transaction.last
      transaction.isOver = true
      const { command } = await send(client, { text: 'COMMIT' })
      // The server rolls back, without an error, when the work went on after a failed statement.
      if (command !== 'COMMIT') throw new Error('a statement of the transaction had failed')
    } catch (error) {
      transaction.isOver = true
      await transaction.last
      const reason = transaction.failure ?? error
      breakIfLost(client, reason)
      // A connection on which nothing can be rolled back is not used again.
      if (!broken.has(client))
        await send(client, { text: 'ROLLBACK' }).catch(() => void broken.add(client))
      throw reason
    } finally {
      if (how === 'queued' && !broken.has(client))
        await send(client, { text: 'SELECT pg_advisory_unlock_all()' }).catch(
          () => void broken.add(client),
        )
      client.release(broken.has(client))
    }
    this.#scope.committed(transaction)
    return result
  }

  async #connect(): Promise<pg.PoolClient> {
    if (this.#isCut) throw new DatabaseUnavailable('the connections to the server are cut')
    for (let left = this.#hosts.count; ; left -= 1) {
      const { url } = this.#hosts
      this.#pool.options.connectionString = url
      try {
        return await this.#pool.connect()
      } catch (error) {
        if (isPoolFull(error)) throw asUnavailable(error)
        this.#hosts.failed(url)
        if (left <= 1 || this.#isCut) throw asUnavailable(error)
      }
    }
  }
}

/** The pool's message when no connection became free; an unreachable server has another message. */
const isPoolFull = (error: unknown): boolean =>
  error instanceof Error && error.message === 'timeout exceeded when trying to connect'

/**
 * Whether the work may succeed when it runs again. When two transactions find a name free and write
 * it, PostgreSQL reports a conflict or a duplicate row to the later one, depending on the locks.
 * Its second run reads the row of the other.
 */
function mayPass(error: unknown, attempt: number): boolean {
  const kind = failureOf(error)?.kind
  return kind === 'conflict' || (kind === 'unique' && attempt <= FREE_ATTEMPTS)
}

/** Connections that must not be used again. */
const broken = new WeakSet<pg.PoolClient>()

function breakIfLost(client: pg.PoolClient, error: unknown): void {
  // 0A000: its prepared statements are of an earlier schema.
  // 25006: the server is a standby since a failover; the next connection may reach the one that
  // took over.
  const isStale = error instanceof pg.DatabaseError && /^(?:0A000|25006)$/.test(error.code ?? '')
  if (isStale || failureOf(error)?.kind === 'unavailable') broken.add(client)
}

/** Asks a connection for an answer. */
type Asking<T> = (client: pg.PoolClient) => Promise<T>

const asking =
  <R extends pg.QueryResultRow>(query: pg.QueryConfig): Asking<pg.QueryResult<R>> =>
  (client) =>
    client.query<R>(query)

const send = (client: pg.PoolClient, query: pg.QueryConfig): Promise<pg.QueryResult> =>
  answered(client, asking(query))

async function answered<T>(client: pg.PoolClient, ask: Asking<T>): Promise<T> {
  try {
    return await ask(client)
  } catch (error) {
    throw asUnavailable(error)
  }
}

/**
 * An error that the server did not send is one of the connection, unless a value could not be read.
 */
function asUnavailable(error: unknown): unknown {
  if (error instanceof pg.DatabaseError || error instanceof RangeError) return error
  const reason = error instanceof Error ? error.message : String(error)
  return new DatabaseUnavailable(`${describeFailure(error)}: ${reason}`, { cause: error })
}

function describeFailure(error: unknown): string {
  if (isUnreadableFile(error)) return 'a file that DATABASE_URL names cannot be read'
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  return /CERT|^UNABLE_TO_/.test(code)
    ? 'the certificate of the database server is not accepted (sslrootcert in DATABASE_URL ' +
        'names the file with its CA)'
    : 'the database server does not answer'
}

/**
 * Texts of PostgreSQL cannot have U+0000; half of a pair becomes U+FFFD, too, as UTF-8 has none.
 */
const storable = (value: SqlValue): SqlValue =>
  typeof value === 'string' && value.includes('\0') ? value.replaceAll('\0', '\uFFFD') : value

/**
 * Values as SQLite gives them: integers as numbers, and truth as 0 or 1.
 * The numbers of types are those of pg_type.
 */
const parsers = new Map<number, (text: string) => unknown>([
  [16, (text) => (text === 't' ? 1 : 0)],
  [17, (text) => Buffer.from(text.slice(2), 'hex')],
  [20, asNumber],
  [21, Number],
  [23, Number],
  [700, Number],
  [701, Number],
  [1700, asNumber],
])

/** @throws {RangeError} a number would be another one: such a sum is read with `exactSum`. */
function asNumber(text: string): number {
  const number = Number(text)
  if (!Number.isSafeInteger(number) && !text.includes('.'))
    throw new RangeError(`${text} is too large for a number: read it with exactSum`)
  return number
}

const asText = (text: string): string => text
const ignored = (): void => undefined

/** U+0000 and unpaired surrogates: PostgreSQL's texts cannot contain them. They become U+FFFD. */
const unstorable = /\0|[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g

/**
 * Serializes without a replacer function if it can: the replacer would take longer than all the
 * rest.
 */
function jsonRows(rows: readonly JsonRow[]): string {
  const text = JSON.stringify(rows)
  return /\\u(?:0000|d[89a-f])/.test(text) ? JSON.stringify(rows, storableValue) : text
}

const storableValue = (_key: string, value: unknown): unknown =>
  typeof value === 'string' ? value.replaceAll(unstorable, '\uFFFD') : value
