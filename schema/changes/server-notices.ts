/**
 * Notices between processes that share a PostgreSQL database: LISTEN and NOTIFY, on a separate
 * connection that is opened again when it breaks. Notices sent meanwhile are lost, so handlers are
 * called after each gap.
 */
import pg from 'pg'
import type { Cancel, Schedule } from '../clock.ts'
import type { Log } from '../contracts/log.ts'
import { Hosts } from '../net/hosts.ts'

export interface NoticesDeps {
  readonly url: string
  readonly schedule: Schedule
  readonly log: Log
}

type Handler = (payload: string) => void

/** Names of channels are not quoted. */
const CHANNEL = /^[a-z_]{1,60}$/
const RETRY_MS = 250
/** A connection without an answer for so long counts as broken. */
const ANSWER_MS = 3_000

export class ServerNotices {
  readonly #deps: NoticesDeps
  readonly #hosts: Hosts
  readonly #handlers = new Map<string, Set<Handler>>()
  readonly #onGap = new Set<() => void>()
  #client: pg.Client | undefined
  /** Settles after the last statement so far. */
  #last: Promise<unknown> = Promise.resolve()
  #cancelRetry: Cancel = () => undefined
  #isFailing = false
  #isStopped = false

  constructor(deps: NoticesDeps) {
    this.#deps = deps
    this.#hosts = new Hosts(deps.url)
  }

  /**
   * Connects. Resolves when all channels are listened to, or after the first failure, and then
   * keeps trying.
   */
  async start(): Promise<void> {
    await this.#connect()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#cancelRetry()
    const client = this.#client
    this.#client = undefined
    await client?.end().catch(ignored)
  }

  /** The server is unreachable: statements that wait for its answer fail now. */
  cut(): void {
    this.#isStopped = true
    this.#cancelRetry()
    this.#client?.connection.stream.destroy()
  }

  /** Calls `handler` with each notice of any process on this channel, this one included. */
  on(channel: string, handler: Handler): Cancel {
    if (!CHANNEL.test(channel)) throw new TypeError(`${channel} is not a channel`)
    const handlers = this.#handlers.get(channel)
    if (handlers === undefined) {
      this.#handlers.set(channel, new Set([handler]))
      if (this.#client !== undefined) this.#listen(this.#client, channel)
    } else handlers.add(handler)
    return () => void this.#handlers.get(channel)?.delete(handler)
  }

  /**
   * Resolves when the channels so far are listened to: what is read from then on has all of which
   * nothing was told. Also when the connection has broken: then a gap follows.
   */
  async listening(): Promise<void> {
    await this.#last
  }

  /** Calls `handler` each time the connection is back and notices may have been lost. */
  onGap(handler: () => void): Cancel {
    this.#onGap.add(handler)
    return () => void this.#onGap.delete(handler)
  }

  /**
   * Notifies all processes, soon. Without a connection the notice is lost: callers must tolerate
   * that.
   */
  notify(channel: string, payload: string): void {
    if (this.#client === undefined) return
    this.#send(this.#client, 'SELECT pg_notify($1, $2)', [channel, payload]).catch(ignored)
  }

  get isConnected(): boolean {
    return this.#client !== undefined
  }

  /** Runs a query on this connection. Undefined: it is not connected, or has broken. */
  async query<R extends pg.QueryResultRow>(
    text: string,
    values: readonly unknown[],
  ): Promise<readonly R[] | undefined> {
    const client = this.#client
    if (client === undefined) return undefined
    try {
      return (await this.#send<R>(client, text, values)).rows
    } catch (error) {
      this.#lost(client, error)
      return undefined
    }
  }

  /** A channel that is not listened to would be silent for ever. */
  #listen(client: pg.Client, channel: string): void {
    this.#send(client, `LISTEN ${channel}`).catch((error: unknown) => this.#lost(client, error))
  }

  /** Sends after the last one is answered: a client takes one statement at a time. */
  #send<R extends pg.QueryResultRow>(
    client: pg.Client,
    text: string,
    values: readonly unknown[] = [],
  ): Promise<pg.QueryResult<R>> {
    const result = this.#last.then(() => client.query<R>(text, [...values]))
    this.#last = result.catch(ignored)
    return result
  }

  async #connect(): Promise<void> {
    const { url } = this.#hosts
    const client = new pg.Client({
      connectionString: url,
      application_name: 'tollgate notices',
      connectionTimeoutMillis: ANSWER_MS,
      query_timeout: ANSWER_MS,
      statement_timeout: ANSWER_MS,
      keepAlive: true,
    })
    client.on('error', (error) => this.#lost(client, error))
    client.on('end', () => this.#lost(client, new Error('the server has closed the connection')))
    client.on('notification', ({ channel, payload = '' }) => {
      for (const handler of this.#handlers.get(channel) ?? []) handler(payload)
    })
    try {
      await client.connect()
      await this.#hosts.check(client)
      for (const channel of this.#handlers.keys()) await client.query(`LISTEN ${channel}`)
    } catch (error) {
      void client.end().catch(ignored)
      this.#hosts.failed(url)
      return this.#failed(error)
    }
    if (this.#isStopped) return client.end().catch(ignored)
    this.#client = client
    this.#last = Promise.resolve()
    if (this.#isFailing) this.#deps.log('info', 'notifications of other processes arrive again')
    this.#isFailing = false
    // Notices between two connections are lost.
    for (const handler of this.#onGap) handler()
  }

  #lost(client: pg.Client, error: unknown): void {
    if (this.#client !== client) return
    this.#client = undefined
    void client.end().catch(ignored)
    this.#failed(error)
  }

  #failed(error: unknown): void {
    if (this.#isStopped) return
    if (!this.#isFailing)
      this.#deps.log(
        'error',
        'no notifications of other processes arrive: the database server does not answer',
        { error },
      )
    this.#isFailing = true
    this.#cancelRetry = this.#deps.schedule(() => void this.#connect(), RETRY_MS)
  }
}

const ignored = (): void => undefined
