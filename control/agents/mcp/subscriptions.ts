/**
 * Streams that say that a resource has changed, so that the client reads it again: those of
 * `subscriptions/listen` (MCP of 2026-07-28), and those of sessions. Each stream covers the rows
 * that its credential sees. The resources are polled, because nodes, anomalies and proposals change
 * on any instance.
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import type { ServerEvent, ServerEventBus } from '@modelcontextprotocol/server'
import { ApiError } from '../../http/api-error.ts'

/**
 * How often to call `poll`: the maximum delay of a notification, and how long a stream may outlive
 * its credential.
 */
export const POLL_MS = 2_000

export const MAX_STREAMS = 256
/**
 * Limits per credential and per tenant, so that neither takes all streams. Clients of 2025 open one
 * each.
 */
const MAX_OF_CREDENTIAL = 16
const MAX_OF_TENANT = 64
/** Notifications that a reader may leave unread; more means that it does not read. */
const MAX_UNREAD = 32

export interface Subscriber {
  /** The key or user. */
  readonly actor: string
  readonly tenantId: number | null
  /** Subscribers with the same tenant and domain share the answer of a tool. */
  readonly sees: string
  /** The session of the stream; undefined: a stream of `subscriptions/listen`. */
  readonly session?: string
  /** Whether its credential still allows the stream; never rejects. */
  readonly isStillAdmitted: () => Promise<boolean>
  /** The resources that are watched now; undefined: the stream ends. Never rejects. */
  readonly watched: () => Promise<readonly WatchedUri[] | undefined>
  /**
   * A text that changes when the resource changes for the subscriber; undefined: it cannot be read
   * now.
   */
  readonly versionOf: (uri: string) => Promise<string | undefined>
  /** Stores the version that the client knows, for its next stream. Never rejects. */
  readonly noteSeen?: (uri: string, version: string) => Promise<void>
}

export interface WatchedUri {
  readonly uri: string
  /** The poll interval. */
  readonly everyMs: number
  /** The version that the client knows; absent: that of the time when the stream was opened. */
  readonly seen?: string
}

interface CachedVersion {
  /** Steady time. */
  readonly at: number
  /** The poll that has read it. */
  readonly round: number
  readonly version: Promise<string | undefined>
}

interface Stream {
  readonly subscriber: Subscriber
  /** The last version of each resource. */
  readonly versions: Map<string, string | undefined>
  unread: number
  notify: ((event: ServerEvent) => void) | undefined
  keepAlive?: () => void
  end: () => void
}

export class McpSubscriptions implements ServerEventBus {
  readonly #streams = new Set<Stream>()
  /** The stream that the request under way opens: the SDK does not name it when it subscribes. */
  readonly #opening = new AsyncLocalStorage<Stream>()
  /** Versions by resource, tenant and domain. */
  readonly #cache = new Map<string, CachedVersion>()
  readonly #now: () => number
  #isPolling = false
  #round = 0

  /** @param now steady time in milliseconds. */
  constructor(now: () => number) {
    this.#now = now
  }

  get size(): number {
    return this.#streams.size
  }

