/**
 * One request to the API: its credential, how long it may take, what is tried again, and how it
 * fails.
 */

export interface ConnectionOptions {
  /** Where the API is, such as `http://127.0.0.1:8080`. */
  readonly url: string
  /** The token of an application key, or of a session. */
  readonly key: string
  /** The slug of the tenant that a global key acts for. */
  readonly tenant?: string | undefined
  /** How long an attempt may take; 30,000 if absent. */
  readonly timeoutMs?: number | undefined
  /** How often a request that is safe to repeat is tried again; 2 if absent. */
  readonly retries?: number | undefined
  /** Instead of the global `fetch`. */
  readonly fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined
  /**
   * Is given each answer: its headers have the rest of the rate limit, the change that was entered,
   * and instances that did not answer.
   */
  readonly onAnswer?: ((answer: AnswerNote) => void) | undefined
}

export interface AnswerNote {
  readonly status: number
  readonly headers: Headers
}

export interface RequestOptions {
  /** Why, for the audit log. Requests that create, change or delete something take it. */
  readonly reason?: string | undefined
  /** Makes a request that moves money or starts a call safe to repeat; one is made up if absent. */
  readonly idempotencyKey?: string | undefined
  /** The `ETag` of the version that is to be changed; another one is refused with 412. */
  readonly ifMatch?: string | undefined
  /** Is given the answer to this request: its headers have the `ETag` of what it shows. */
  readonly onAnswer?: ((answer: AnswerNote) => void) | undefined
  readonly tenant?: string | undefined
  readonly timeoutMs?: number | undefined
  readonly signal?: AbortSignal | undefined
}

export interface ErrorDetail {
  /** The field, such as `gateways.0.host`. */
  readonly path: string
  readonly message: string
}

/** A request that failed: refused by the API, or without an answer. */
export class TollgateError extends Error {
  override readonly name = 'TollgateError'
  /** The status of HTTP; 0: there was no answer. */
  readonly status: number
  /** The reason as a code: `validation_failed`; without an answer `timeout` or `unreachable`. */
  readonly code: string
  /** The fields that are wrong, each with the reason. */
  readonly details: readonly ErrorDetail[]
  /** Names the request in the log of the API. */
  readonly correlationId: string | undefined
  readonly retryAfterSeconds: number | undefined
  /** The present thing, where `ifMatch` has named another version. */
  readonly current: unknown
  /** The version of `current`. */
  readonly etag: string | undefined

  constructor(
    message: string,
    facts: Pick<TollgateError, 'status' | 'code'> &
      Partial<
        Pick<
          TollgateError,
          'details' | 'correlationId' | 'retryAfterSeconds' | 'cause' | 'current' | 'etag'
        >
      >,
  ) {
    super(message, { cause: facts.cause })
    this.status = facts.status
    this.code = facts.code
    this.details = facts.details ?? []
    this.correlationId = facts.correlationId
    this.retryAfterSeconds = facts.retryAfterSeconds
    this.current = facts.current
    this.etag = facts.etag
  }
}

export interface ApiRequest {
  readonly method: string
  /** The path with its query. */
  readonly path: string
  /** Text is sent as it is, everything else as JSON. */
  readonly body?: unknown
  readonly bodyType?: string | undefined
  /** The API answers a repetition with the same `Idempotency-Key` as it answered the first. */
  readonly isRepeatable?: boolean | undefined
}

const defaultTimeoutMs = 30_000
const defaultRetries = 2
/** A longer wait is left to the caller. */
const longestWaitMs = 10_000
const firstWaitMs = 250

