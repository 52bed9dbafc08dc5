/** Sends one POST to a receiver: keep-alive connections, bounded waits and sizes, no redirects. */
import http from 'node:http'
import https from 'node:https'
import { isIP } from 'node:net'
import type { Schedule } from '../../schema/clock.ts'
import { guardedLookup, hostOf, type Resolve } from '../../schema/net/http-target.ts'
import { isPublicAddress } from '../../schema/net/ip-address.ts'
import { isNoHost } from '../../schema/sip/index.ts'

export interface SenderDeps {
  readonly resolve: Resolve
  /** Allows receivers in private networks. */
  readonly allowPrivate: boolean
  readonly schedule: Schedule
  readonly timeoutMs?: number
}

export type SendResult =
  | {
      readonly kind: 'answered'
      readonly status: number
      /** The delay that the receiver requests. */
      readonly retryAfterMs: number | undefined
      /** The start of its body, as text. */
      readonly excerpt: string
    }
  | { readonly kind: 'failed'; readonly reason: string }

export type Send = (
  url: string,
  headers: Readonly<Record<string, string>>,
  body: string,
) => Promise<SendResult>

/** Time from the request to the end of the response, with DNS and connection. */
const defaultTimeoutMs = 10_000
/**
 * The part of a response body that is stored for people; and how long it may take after the status.
 */
const maxExcerptBytes = 500
const excerptWaitMs = 1_000
/** The rest of it is discarded; a long one closes the connection. */
const maxAnswerBytes = 16_384
const maxReasonLength = 200

export class WebhookSender {
  readonly #deps: SenderDeps
  readonly #agents: { readonly http: http.Agent; readonly https: https.Agent }

  constructor(deps: SenderDeps) {
    this.#deps = deps
    const lookup = guardedLookup(deps)
    const pool = { keepAlive: true, maxFreeSockets: 64, timeout: 60_000, lookup }
    this.#agents = { http: new http.Agent(pool), https: new https.Agent(pool) }
  }

  /** Closes every connection. */
  close(): void {
    this.#agents.http.destroy()
    this.#agents.https.destroy()
  }

  readonly send: Send = async (address, headers, body) => {
    const url = new URL(address)
    const host = hostOf(url)
    // Literal addresses are never looked up.
    if (isNoHost(host)) return { kind: 'failed', reason: 'the target is not a single host' }
    if (isIP(host) !== 0 && !this.#deps.allowPrivate && !isPublicAddress(host))
      return { kind: 'failed', reason: 'the target is a private address' }
    const first = await this.#exchange(url, headers, body)
    // The receiver may close an idle connection just when it is reused.
    return first.kind === 'stale' ? notStale(await this.#exchange(url, headers, body)) : first
  }

  #exchange(
    url: URL,
    headers: Readonly<Record<string, string>>,
    body: string,
  ): Promise<SendResult | { readonly kind: 'stale' }> {
    return new Promise((resolve) => {
      const isTls = url.protocol === 'https:'
      const request = (isTls ? https : http).request(url, {
        method: 'POST',
        agent: isTls ? this.#agents.https : this.#agents.http,
        headers: { ...headers, 'Content-Length': String(Buffer.byteLength(body)) },
      })
      const { schedule, timeoutMs = defaultTimeoutMs } = this.#deps
      const cancel = schedule(
        () => request.destroy(new Error(`no response within ${timeoutMs} ms`)),
        timeoutMs,
      )
      let isAnswered = false
      request.on('response', (response) => {
        isAnswered = true
        response.on('close', cancel)
        const { statusCode: status = 0 } = response
        startOf(response, schedule, (excerpt) =>
          resolve({ kind: 'answered', status, retryAfterMs: retryAfter(response), excerpt }),
        )
        discard(response)
      })
      request.on('error', (error) => {
        cancel()
        if (isAnswered) return
        const isStale = request.reusedSocket && 'code' in error && error.code === 'ECONNRESET'
        const reason = (error.message || error.name).slice(0, maxReasonLength)
        resolve(isStale ? { kind: 'stale' } : { kind: 'failed', reason })
      })
      request.end(body)
    })
  }
}

const notStale = (sent: SendResult | { readonly kind: 'stale' }): SendResult =>
  sent.kind === 'stale' ? { kind: 'failed', reason: 'connection closed by the receiver' } : sent

/**
 * Gives it once, after a moment at most: the status alone is an answer, whatever becomes of the
 * body.
 */
function startOf(
  response: http.IncomingMessage,
  schedule: Schedule,
  give: (excerpt: string) => void,
): void {
  const cancel = schedule(() => give(''), excerptWaitMs)
  const end = (excerpt: string): void => {
    cancel()
    give(excerpt)
  }
  response.once('data', (chunk: Buffer) => end(chunk.toString('utf8', 0, maxExcerptBytes)))
  response.once('close', () => end(''))
}

/** Reads it to the end, so that the connection can be reused. */
function discard(response: http.IncomingMessage): void {
  let length = 0
  response.on('data', (chunk: Buffer) => {
    length += chunk.length
    if (length > maxAnswerBytes) response.destroy()
  })
  response.on('error', () => undefined)
}

/** Seconds only: a date would depend on the receiver's clock. */
function retryAfter({ headers }: http.IncomingMessage): number | undefined {
  const seconds = headers['retry-after']
  return seconds !== undefined && /^\d{1,6}$/.test(seconds) ? Number(seconds) * 1_000 : undefined
}
