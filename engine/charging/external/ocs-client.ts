/** JSON over HTTP to one OCS: persistent connections, bounded waits and sizes. */
import http from 'node:http'
import https from 'node:https'
import type { Schedule } from '../../../schema/clock.ts'
import { parseMoney } from '../../../schema/columns.ts'
import type { Account } from '../../../schema/contracts/charging.ts'
import { withoutBrackets } from '../../../schema/sip/index.ts'

export interface OcsClientOptions {
  /** Base of `/api/ocs/…`; requests keep its path, such as `https://billing.example/tenant-a`. */
  readonly url: string
  /** Bearer token; undefined: none is sent. */
  readonly token: string | undefined
  /** Time from the request to the end of the answer, connecting included. */
  readonly timeoutMs: number
  readonly schedule: Schedule
}

export type HttpAnswer =
  /**
   * `body` is the parsed JSON; undefined: there is none, or, of a status other than 200, it did not
   * come.
   */
  | { readonly kind: 'answered'; readonly status: number; readonly body: unknown }
  /** Refused, timed out, or a 200 that was cut off: the request may have arrived, or not. */
  | { readonly kind: 'silence'; readonly reason: string }

const maxConnections = 64
/** Further requests are not queued: the OCS could not answer them in time. */
const maxPending = 1_000
const maxBodyBytes = 64 * 1024
/**
 * The body of a refusal may name its code: it is waited for no longer than this after the status.
 */
const refusalBodyMs = 100

export class OcsClient {
  readonly #options: OcsClientOptions
  readonly #base: URL
  readonly #agent: http.Agent
  readonly #request: typeof http.request
  #pending = 0

  constructor(options: OcsClientOptions) {
    this.#options = options
    this.#base = new URL(options.url.replace(/\/+$/, ''))
    const isTls = this.#base.protocol === 'https:'
    const pool = { keepAlive: true, maxSockets: maxConnections, scheduling: 'fifo' } as const
    this.#agent = isTls ? new https.Agent(pool) : new http.Agent(pool)
    this.#request = isTls ? https.request : http.request
  }

  /** @param path below the base, with its query, such as `/api/ocs/authorize?caller=…`. */
  get(path: string): Promise<HttpAnswer> {
    return this.#send('GET', path, undefined)
  }

  post(path: string, json: string): Promise<HttpAnswer> {
    return this.#send('POST', path, json)
  }

  /** Closes every connection; pending requests end in silence. */
  close(): void {
    this.#agent.destroy()
  }

  async #send(method: string, path: string, json: string | undefined): Promise<HttpAnswer> {
    if (this.#pending >= maxPending) return { kind: 'silence', reason: 'too many requests pending' }
    this.#pending += 1
    try {
      const attempt = await this.#exchange(method, path, json)
      // The peer may close an idle connection just as it is used again: that is not the OCS's
      // answer. Every request here is safe to repeat.
      return attempt === 'stale' ? notStale(await this.#exchange(method, path, json)) : attempt
    } finally {
      this.#pending -= 1
    }
  }

  #exchange(method: string, path: string, json: string | undefined): Promise<HttpAnswer | 'stale'> {
    return new Promise((resolve) => {
      const request = this.#request({
        method,
        agent: this.#agent,
        protocol: this.#base.protocol,
        hostname: withoutBrackets(this.#base.hostname),
        port: this.#base.port,
        path: `${this.#base.pathname === '/' ? '' : this.#base.pathname}${path}`,
        headers: this.#headers(json),
      })
      const { timeoutMs } = this.#options
      const cancelTimeout = this.#options.schedule(
        () => request.destroy(new Error(`no answer within ${timeoutMs} ms`)),
        timeoutMs,
      )
      const finish = (answer: HttpAnswer | 'stale'): void => {
        cancelTimeout()
        resolve(answer)
      }
      let hasStatus = false
      request.on('response', (response) => {
        hasStatus = true
        collect(response, this.#options.schedule, finish)
      })
      request.on('upgrade', ({ statusCode = 0 }, socket) => {
        socket.destroy()
        finish({ kind: 'answered', status: statusCode, body: undefined })
      })
      request.on('error', (error) => {
        // The response ends with an error of its own.
        if (hasStatus) return
        finish(
          request.reusedSocket && isReset(error)
            ? 'stale'
            : { kind: 'silence', reason: error.message || error.name },
        )
      })
      request.end(json)
    })
  }

  #headers(json: string | undefined): Record<string, string | number> {
    const { token } = this.#options
    return {
      Accept: 'application/json',
      ...(token !== undefined && { Authorization: `Bearer ${token}` }),
      ...(json !== undefined && {
        'Content-Type': 'application/json',
        'Content-Length': Buffer.byteLength(json),
      }),
    }
  }
}