export class Connection {
  readonly #options: ConnectionOptions
  readonly #url: string

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#url = options.url.replace(/\/+$/, '')
  }

  /** Returns the body of the answer: parsed if it is JSON, or as text. @throws {TollgateError} */
  async send(request: ApiRequest, options: RequestOptions = {}): Promise<unknown> {
    const headers = this.#headersOf(request, options)
    const isSafe = request.method === 'GET' || 'Idempotency-Key' in headers
    const { retries = defaultRetries } = this.#options
    for (let retry = 0; ; retry += 1)
      try {
        return await this.#attempt(request, headers, options)
      } catch (error) {
        const waitMs = waitBefore(error, retry, isSafe)
        if (waitMs === undefined || retry >= retries) throw error
        await pause(waitMs, options.signal)
      }
  }

  #headersOf(
    { body, bodyType = 'application/json', isRepeatable = false }: ApiRequest,
    { idempotencyKey, ifMatch, tenant = this.#options.tenant }: RequestOptions,
  ): Readonly<Record<string, string>> {
    const repetition = idempotencyKey ?? (isRepeatable ? randomId() : undefined)
    return {
      Accept: 'application/json',
      Authorization: `Bearer ${this.#options.key}`,
      ...(body !== undefined && { 'Content-Type': bodyType }),
      ...(tenant !== undefined && { 'X-Tenant-Slug': tenant }),
      ...(repetition !== undefined && { 'Idempotency-Key': repetition }),
      ...(ifMatch !== undefined && { 'If-Match': ifMatch }),
    }
  }

  async #attempt(
    { method, path, body }: ApiRequest,
    headers: Readonly<Record<string, string>>,
    {
      signal,
      onAnswer: onThisAnswer,
      timeoutMs = this.#options.timeoutMs ?? defaultTimeoutMs,
    }: RequestOptions,
  ): Promise<unknown> {
    const { fetch: ask = fetch, onAnswer } = this.#options
    const timeout = AbortSignal.timeout(timeoutMs)
    let response: Response
    let text: string
    try {
      response = await ask(`${this.#url}${path}`, {
        method,
        headers,
        redirect: 'error',
        signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
      })
      text = await response.text()
    } catch (error) {
      signal?.throwIfAborted()
      throw timeout.aborted
        ? new TollgateError(`The API did not answer within ${timeoutMs} ms`, {
            status: 0,
            code: 'timeout',
            cause: error,
          })
        : new TollgateError(`The API at ${this.#url} cannot be reached`, {
            status: 0,
            code: 'unreachable',
            cause: error,
          })
    }
    const note = { status: response.status, headers: response.headers }
    onAnswer?.(note)
    onThisAnswer?.(note)
    const parsed = isJson(response) ? parse(text) : text
    if (response.ok && parsed !== undefined) return parsed
    throw refusalOf(response, parsed)
  }
}

const isJson = ({ headers }: Response): boolean =>
  headers.get('Content-Type')?.startsWith('application/json') ?? false

/** Undefined: it is not JSON. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

function refusalOf({ status, headers }: Response, body: unknown): TollgateError {
  const facts = {
    status,
    correlationId: headers.get('X-Correlation-ID') ?? undefined,
    retryAfterSeconds: Number(headers.get('Retry-After') ?? NaN) || undefined,
    etag: headers.get('ETag') ?? undefined,
  }
  if (!isErrorBody(body))
    return new TollgateError(`The answer ${status} does not come from Tollgate`, {
      ...facts,
      code: 'unexpected_answer',
    })
  const { error, code, details = [], current } = body
  const reasons = details.map(({ path, message }) =>
    path === '' ? message : `${path}: ${message}`,
  )
  return new TollgateError([error, ...reasons].join('. '), { ...facts, code, details, current })
}

interface ErrorBody {
  readonly error: string
  readonly code: string
  readonly details?: readonly ErrorDetail[]
  readonly current?: unknown
}

const isErrorBody = (body: unknown): body is ErrorBody =>
  typeof body === 'object' && body !== null && 'error' in body && 'code' in body

/** Undefined: the request is not tried again. */
function waitBefore(error: unknown, retry: number, isSafe: boolean): number | undefined {
  if (!(error instanceof TollgateError)) return undefined
  // A request over the limit was not carried out.
  const isPassing = error.status === 429 || (isSafe && [0, 502, 503, 504].includes(error.status))
  const waitMs =
    error.retryAfterSeconds === undefined
      ? firstWaitMs * 2 ** retry * (1 + Math.random())
      : error.retryAfterSeconds * 1_000
  return isPassing && waitMs <= longestWaitMs ? waitMs : undefined
}

function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal?.reason as Error)
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal?.addEventListener('abort', stop, { once: true })
  })
}

/** `crypto.randomUUID` is missing on pages without TLS. */
const randomId = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, '0'))
    .join('')
