/**
 * Blocks foreign web pages (MCP specification, Streamable HTTP, security warning). A page whose name
 * resolves to this machine (DNS rebinding) is recognized by its `Host`, any other by its `Origin`.
 */
import { isIP } from 'node:net'
import type { MiddlewareHandler } from 'hono'
import { parseHostPort } from '../../../engine/sip-server/message/index.ts'
import { ApiError } from '../../http/api-error.ts'
import { type ControlEnv, requestHeader } from '../../http/control-env.ts'

/** Names of this machine that DNS cannot assign to another one. */
const loopback: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '::1'])

/**
 * Rejects with 403 a `Host` that is not an address (an address cannot be rebound), localhost or one of
 * `names`, and an `Origin` on another machine than this one or this host.
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
    `The ${header} of this request is not allowed. The operator can add hosts in MCP_ALLOWED_HOSTS`,
  )

/** Returns the host in lower case, without port and brackets. */
function hostNameOf(authority: string | undefined): string | undefined {
  return parseHostPort(authority ?? '')?.host.toLowerCase()
}

/** Undefined when not a web origin, such as the origin `null` of a sandboxed page. */
const authorityOf = (url: string): string | undefined => /^https?:\/\/([^/]+)/i.exec(url)?.[1]
