/**
 * Subscriptions of a client on standard input: for each resource a stream of the running
 * process (`subscriptions/listen`), which tells when it has changed.
 */
import {
  CLIENT_CAPABILITIES_META_KEY,
  CLIENT_INFO_META_KEY,
  INVALID_PARAMS,
  PROTOCOL_VERSION_META_KEY,
  ProtocolError,
} from '@modelcontextprotocol/server'
import { z } from 'zod'
import { ApiError } from '../../../control/http/api-error.ts'
import { watchedResource } from '../../../control/agents/mcp/resources.ts'
import { refusalText, type ResourceSubscriptions } from '../../../control/agents/mcp/server.ts'
import type { Cancel, Schedule } from '../../../schema/clock.ts'
import { type ApiAccess, errorOf, unreachable } from './api-tool-host.ts'

/** The process sends something every fifteen seconds. */
const SILENT_MS = 45_000
/** Pauses between attempts to open a stream again: twice as long each time. */
const FIRST_RETRY_MS = 1_000
const MAX_RETRY_MS = 30_000
/** A notification has less than a hundred characters. */
const MAX_EVENT = 65_536

const PROTOCOL_VERSION = '2026-07-28'

interface UpdateStreamsDeps {
  readonly access: ApiAccess
  readonly schedule: Schedule
  /** Writes a line for the person who has started this program. */
  readonly complain: (line: string) => void
}

export class UpdateStreams implements ResourceSubscriptions {
  /** Tells the client. */
  onUpdated: (uri: string) => void = () => undefined
  readonly #deps: UpdateStreamsDeps
  /** Streams by the URI of their resource; an abort ends one. */
  readonly #streams = new Map<string, AbortController>()

  constructor(deps: UpdateStreamsDeps) {
    this.#deps = deps
  }

  readonly subscribe = async (uri: string): Promise<void> => {
    watchedResource(uri)
    if (this.#streams.has(uri)) return
    const ended = new AbortController()
    this.#streams.set(uri, ended)
    try {
      void this.#follow(uri, ended.signal, await this.#open(uri, ended.signal))
    } catch (error) {
      this.#streams.delete(uri)
      if (!(error instanceof ApiError)) throw error
      throw new ProtocolError(INVALID_PARAMS, refusalText(error))
    }
  }

  readonly unsubscribe = (uri: string): Promise<void> => {
    this.#streams.get(uri)?.abort()
    this.#streams.delete(uri)
    return Promise.resolve()
  }

  close(): void {
    for (const ended of this.#streams.values()) ended.abort()
    this.#streams.clear()
  }

  /**
   * Reads streams of a resource, one after the other, until the client does not want it any more.
   */
  async #follow(uri: string, ended: AbortSignal, first: UpdateStream): Promise<void> {
    let stream: UpdateStream | undefined = first
    let retryMs = FIRST_RETRY_MS
    while (!ended.aborted) {
      if (stream !== undefined) {
        retryMs = FIRST_RETRY_MS
        await this.#read(uri, ended, stream)
      }
      await this.#wait(retryMs, ended)
      if (ended.aborted) return
      retryMs = Math.min(MAX_RETRY_MS, retryMs * 2)
      stream = await this.#openAgain(uri, ended)
      // A change may have been missed.
      if (stream !== undefined) this.onUpdated(uri)
    }
  }

  async #openAgain(uri: string, ended: AbortSignal): Promise<UpdateStream | undefined> {
    try {
      return await this.#open(uri, ended)
    } catch (error) {
      const isRefused = error instanceof ApiError && (error.status === 401 || error.status === 403)
      if (!isRefused) return undefined
      this.#deps.complain(`tollgate: ${uri} is not watched any more: ${error.message}`)
      await this.unsubscribe(uri)
      return undefined
    }
  }

  /** @throws {ApiError} refused, or the process does not answer. */
  async #open(uri: string, ended: AbortSignal): Promise<UpdateStream> {
    const { access, schedule } = this.#deps
    const silence = new AbortController()
    const awaitMore = (): Cancel => schedule(() => silence.abort(), SILENT_MS)
    const cancel = awaitMore()
    try {
      const response = await fetch(`${access.url}/mcp`, {
        method: 'POST',
        headers: headersOf(access),
        redirect: 'error',
        body: JSON.stringify(listenTo(uri, access)),
        signal: AbortSignal.any([ended, silence.signal]),
      })
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
      if (response.body !== null && isStream === true) return { body: response.body, awaitMore }
      throw errorOf(response.status, await response.json())
    } catch (error) {
      throw error instanceof ApiError ? error : unreachable(access, error)
    } finally {
      cancel()
    }
  }

  async #read(uri: string, ended: AbortSignal, { body, awaitMore }: UpdateStream): Promise<void> {
    const decoder = new TextDecoder()
    let text = ''
    let cancel = awaitMore()
    try {
      for await (const chunk of body) {
        cancel()
        cancel = awaitMore()
        const events = (text + decoder.decode(chunk, { stream: true })).split('\n\n')
        text = events.pop() ?? ''
        if (text.length > MAX_EVENT) return
        if (!ended.aborted && events.some(isUpdate)) this.onUpdated(uri)
      }
    } catch {
      // The connection broke: another one is opened.
    } finally {
      cancel()
    }
  }

  #wait(delayMs: number, ended: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        cancel()
        ended.removeEventListener('abort', done)
        resolve()
      }
      const cancel = this.#deps.schedule(done, delayMs)
      ended.addEventListener('abort', done)
    })
  }
}

interface UpdateStream {
  readonly body: ReadableStream<Uint8Array>
  /** Ends it when nothing more comes. */
  readonly awaitMore: () => Cancel
}

const headersOf = ({ key }: ApiAccess) => ({
  authorization: `Bearer ${key}`,
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  'mcp-protocol-version': PROTOCOL_VERSION,
  'mcp-method': 'subscriptions/listen',
})

const listenTo = (uri: string, { version }: ApiAccess) => ({
  jsonrpc: '2.0',
  id: 1,
  method: 'subscriptions/listen',
  params: {
    notifications: { resourceSubscriptions: [uri] },
    _meta: {
      [PROTOCOL_VERSION_META_KEY]: PROTOCOL_VERSION,
      [CLIENT_INFO_META_KEY]: { name: 'tollgate mcp', version },
      [CLIENT_CAPABILITIES_META_KEY]: {},
    },
  },
})

const notification = z.looseObject({ method: z.literal('notifications/resources/updated') })

function isUpdate(event: string): boolean {
  const data = /^data: (.*)$/m.exec(event)?.[1]
  if (data === undefined) return false
  try {
    return notification.safeParse(JSON.parse(data)).success
  } catch {
    return false
  }
}
