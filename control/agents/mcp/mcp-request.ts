/**
 * Reads a request to `/mcp` before the SDK does: its subscriptions, and whether it begins a
 * session.
 */
import { isIP } from 'node:net'
import { isInitializeRequest } from '@modelcontextprotocol/server'
import type { Context, MiddlewareHandler } from 'hono'
import { z } from 'zod'
import { parseHostPort } from '../../../schema/sip/index.ts'
import { ApiError } from '../../http/api-error.ts'
import { excessOf, readBody } from '../../http/body.ts'
import { type ControlEnv, requestHeader } from '../../http/control-env.ts'
import { watchedResources } from './resources.ts'

/** JSON-RPC messages in one request. */
const MAX_MEMBERS = 50

interface McpRequest {
  /** JSON-RPC messages: those of a batch, else one. */
  readonly members: number
  /** The request in the form that the SDK takes. */
  readonly request: Request
  /**
   * The resources that `subscriptions/listen` asks for; undefined: it is another request, or none
   * that the SDK takes.
   */
  readonly wanted: readonly string[] | undefined
  /** A client of 2025 begins. */
  readonly isInitialize: boolean
  /**
   * Id of the session of a client of 2025 that has begun one; undefined: it has none, as all
   * clients of 2026-07-28.
   */
  readonly sessionId: string | undefined
}

const listen = z.looseObject({
  method: z.literal('subscriptions/listen'),
  params: z.looseObject({
    notifications: z.looseObject({ resourceSubscriptions: z.array(z.string()).max(1_000) }),
  }),
})

/** Protocols from this one on have no sessions. */
const FIRST_WITHOUT_SESSIONS = '2026-07-28'

/**
 * @throws {ApiError} 413: the body is too large, or a batch has too many members. The SDK counts it
 * only when it is whole in memory here.
 */
export async function mcpRequest(c: Context): Promise<McpRequest> {
  const { raw } = c.req
  const { url, method, headers, signal } = raw
  const isOfSessions = (headers.get('mcp-protocol-version') ?? '') < FIRST_WITHOUT_SESSIONS
  const sessionId = isOfSessions ? (headers.get('mcp-session-id') ?? undefined) : undefined
  if (method !== 'POST')
    return { request: raw, members: 1, wanted: undefined, isInitialize: false, sessionId }
  const bytes = await readBody(c)
  const request = new Request(url, { method, headers, signal, body: new Uint8Array(bytes) })
  const message = messageIn(bytes)
  const members = Array.isArray(message) ? message.length : 1
  if (members > MAX_MEMBERS)
    throw new ApiError(413, 'batch_too_large', `A batch has at most ${MAX_MEMBERS} members`)
  return {
    request,
    members,
    sessionId,
    wanted: wantedIn(message),
    isInitialize: isOfSessions && isInitializeRequest(message),
  }
}

const wantedIn = (message: unknown): readonly string[] | undefined =>
  listen.safeParse(message).data?.params.notifications.resourceSubscriptions

/** The resources that can be watched of those that `subscriptions/listen` asks for. */
export const listenedTo = (message: unknown): readonly string[] =>
  watchedResources.map(({ uri }) => uri).filter((uri) => wantedIn(message)?.includes(uri))

/** Undefined for invalid JSON, which the SDK refuses. @throws {ApiError} 400: not worth parsing. */
function messageIn(bytes: Buffer): unknown {
  const text = bytes.toString('utf8')
  const excess = excessOf(text)
  if (excess !== undefined) throw new ApiError(400, 'malformed_json', `The body ${excess}`)
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Names of this machine that DNS cannot assign to another one. */
const loopback: ReadonlySet<string> = new Set(['localhost', '127.0.0.1', '::1'])

/**
 * Rejects with 403 a `Host` that is not an address (an address cannot be rebound), localhost or one
 * of `names`, and an `Origin` on another machine than this one or this host.
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
