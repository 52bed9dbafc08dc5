/**
 * `/mcp`: Streamable HTTP for MCP clients of both protocol eras; those of 2025 may have a session.
 */
import {
  createMcpHandler,
  INVALID_PARAMS,
  ProtocolError,
  type AuthInfo,
} from '@modelcontextprotocol/server'
import { type Context, Hono } from 'hono'
import type { Log } from '../../../schema/contracts/log.ts'
import { digestOf } from '../../changes/audit.ts'
import { requires } from '../../auth/requires.ts'
import type { Scope } from '../../auth/scopes.ts'
import { ApiError } from '../../http/api-error.ts'
import { MAX_BODY_BYTES } from '../../http/body.ts'
import { onlyMethods } from '../../http/front.ts'
import { type ControlEnv, requestHeader } from '../../http/control-env.ts'
import type { OtherInstances } from '../../instances/other-instances.ts'
import { callerOf, type Toolbox, type ToolCaller } from '../toolbox.ts'
import { mcpRequest, ownPages } from './mcp-request.ts'
import { type ToolResource, watchedResource, watchedResources } from './resources.ts'
import { mcpServer, refusalText, type ResourceSubscriptions } from './server.ts'
import type { McpSessions } from './sessions.ts'
import {
  MAX_STREAMS,
  type Subscriber,
  type McpSubscriptions,
  type WatchedUri,
} from './subscriptions.ts'

/** Returns a check whether a request with this scope would still be admitted. */
export type Revalidator = (c: Context<ControlEnv>, scope: Scope) => () => Promise<boolean>

export interface McpRoutesDeps {
  readonly toolbox: Toolbox
  readonly subscriptions: McpSubscriptions
  readonly sessions: McpSessions
  readonly newUuid: () => string
  readonly revalidate: Revalidator
  readonly version: string
  /** Host names under which a proxy serves the API. */
  readonly allowedHosts: readonly string[]
  readonly log: Log
  /** Counts the other members of a batch against the limit of its caller. */
  readonly countMembers: (c: Context<ControlEnv>, more: number) => Promise<void>
  readonly others?: OtherInstances | undefined
}

/** One request, as its handlers need it. */
interface McpUse {
  readonly caller: ToolCaller
  /** Undefined: the client has none. */
  readonly session: string | undefined
}

export function mcpRoutes(deps: McpRoutesDeps) {
  const { toolbox, subscriptions, sessions, version, allowedHosts, log, others } = deps
  const uses = new WeakMap<AuthInfo, McpUse>()
  const handler = createMcpHandler(
    ({ authInfo, requestInfo, era }) => {
      const use = authInfo && uses.get(authInfo)
      if (use === undefined) throw new Error('an MCP request came without its caller')
      const { caller, session } = use
      return mcpServer({
        version,
        protocolVersion: requestInfo?.headers.get('mcp-protocol-version') ?? undefined,
        // A request of 2025 without a session is answered, and then nothing connects us with its
        // client.
        notifies: era === 'modern' || session !== undefined,
        subscriptions: session === undefined ? undefined : subscriptionsOf(session, caller, deps),
        list: () => toolbox.list(),
        call: (name, given) => toolbox.call(name, given, caller),
      })
    },
    {
      maxRequestBodySize: MAX_BODY_BYTES,
      maxSubscriptions: MAX_STREAMS,
      bus: subscriptions,
      onerror: (error) => log('debug', 'mcp: request refused', { error: error.message }),
    },
  )

  // The protocol defines responses for GET and DELETE where they are not used.
  return new Hono<ControlEnv>().all(
    '/mcp',
    onlyMethods('GET', 'POST', 'DELETE'),
    ownPages(allowedHosts),
    requires('mcp:read'),
    async (c) => {
      // Tool calls write their own audit entries; nothing else here changes anything.
      c.set('isAudited', true)
      const caller = callerOf(c, others)
      const { principal } = caller
      const { request, members, wanted, isInitialize, sessionId } = await mcpRequest(c)
      if (members > 1) await deps.countMembers(c, members - 1)
      if (sessionId !== undefined && !isInitialize && !(await sessions.use(sessionId, principal)))
        return noSession()
      const session = isInitialize ? await sessions.open(principal) : sessionId
      if (session !== undefined && request.method === 'GET')
        return getStream(c, session, caller, deps)
      if (session !== undefined && request.method === 'DELETE') {
        await sessions.end(session)
        subscriptions.endSession(session)
        return new Response(null, { status: 200 })
      }

      const { actor, scopeLabels } = principal
      const authInfo: AuthInfo = { token: '', clientId: actor, scopes: [...scopeLabels] }
      uses.set(authInfo, { caller, session })
      const answer = () => handler.fetch(request, { authInfo })
      if (wanted !== undefined)
        return subscriptions.open(listenerOf(c, wanted, caller, deps), answer)
      const response = await answer()
      if (isInitialize && session !== undefined) response.headers.set('Mcp-Session-Id', session)
      return response
    },
  )
}

/** The answer of the protocol where a session has ended: the client then initializes again. */
const noSession = (): Response => refusal(404, -32_001, 'Session not found')