  /**
   * Runs the request that opens a stream; its response ends as soon as the subscriber is not
   * admitted any more.
   *
   * @throws {ApiError} 429 or 503: too many streams.
   */
  async open(subscriber: Subscriber, request: () => Promise<Response>): Promise<Response> {
    this.#refuseMore(subscriber)
    const stream: Stream = {
      subscriber,
      versions: new Map(),
      unread: 0,
      notify: undefined,
      end: () => undefined,
    }
    // From here on the stream counts.
    this.#streams.add(stream)
    try {
      for (const { uri } of (await subscriber.watched()) ?? [])
        stream.versions.set(uri, await subscriber.versionOf(uri))
      const response = await this.#opening.run(stream, request)
      // A refused one has not subscribed.
      if (stream.notify === undefined || response.body === null) this.#streams.delete(stream)
      else return new Response(this.#guarded(stream, response.body), response)
      return response
    } catch (error) {
      this.#streams.delete(stream)
      throw error
    }
  }

  /**
   * The stream of a session, in place of another one that it has here.
   *
   * @throws {ApiError} 429 or 503: too many streams.
   */
  openSession(subscriber: Subscriber): Response {
    this.endSession(subscriber.session)
    this.#refuseMore(subscriber)
    const { response, notify, keepAlive, end } = sessionStream({
      now: this.#now,
      onDrained: () => void (stream.unread = 0),
      onGone: () => void this.#streams.delete(stream),
    })
    const stream: Stream = {
      subscriber,
      versions: new Map(),
      unread: 0,
      keepAlive,
      notify: (event) => void (event.kind === 'resource_updated' && notify(event.uri)),
      end: () => {
        this.#streams.delete(stream)
        end()
      },
    }
    this.#streams.add(stream)
    return response
  }

  endSession(session: string | undefined): void {
    if (session === undefined) return
    for (const stream of this.#streams) if (stream.subscriber.session === session) stream.end()
  }

  /** The version of a resource for a client that begins to watch it now. */
  versionFor(watched: WatchedUri, subscriber: Pick<Subscriber, 'sees' | 'versionOf'>) {
    return this.#versionOf(watched, subscriber, undefined)
  }

  /** Called by the SDK when a stream is open. */
  subscribe(notify: (event: ServerEvent) => void): () => void {
    const stream = this.#opening.getStore()
    if (stream === undefined) return () => undefined
    stream.notify = notify
    return () => {
      stream.notify = undefined
      this.#streams.delete(stream)
    }
  }

  /** Required of a bus: nothing is for all streams. */
  publish(): void {}

  /**
   * Ends the streams of credentials that have lost their permission, and notifies the others of
   * changes.
   */
  async poll(): Promise<void> {
    if (this.#isPolling) return
    this.#isPolling = true
    this.#round += 1
    try {
      for (const stream of this.#streams) await this.#update(stream)
      if (this.#streams.size === 0) this.#cache.clear()
    } finally {
      this.#isPolling = false
    }
  }

  /** Ends all streams. */
  close(): void {
    for (const stream of this.#streams) stream.end()
  }

  async #update(stream: Stream): Promise<void> {
    const { subscriber, versions } = stream
    if (!(await subscriber.isStillAdmitted())) return stream.end()
    const watched = await subscriber.watched()
    if (watched === undefined) return stream.end()
    for (const each of watched) {
      const version = await this.#versionOf(each, subscriber, this.#round)
      const { uri, seen } = each
      if (version === undefined || version === (seen ?? versions.get(uri))) continue
      versions.set(uri, version)
      stream.unread += 1
      if (stream.unread > MAX_UNREAD) return stream.end()
      stream.notify?.({ kind: 'resource_updated', uri })
      await subscriber.noteSeen?.(uri, version)
    }
    stream.keepAlive?.()
  }

  /** A version that was read a moment ago, or in this poll, is not read again. */
  #versionOf(
    { uri, everyMs }: WatchedUri,
    { sees, versionOf }: Pick<Subscriber, 'sees' | 'versionOf'>,
    round: number | undefined,
  ): Promise<string | undefined> {
    const shared = `${uri} ${sees}`
    const now = this.#now()
    const last = this.#cache.get(shared)
    if (last !== undefined && (last.round === round || now - last.at < everyMs)) return last.version
    const version = versionOf(uri)
    this.#cache.set(shared, { at: now, round: round ?? 0, version })
    return version
  }

  /** The same bytes; `stream.end` ends them. */
  #guarded(stream: Stream, body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
    const reader = body.getReader()
    let isOver = false
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          stream.end = () => {
            if (isOver) return
            isOver = true
            this.#streams.delete(stream)
            void reader.cancel().catch(() => undefined)
            controller.close()
          }
        },
        pull: async (controller) => {
          stream.unread = 0
          const { done, value } = await reader.read()
          if (done) stream.end()
          else if (!isOver) controller.enqueue(value)
        },
        cancel: (reason) => {
          isOver = true
          this.#streams.delete(stream)
          return reader.cancel(reason)
        },
      },
      { highWaterMark: 0 },
    )
  }

  #refuseMore({ actor, tenantId }: Subscriber): void {
    const open = [...this.#streams].map(({ subscriber }) => subscriber)
    const isFull = {
      credential: open.filter((each) => each.actor === actor).length >= MAX_OF_CREDENTIAL,
      tenant:
        tenantId !== null &&
        open.filter((each) => each.tenantId === tenantId).length >= MAX_OF_TENANT,
      all: open.length >= MAX_STREAMS,
    }
    if (isFull.credential) throw tooMany(429, 'This credential has as many subscriptions as it may')
    if (isFull.tenant) throw tooMany(429, 'This tenant has as many subscriptions as it may')
    if (isFull.all) throw tooMany(503, 'No further subscription can be opened')
  }
}

const tooMany = (status: 429 | 503, message: string): ApiError =>
  new ApiError(status, 'too_many_readers', message, { headers: { 'Retry-After': '30' } })

/** Proxies close a connection on which nothing moves. */
const KEEP_ALIVE_MS = 15_000

interface SessionStreamDeps {
  /** Steady time in milliseconds. */
  readonly now: () => number
  /** The reader has read everything. */
  readonly onDrained: () => void
  /** The reader is gone. */
  readonly onGone: () => void
}

interface SessionStream {
  readonly response: Response
  readonly notify: (uri: string) => void
  readonly keepAlive: () => void
  readonly end: () => void
}

function sessionStream({ now, onDrained, onGone }: SessionStreamDeps): SessionStream {
  const encoder = new TextEncoder()
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  let writtenAt = now()
  const write = (text: string): void => {
    writtenAt = now()
    controller?.enqueue(encoder.encode(text))
  }
  const body = new ReadableStream<Uint8Array>({
    start(opened) {
      controller = opened
      // With it the client is sent the head of the response.
      write(': open\n\n')
    },
    pull: onDrained,
    cancel() {
      controller = undefined
      onGone()
    },
  })
  return {
    response: new Response(body, { headers }),
    notify: (uri) => write(`event: message\ndata: ${notificationOf(uri)}\n\n`),
    keepAlive() {
      // A reader that does not read is sent nothing more.
      const isRead = (controller?.desiredSize ?? 0) > 0
      if (isRead && now() - writtenAt >= KEEP_ALIVE_MS) write(': keepalive\n\n')
    },
    end() {
      controller?.close()
      controller = undefined
    },
  }
}

const headers = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-cache, no-transform',
  'X-Accel-Buffering': 'no',
}

const notificationOf = (uri: string): string =>
  JSON.stringify({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri } })
