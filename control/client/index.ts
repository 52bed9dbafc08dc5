/**
 * `tollgate/client`: the control API for programs, in Node.js and in browsers, without
 * dependencies.
 */
import { Connection, type ConnectionOptions, type RequestOptions } from './connection.ts'
import { operations, type Operations } from './operations.ts'

export { type AnswerNote, type ErrorDetail, TollgateError } from './connection.ts'
export type { ConnectionOptions, RequestOptions } from './connection.ts'
export type * from './operations.ts'
export { type ReceivedWebhook, verifyWebhook, WebhookError, type WebhookEvent } from './webhook.ts'

/** An `operationId` of the OpenAPI document. */
export type OperationName = keyof Operations

export interface Page<T> {
  readonly items: readonly T[]
  readonly page: number
  readonly limit: number
  /** The number of items in the whole list. */
  readonly total: number
  /** The list ends here although there are older entries: filter it to see them. */
  readonly truncated: boolean
}

export type Input<N extends OperationName> = Operations[N]['input']
export type Result<N extends OperationName> = Operations[N] extends { readonly item: infer T }
  ? Page<T>
  : Operations[N] extends { readonly result: infer T }
    ? T
    : never

/** An operation that lists. */
export type ListName = {
  [N in OperationName]: Operations[N] extends { readonly item: unknown } ? N : never
}[OperationName]

type Body<N extends OperationName> = Input<N> extends { readonly body: infer T } ? T : never
type Query<N extends OperationName> = Input<N> extends { readonly query?: infer T } ? T : never
type Id<N extends OperationName> =
  Input<N> extends { readonly path: readonly [infer T, ...unknown[]] } ? T : never
type Item<N extends OperationName> = Operations[N] extends { readonly item: infer T } ? T : never

/** The nouns that the same five operations create, list, read, change and delete. */
export type Noun = {
  [N in ListName]: N extends `list${infer Name}s`
    ? `${'create' | 'get' | 'update' | 'delete'}${Name}` extends OperationName
      ? Name
      : never
    : never
}[ListName]

export interface Collection<N extends Noun> {
  create(body: Body<`create${N}`>, options?: RequestOptions): Promise<Result<`create${N}`>>
  get(id: Id<`get${N}`>, options?: RequestOptions): Promise<Result<`get${N}`>>
  /** Fields that are absent stay as they are. */
  update(
    id: Id<`update${N}`>,
    body: Body<`update${N}`>,
    options?: RequestOptions,
  ): Promise<Result<`update${N}`>>
  delete(id: Id<`delete${N}`>, options?: RequestOptions): Promise<Result<`delete${N}`>>
  /** One page. */
  page(query?: Query<`list${N}s`>, options?: RequestOptions): Promise<Result<`list${N}s`>>
  /** Everything, page by page as it is read. */
  list(query?: Query<`list${N}s`>, options?: RequestOptions): AsyncGenerator<Item<`list${N}s`>>
}

/** The most that a page has. */
const longestPage = 200

export class Tollgate {
  readonly #connection: Connection
  readonly agents = this.collection('AIAgent')
  readonly carriers = this.collection('Carrier')
  readonly dispatcherSets = this.collection('DispatcherSet')
  readonly inboundRoutes = this.collection('InboundRoute')
  readonly outboundRoutes = this.collection('OutboundRoute')
  readonly rates = this.collection('Rate')
  readonly ratePlans = this.collection('RatePlan')
  readonly tenants = this.collection('Tenant')
  readonly users = this.collection('User')
  readonly webhooks = this.collection('WebhookEndpoint')

  readonly customers = {
    ...this.collection('Customer'),
    wallet: (id: number, options?: RequestOptions) =>
      this.request('getWallet', { path: [id] }, options),
    /** Credits the wallet. */
    topUp: (
      id: number,
      { amount, reason }: Pick<Body<'adjustWallet'>, 'amount' | 'reason'>,
      options?: RequestOptions,
    ) =>
      this.request(
        'adjustWallet',
        { path: [id], body: { amount, reason, kind: 'topup' } },
        options,
      ),
    ledger: (id: number, query: Query<'listLedgerEntries'> = {}, options?: RequestOptions) =>
      this.all('listLedgerEntries', { path: [id], query }, options),
  }

  readonly keys = {
    /**
     * The answer has the token, once. Without one, the first answer was lost on its way: rotate the
     * key.
     */
    create: (body: Body<'createApplicationKey'>, options?: RequestOptions) =>
      this.request('createApplicationKey', { body }, options),
    get: (uuid: string, options?: RequestOptions) =>
      this.request('getApplicationKey', { path: [uuid] }, options),
    list: (query: Query<'listApplicationKeys'> = {}, options?: RequestOptions) =>
      this.all('listApplicationKeys', { query }, options),
    update: (uuid: string, body: Body<'updateApplicationKey'>, options?: RequestOptions) =>
      this.request('updateApplicationKey', { path: [uuid], body }, options),
    rotate: (uuid: string, body: Body<'rotateApplicationKey'> = {}, options?: RequestOptions) =>
      this.request('rotateApplicationKey', { path: [uuid], body }, options),
    revoke: (uuid: string, options?: RequestOptions) =>
      this.request('revokeApplicationKey', { path: [uuid] }, options),
  }

  readonly calls = {
    /** The calls that live now. */
    live: (query: Query<'listActiveCalls'> = {}, options?: RequestOptions) =>
      this.request('listActiveCalls', { query }, options),
    get: (uuid: string, options?: RequestOptions) =>
      this.request('getCall', { path: [uuid] }, options),
    /** Rings the phones of an extension, and then the number. */
    originate: (body: Body<'originateCall'>, options?: RequestOptions) =>
      this.request('originateCall', { body }, options),
    hangUp: (uuid: string, options?: RequestOptions) =>
      this.request('hangUpCall', { body: { call_uuid: uuid } }, options),
    /** The records of calls that ended. */
    records: (query: Query<'listCallRecords'>, options?: RequestOptions) =>
      this.request('listCallRecords', { query }, options),
  }

  constructor(options: ConnectionOptions) {
    this.#connection = new Connection(options)
  }

  /** Any operation of the API by its `operationId`. @throws {TollgateError} */
  async request<N extends OperationName>(
    name: N,
    input: Input<N>,
    options: RequestOptions = {},
  ): Promise<Result<N>> {
    return (await this.#ask(name, input, options)) as Result<N>
  }

  /** Every entry of a list, page by page as it is read. */
  all<N extends ListName>(
    name: N,
    input: Input<N>,
    options: RequestOptions = {},
  ): AsyncGenerator<Item<N>> {
    return this.#pages(name, input, options) as AsyncGenerator<Item<N>>
  }

  async *#pages(name: OperationName, input: AnyInput, options: RequestOptions) {
    for (let page = 1; ; page += 1) {
      const query = { limit: longestPage, ...input.query, page }
      const { items, limit, total } = (await this.#ask(
        name,
        { ...input, query },
        options,
      )) as Page<unknown>
      yield* items
      if (items.length === 0 || page * limit >= total) return
    }
  }

  async #ask(name: OperationName, input: AnyInput, options: RequestOptions): Promise<unknown> {
    const { method, path, answer, ...operation }: OperationRow = operations[name]
    const ids = [...(input.path ?? [])]
    const place = path.replaceAll(/\{\w+\}/g, () => encodeURIComponent(String(ids.shift())))
    const { reason } = options
    const query = queryOf({ ...input.query, ...(reason !== undefined && { reason }) })
    const body = await this.#connection.send(
      { method, path: `${place}${query}`, body: input.body, ...operation },
      options,
    )
    if (answer === 'bare' || answer === 'text') return body
    const { data, meta } = body as Envelope
    if (answer === 'data') return data
    const { truncated = false, ...page } = meta
    return { items: data, ...page, truncated }
  }

  /** The operations of a noun, also of one that has no property here. */
  collection<N extends Noun>(noun: N): Collection<N> {
    const ask = (name: OperationName, input: AnyInput, options: RequestOptions = {}) =>
      this.#ask(name, input, options)
    const collection: AnyCollection = {
      create: (body, options) => ask(`create${noun}`, { body }, options),
      get: (id, options) => ask(`get${noun}`, { path: [id] }, options),
      update: (id, body, options) => ask(`update${noun}`, { path: [id], body }, options),
      delete: (id, options) => ask(`delete${noun}`, { path: [id] }, options),
      page: (query = {}, options) => ask(`list${noun}s`, { query }, options),
      list: (query = {}, options = {}) => this.#pages(`list${noun}s`, { query }, options),
    }
    return collection as Collection<N>
  }
}

interface OperationRow {
  readonly method: string
  readonly path: string
  readonly answer: 'data' | 'page' | 'bare' | 'text'
  readonly bodyType?: string
  readonly isRepeatable?: boolean
}

interface AnyInput {
  readonly path?: readonly unknown[]
  readonly query?: AnyQuery | undefined
  readonly body?: unknown
}

type AnyQuery = Readonly<Record<string, string | number | boolean | undefined>>

interface AnyCollection {
  create(body: unknown, options?: RequestOptions): Promise<unknown>
  get(id: unknown, options?: RequestOptions): Promise<unknown>
  update(id: unknown, body: unknown, options?: RequestOptions): Promise<unknown>
  delete(id: unknown, options?: RequestOptions): Promise<unknown>
  page(query?: AnyQuery, options?: RequestOptions): Promise<unknown>
  list(query?: AnyQuery, options?: RequestOptions): AsyncGenerator
}

interface Envelope {
  readonly data: unknown
  readonly meta: { readonly truncated?: boolean }
}

function queryOf(values: AnyQuery): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(values))
    if (value !== undefined) query.set(name, String(value))
  return query.size === 0 ? '' : `?${query.toString()}`
}
