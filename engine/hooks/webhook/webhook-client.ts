/**
 * Asks one receiver by HTTP: one POST over kept connections, one answer within a time limit that
 * covers everything from DNS to the last byte. No redirect is followed, and only addresses that
 * were checked are connected to.
 */
import http from 'node:http'
import https from 'node:https'
import { isIP } from 'node:net'
import type { Schedule } from '../../../schema/clock.ts'
import {
  guardedLookup,
  hostOf,
  isTargetAllowed,
  type TargetRules,
} from '../../../schema/net/http-target.ts'

export interface WebhookClientDeps extends TargetRules {
  readonly url: string
  readonly timeoutMs: number
  readonly schedule: Schedule
}

export type WebhookReply =
  | { readonly kind: 'answered'; readonly body: string }
  /** 204. */
  | { readonly kind: 'nothing' }
  | { readonly kind: 'failed'; readonly reason: string; readonly isTimeout: boolean }

/** Connections to one receiver, and so its requests at once. */
export const MAX_CONNECTIONS = 200
const MAX_IDLE_CONNECTIONS = 32
const IDLE_MS = 30_000
/** Time after which the next address of a name is tried as well. */
const NEXT_ADDRESS_MS = 50
const MAX_ANSWER_BYTES = 65_536
const MAX_REASON_LENGTH = 200

export class WebhookClient {
  readonly #deps: WebhookClientDeps
  readonly #url: URL
  readonly #agent: http.Agent
  #waiting = 0
  #isClosed = false

  constructor(deps: WebhookClientDeps) {
    this.#deps = deps
    this.#url = new URL(deps.url)
    const pool = {
      keepAlive: true,
      maxSockets: MAX_CONNECTIONS,
      maxFreeSockets: MAX_IDLE_CONNECTIONS,
      timeout: IDLE_MS,
      autoSelectFamilyAttemptTimeout: NEXT_ADDRESS_MS,
      lookup: guardedLookup(deps),
    }
    this.#agent = this.#isTls() ? new https.Agent(pool) : new http.Agent(pool)
  }

  /** Closes the connections, those in use after their answers. */
  close(): void {
    this.#isClosed = true
    if (this.#waiting === 0) this.#agent.destroy()
  }

  async post(headers: Readonly<Record<string, string>>, body: string): Promise<WebhookReply> {
    const host = hostOf(this.#url)
    // Literal addresses are never looked up.
    if (isIP(host) !== 0 && !isTargetAllowed(host, this.#deps))
      return failed('the target is a private address')
    this.#waiting += 1
    try {
      return await this.#inTime(headers, body)
    } finally {
      this.#waiting -= 1
      if (this.#isClosed) this.close()
    }
  }

  #isTls(): boolean {
    return this.#url.protocol === 'https:'
  }

  /** The first reply, or the failure at the time limit. */
  #inTime(headers: Readonly<Record<string, string>>, body: string): Promise<WebhookReply> {
    const { schedule, timeoutMs } = this.#deps
    return new Promise((resolve) => {
      let request: http.ClientRequest | undefined
      let isOver = false
      const cancel = schedule(() => end(tooLate(timeoutMs)), timeoutMs)
      const end = (reply: WebhookReply): void => {
        if (isOver) return
        isOver = true
        cancel()
        if (reply.kind === 'failed') request?.destroy()
        resolve(reply)
      }
      const attempt = (isRepeated: boolean): void => {
        request = this.#request(headers, body)
        listen(request, (reply) => {
          if (reply.kind !== 'stale') return end(reply)
          if (isRepeated) return end(failed('the connection was closed'))
          if (!isOver) attempt(true)
        })
        request.end(body)
      }
      attempt(false)
    })
  }

  #request(headers: Readonly<Record<string, string>>, body: string): http.ClientRequest {
    return (this.#isTls() ? https : http).request(this.#url, {
      method: 'POST',
      agent: this.#agent,
      headers: {
        ...headers,
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(body)),
        accept: 'application/json',
        'accept-encoding': 'identity',
      },
    })
  }
}

/**
 * `stale`: the receiver has closed an idle connection just when it was used again, so it has not
 * seen the request.
 */
type Attempt = WebhookReply | { readonly kind: 'stale' }

/** Gives the end of a request, once or several times: the first one counts. */
function listen(request: http.ClientRequest, end: (attempt: Attempt) => void): void {
  let isOver = false
  const endOnce = (attempt: Attempt): void => {
    if (!isOver) end(attempt)
    isOver = true
  }
  let hasAnswer = false
  request.on('response', (response) => {
    hasAnswer = true
    read(response, endOnce)
  })
  request.on('upgrade', (_, socket) => {
    socket.destroy()
    endOnce(failed('the answer changes the protocol'))
  })
  request.on('error', (error) => {
    const isStale = !hasAnswer && request.reusedSocket && codeOf(error) === 'ECONNRESET'
    endOnce(
      isStale
        ? { kind: 'stale' }
        : failed((error.message || error.name).slice(0, MAX_REASON_LENGTH)),
    )
  })
  request.on('close', () => {
    if (!hasAnswer) endOnce(failed('the connection was closed'))
  })
}

function read(response: http.IncomingMessage, end: (reply: WebhookReply) => void): void {
  const problem = problemOf(response)
  if (problem !== undefined) return end(failed(problem))
  const chunks: Buffer[] = []
  let length = 0
  response.on('data', (chunk: Buffer) => {
    length += chunk.length
    if (length > MAX_ANSWER_BYTES) end(failed(TOO_LONG))
    else chunks.push(chunk)
  })
  response.on('error', (error) => end(failed(error.message.slice(0, MAX_REASON_LENGTH))))
  response.on('close', () => {
    if (!response.complete) end(failed('the answer was cut off'))
  })
  response.on('end', () => {
    if (response.statusCode === 204) return end({ kind: 'nothing' })
    const body = textOf(Buffer.concat(chunks))
    return end(body === undefined ? failed('the answer is no UTF-8') : { kind: 'answered', body })
  })
}

/** Why an answer is not read; undefined: it is. */
function problemOf({ statusCode = 0, headers }: http.IncomingMessage): string | undefined {
  if (statusCode === 204) return undefined
  if (statusCode >= 300 && statusCode < 400)
    return `status ${statusCode}: redirects are not followed`
  if (statusCode !== 200) return `status ${statusCode} where 200 or 204 is expected`
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding.toLowerCase() !== 'identity') return 'the answer is compressed'
  if (!isJson.test(headers['content-type'] ?? '')) return 'the content type is not application/json'
  return Number(headers['content-length'] ?? 0) > MAX_ANSWER_BYTES ? TOO_LONG : undefined
}

const TOO_LONG = `the answer is longer than ${MAX_ANSWER_BYTES} bytes`
const isJson = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i

function textOf(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

const codeOf = (error: Error): unknown => ('code' in error ? error.code : undefined)

const failed = (reason: string): WebhookReply => ({ kind: 'failed', reason, isTimeout: false })

const tooLate = (timeoutMs: number): WebhookReply => ({
  kind: 'failed',
  reason: `no answer within ${timeoutMs} ms`,
  isTimeout: true,
})
