/** One problem in a request: its path (`nodes.0.host`) and a message. */
export interface RequestProblem {
  readonly path: string
  readonly message: string
}

export type ErrorStatus =
  | 400
  | 401
  | 402
  | 403
  | 404
  | 405
  | 408
  | 409
  | 412
  | 413
  | 415
  | 416
  | 422
  | 429
  | 500
  | 501
  | 502
  | 503

interface ErrorExtras {
  readonly details?: readonly RequestProblem[]
  readonly headers?: Readonly<Record<string, string>>
  /** The present thing, where the request names another version of it. */
  readonly current?: unknown
}

/**
 * An error response, thrown anywhere below a route; `errorHandler` (`front.ts`) turns it into the
 * envelope. The API's caller reads `message`, so it contains nothing internal.
 */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: ErrorStatus
  /** snake_case and stable: programs depend on it. */
  readonly code: string
  readonly details: readonly RequestProblem[] | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly current: unknown

  constructor(status: ErrorStatus, code: string, message: string, extras: ErrorExtras = {}) {
    super(message)
    this.status = status
    this.code = code
    this.details = extras.details
    this.headers = extras.headers ?? {}
    this.current = extras.current
  }
}

export const badRequest = (message: string, details?: readonly RequestProblem[]): ApiError =>
  new ApiError(400, 'validation_failed', message, details === undefined ? {} : { details })

export const storageUnavailable = (reason = 'Nothing can be stored at the moment'): ApiError =>
  new ApiError(503, 'storage_unavailable', reason, { headers: { 'Retry-After': '5' } })

export const notFound = (what: string): ApiError =>
  new ApiError(404, 'not_found', `${what} not found`)

export const conflict = (code: string, message: string): ApiError =>
  new ApiError(409, code, message)