const refusal = (status: number, code: number, message: string): Response =>
  Response.json({ jsonrpc: '2.0', error: { code, message }, id: null }, { status })

/** `resources/subscribe` and `resources/unsubscribe` of a session. */
const subscriptionsOf = (
  session: string,
  caller: ToolCaller,
  { sessions, subscriptions, toolbox }: McpRoutesDeps,
): ResourceSubscriptions => ({
  async subscribe(uri) {
    const resource = watchedResource(uri)
    try {
      toolbox.admit(resource.tool, caller.principal)
    } catch (error) {
      if (error instanceof ApiError) throw new ProtocolError(INVALID_PARAMS, refusalText(error))
      throw error
    }
    const view = viewOf(caller, toolbox)
    const seen = await subscriptions.versionFor(watchedUriOf(resource), view)
    await sessions.subscribe(session, { uri, seen: seen ?? '' })
  },
  unsubscribe: (uri) => sessions.unsubscribe(session, uri),
})

const watchedUriOf = ({ uri, everyMs = 0 }: ToolResource): WatchedUri => ({ uri, everyMs })

/**
 * `GET /mcp`: the stream with the notifications of a session.
 *
 * @throws {ApiError} 429 or 503: too many streams.
 */
async function getStream(
  c: Context<ControlEnv>,
  session: string,
  caller: ToolCaller,
  { sessions, subscriptions, toolbox, revalidate, newUuid }: McpRoutesDeps,
): Promise<Response> {
  if (!(requestHeader(c, 'accept') ?? '').includes('text/event-stream'))
    return refusal(406, -32_000, 'Not Acceptable: Client must accept text/event-stream')
  const { actor, tenantId } = caller.principal
  const reader = newUuid()
  const isStillAdmitted = revalidate(c, 'mcp:read')
  // A key may be narrowed while its stream is open.
  const mayRead = new Map(
    watchedResources.map(({ uri, tool }) => [
      uri,
      admittedBy(c, toolbox.scopesOf(tool), revalidate),
    ]),
  )
  let known: readonly WatchedUri[] = []
  /** Versions that the client was notified of and that could not be stored. */
  const unsaved = new Map<string, string>()
  const subscriber: Subscriber = {
    ...viewOf(caller, toolbox),
    actor,
    tenantId,
    session,
    async isStillAdmitted() {
      if (await isStillAdmitted()) return true
      await sessions.end(session).catch(() => undefined)
      return false
    },
    async watched() {
      try {
        const subscribed = await sessions.readBy(session, reader)
        if (subscribed === undefined) return undefined
        const found: WatchedUri[] = []
        for (const { uri, seen } of subscribed) {
          const resource = watchedResources.find((each) => each.uri === uri)
          if (resource === undefined || (await mayRead.get(uri)?.()) !== true) continue
          found.push({ ...watchedUriOf(resource), seen })
        }
        known = found
      } catch {
        // The database does not answer: as before, then.
      }
      return known.map((each) => ({ ...each, seen: unsaved.get(each.uri) ?? each.seen ?? '' }))
    },
    async noteSeen(uri, seen) {
      unsaved.set(uri, seen)
      try {
        await sessions.noteSeen(session, { uri, seen })
        unsaved.delete(uri)
      } catch {
        // The database cannot be written: this stream does not repeat the notification.
      }
    },
  }
  await sessions.read(session, reader)
  return subscriptions.openSession(subscriber)
}

/** Whether a request with all these scopes would still be admitted. */
function admittedBy(
  c: Context<ControlEnv>,
  scopes: Iterable<Scope>,
  revalidate: Revalidator,
): () => Promise<boolean> {
  const checks = [...scopes].map((scope) => revalidate(c, scope))
  return async () => {
    for (const isAdmitted of checks) if (!(await isAdmitted())) return false
    return true
  }
}

/** The stream of `subscriptions/listen`. */
function listenerOf(
  c: Context<ControlEnv>,
  wanted: readonly string[],
  caller: ToolCaller,
  { toolbox, revalidate }: McpRoutesDeps,
): Subscriber {
  const { actor, tenantId } = caller.principal
  const watched = watchedResources.filter(({ uri }) => wanted.includes(uri))
  const scopes = new Set<Scope>(['mcp:read'])
  for (const { tool } of watched)
    for (const scope of toolbox.admit(tool, caller.principal)) scopes.add(scope)
  return {
    ...viewOf(caller, toolbox),
    actor,
    tenantId,
    watched: () => Promise.resolve(watched.map(watchedUriOf)),
    isStillAdmitted: admittedBy(c, scopes, revalidate),
  }
}

function viewOf(
  { principal }: ToolCaller,
  toolbox: Toolbox,
): Pick<Subscriber, 'sees' | 'versionOf'> {
  return {
    sees: JSON.stringify([principal.tenantId, principal.domain]),
    /** This read has no audit entry: nothing of it is sent. */
    async versionOf(uri) {
      const resource = watchedResources.find((each) => each.uri === uri)
      if (resource?.watched === undefined) return undefined
      const answer = await toolbox.readUnaudited(resource.tool, principal)
      return answer.kind === 'done' ? (digestOf(resource.watched(answer.data)) ?? '') : undefined
    },
  }
}