const notStale = (answer: HttpAnswer | 'stale'): HttpAnswer =>
  answer === 'stale' ? { kind: 'silence', reason: 'connection closed by the OCS' } : answer

const isReset = (error: Error): boolean =>
  'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE')

/**
 * A status other than 200 is the answer by itself, whatever becomes of its body
 * (SPECIFICATION.md §7).
 */
function collect(
  response: http.IncomingMessage,
  schedule: Schedule,
  finish: (answer: HttpAnswer) => void,
): void {
  const status = response.statusCode ?? 0
  const isRefusal = status !== 200
  const chunks: Buffer[] = []
  let length = 0
  const cancelWait = isRefusal
    ? schedule(() => response.destroy(new Error('the body is late')), refusalBodyMs)
    : () => undefined
  response.on('data', (chunk: Buffer) => {
    length += chunk.length
    if (length <= maxBodyBytes) chunks.push(chunk)
    else response.destroy(new Error('the answer is too long'))
  })
  response.on('end', () => {
    cancelWait()
    const text = Buffer.concat(chunks).toString('utf8')
    const body = parseJson(text)
    // Nothing else shows that an answer was cut off in HTTP/1.0.
    const isCutOff = body === undefined && /^\s*[[{]/.test(text)
    if (isCutOff && !isRefusal) finish({ kind: 'silence', reason: 'the JSON is not whole' })
    else finish({ kind: 'answered', status, body })
  })
  response.on('error', (error) => {
    cancelWait()
    if (isRefusal) finish({ kind: 'answered', status, body: undefined })
    else finish({ kind: 'silence', reason: error.message })
  })
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

export interface Grant {
  readonly account: Account
  /** Infinity: the OCS names no limit. */
  readonly grantedSeconds: number
}

/**
 * Reads a 200 to authorize. The OCS may be of another make: only the status is certain. Undefined:
 * the body says that the call is not authorized.
 */
export function readGrant(body: unknown, customerId: number | null): Grant | undefined {
  const answer = fields(body)
  if (answer.authorized === false) return undefined
  return {
    account: {
      customerId: integer(answer.customer_id) ?? customerId,
      tenantId: null,
      ratePrefix: text(answer.rate_prefix) ?? null,
      currency: text(answer.currency) ?? null,
      isUnauthorizedByOcs: false,
    },
    grantedSeconds: readGrantedSeconds(body),
  }
}

export function readGrantedSeconds(body: unknown): number {
  const seconds = fields(body).granted_seconds
  return typeof seconds === 'number' && seconds >= 0 ? seconds : Infinity
}

/** The denial code, one snake_case word. */
export function readDenialCode(body: unknown, status: number): string {
  const code = text(fields(body).code)
  return code !== undefined && /^[a-z][a-z0-9_]{0,63}$/.test(code) ? code : `ocs_status_${status}`
}

/** Reads a 200 to a CDR. Undefined: it names no cost. */
export function readCost(
  body: unknown,
): { readonly costMicros: number; readonly currency: string | null } | undefined {
  const answer = fields(body)
  const amount = answer.cost_exact ?? answer.cost
  if (typeof amount !== 'string' && typeof amount !== 'number') return undefined
  const costMicros = parseMoney(amount)
  if (costMicros === undefined || costMicros < 0) return undefined
  return { costMicros, currency: text(answer.currency) ?? null }
}

function fields(body: unknown): Record<string, unknown> {
  return typeof body === 'object' && body !== null ? { ...body } : {}
}

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined)

const integer = (value: unknown): number | undefined =>
  typeof value === 'number' && Number.isSafeInteger(value) ? value : undefined
