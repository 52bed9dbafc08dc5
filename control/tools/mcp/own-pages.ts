/**
 * Keeps web pages of strangers out (MCP specification, Streamable HTTP, security warning): a page that
 * has its name resolve to this machine is told by its `Host`, any other one by its `Origin`.
 */
import { isIP } from 'node:net'
import type { MiddlewareHandler } from 'hono'
import { parseHostPort } from '../../../engine/sip-server/message/index.ts'
import { ApiError } from '../../http/api-error.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { requestHeader } from '../../http/request-head.ts'

/** Names of this machine that nobody outside can give to another one. */
const loopback: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '::1'])

/**
 * 403 for a `Host` that is neither an address (no name was resolved, so none can be rebound), nor
 * localhost, nor one of `names`; and for an `Origin` that is not on this machine or this very host.
 */
export function ownPages(names: readonly string[]): MiddlewareHandler<ControlEnv> {
  const allowed = new Set(names.map((name) => name.toLowerCase()))
  return (c, next) => {
    const host = hostNameOf(requestHeader(c, 'host') ?? authorityOf(c.req.url))
    if (host === undefined || !(loopback.has(host) || isIP(host) !== 0 || allowed.has(host)))
      throw refused('Host')
    const origin = requestHeader(c, 'origin')
    if (origin === undefined) return next()
    const page = hostNameOf(authorityOf(origin))
    if (page === undefined || !(loopback.has(page) || page === host || allowed.has(page)))
      throw refused('Origin')
    return next()
  }
}

const refused = (header: string): ApiError =>
  new ApiError(
    403,
    'origin_not_allowed',
    `The ${header} of this request is not allowed; the operator can name more hosts in MCP_ALLOWED_HOSTS`,
  )

/** Lower case, without port and brackets. */
function hostNameOf(authority: string | undefined): string | undefined {
  return parseHostPort(authority ?? '')?.host.toLowerCase()
}

/** Undefined: nothing of the web, such as the origin `null` of a sandboxed page. */
const authorityOf = (url: string): string | undefined => /^https?:\/\/([^/]+)/i.exec(url)?.[1]
