/** Turns every error into the envelope of SPECIFICATION.md §2.7, without internal details. */
import type { Context, ErrorHandler, Hono, NotFoundHandler } from 'hono'
import { HTTPException } from 'hono/http-exception'
import type { Log } from '../../schema/contracts/log.ts'
import { isUnstored } from '../../schema/storage/storage.ts'
import { ApiError, storageUnavailable } from './api-error.ts'
import type { ControlEnv } from './control-env.ts'
import type { ErrorBody } from './envelope.ts'

export function errorHandler(log: Log): ErrorHandler<ControlEnv> {
  return (error, c) => answer(c, asApiError(error, c, log))
}

/** 404 for a path without a route; 405, with `Allow`, for one that has other methods. */
export function notFoundHandler(app: Hono<ControlEnv>): NotFoundHandler<ControlEnv> {
  return (c) => {
    const allowed = methodsOf(app, c.req.path)
    if (allowed.length === 0)
      return answer(c, new ApiError(404, 'not_found', 'No route has this path'))
    const headers = { Allow: allowed.join(', ') }
    return answer(
      c,
      new ApiError(405, 'method_not_allowed', `This path does not support ${c.req.method}`, {
        headers,
      }),
    )
  }
}

const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'] as const

/** Counts only handlers of this method, not those mounted on every path. */
function methodsOf(app: Hono<ControlEnv>, path: string): string[] {
  const found: string[] = methods.filter((method) =>
    app.router
      .match(method, path)[0]
      .some(([[, route]]) => route.method === method && route.path !== '/*'),
  )
  if (found.includes('GET')) found.push('HEAD')
  return found.length === 0 ? [] : [...found, 'OPTIONS']
}

function asApiError(error: Error, c: Context<ControlEnv>, log: Log): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof HTTPException && error.status < 500)
    return new ApiError(400, 'bad_request', 'The request is invalid')
  if (isUnstored(error)) {
    log('warn', 'request refused: the database cannot be written', { path: c.req.path, error })
    return storageUnavailable()
  }
  log('error', 'request failed', {
    method: c.req.method,
    path: c.req.path,
    request_id: c.get('correlationId'),
    error: error.stack ?? error.message,
  })
  return new ApiError(500, 'internal_error', 'Internal error')
}

function answer(c: Context<ControlEnv>, error: ApiError): Response {
  c.set('refusal', { code: error.code, details: error.details })
  // Absent in an app without a server.
  const env: Partial<ControlEnv['Bindings']> | undefined = c.env
  if (env?.outgoing !== undefined) env.outgoing.refusal = error.code
  return c.json(errorBody(error, c.get('correlationId')), error.status, { ...error.headers })
}

export const errorBody = (error: ApiError, requestId: string): ErrorBody => ({
  success: false,
  error: error.message,
  statusCode: error.status,
  code: error.code,
  ...(error.details !== undefined && { details: error.details }),
  request_id: requestId,
})
