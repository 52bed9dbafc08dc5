/** `/mcp`: Streamable HTTP for MCP clients of both protocol eras; those of 2025 may have a session. */
import { createMcpHandler, type AuthInfo } from '@modelcontextprotocol/server'
import { type Context, Hono } from 'hono'
import type { Log } from '../../../schema/contracts/log.ts'
import { digestOf } from '../../changes/audit/digest.ts'
import { requires } from '../../auth/requires.ts'
import type { Scope } from '../../auth/scopes.ts'
import { MAX_BODY_BYTES } from '../../http/body.ts'
import { type ControlEnv, requestHeader } from '../../http/control-env.ts'
import type { OtherNodes } from '../../nodes/other-nodes.ts'
import type { Toolbox, ToolCaller } from '../toolbox.ts'
import { callerOf } from '../caller.ts'
import { mcpRequest } from './mcp-request.ts'
import { ownPages } from './own-pages.ts'
import { type ToolResource, watchedResources } from './resources.ts'
import { mcpServer } from './server.ts'
import { openStream, type SessionUse, subscriptionsOf, watchedUriOf } from './session-routes.ts'
import type { McpSessions } from './sessions.ts'
import { MAX_STREAMS, type Subscriber, type Subscriptions } from './subscriptions.ts'

/** Returns a check whether a request with this scope would still be admitted. */
export type Revalidator = (c: Context<ControlEnv>, scope: Scope) => () => Promise<boolean>

export interface McpRoutesDeps {
  readonly toolbox: Toolbox
  readonly subscriptions: Subscriptions
  readonly sessions: McpSessions
  readonly newUuid: () => string
  readonly revalidate: Revalidator
  readonly version: string
  /** Host names under which a proxy serves the API. */
  readonly allowedHosts: readonly string[]
  readonly log: Log
  /** Counts the other members of a batch against the limit of its caller. */
  readonly countMembers: (c: Context<ControlEnv>, more: number) => Promise<void>
  readonly others?: OtherNodes | undefined
}

/** One request, as its handlers need it. */
interface McpUse {
  readonly caller: ToolCaller
  /** Undefined: the client has none. */
  readonly session: SessionUse | undefined
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
        // A request of 2025 without a session is answered, and then nothing connects us with its client.
        notifies: era === 'modern' || session !== undefined,
        subscriptions: session && subscriptionsOf(session),
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

  // For every method, because the protocol defines responses for unused ones.
  return new Hono<ControlEnv>().all(
    '/mcp',
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
      const id = isInitialize ? await sessions.open(principal) : sessionId
      const session = id === undefined ? undefined : sessionUse(id, caller, deps)
      if (session !== undefined && request.method === 'GET') return getStream(c, session, deps)
      if (session !== undefined && request.method === 'DELETE') return endSession(session)

      const { actor, scopeLabels } = principal
      const authInfo: AuthInfo = { token: '', clientId: actor, scopes: [...scopeLabels] }
      uses.set(authInfo, { caller, session })
      const answer = () => handler.fetch(request, { authInfo })
      if (wanted !== undefined)
        return subscriptions.open(listenerOf(c, wanted, caller, deps), answer)
      const response = await answer()
      if (isInitialize && id !== undefined) response.headers.set('Mcp-Session-Id', id)
      return response
    },
  )
}

/** What the protocol answers where a session has ended: the client begins again. */
const noSession = (): Response => refusal(404, -32_001, 'Session not found')

const refusal = (status: number, code: number, message: string): Response =>
  Response.json({ jsonrpc: '2.0', error: { code, message }, id: null }, { status })

async function getStream(
  c: Context<ControlEnv>,
  session: SessionUse,
  { revalidate, newUuid, toolbox }: McpRoutesDeps,
): Promise<Response> {
  if (!(requestHeader(c, 'accept') ?? '').includes('text/event-stream'))
    return refusal(406, -32_000, 'Not Acceptable: Client must accept text/event-stream')
  return openStream({
    ...session,
    reader: newUuid(),
    revalidate: (scope) => revalidate(c, scope),
    scopesOf: (tool) => toolbox.scopesOf(tool),
  })
}

async function endSession({ id, sessions, subscriptions }: SessionUse): Promise<Response> {
  await sessions.end(id)
  subscriptions.endSession(id)
  return new Response(null, { status: 200 })
}

const sessionUse = (
  id: string,
  caller: ToolCaller,
  { sessions, subscriptions, toolbox }: McpRoutesDeps,
): SessionUse => ({
  id,
  sessions,
  subscriptions,
  principal: caller.principal,
  view: viewOf(caller, toolbox),
  admit: (tool) => void toolbox.admit(tool, caller.principal),
})

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
  const checks = [...scopes].map((scope) => revalidate(c, scope))
  return {
    ...viewOf(caller, toolbox),
    actor,
    tenantId,
    watched: () => Promise.resolve(watched.map(watchedUriOf)),
    isStillAdmitted: async () => {
      for (const isAdmitted of checks) if (!(await isAdmitted())) return false
      return true
    },
  }
}

function viewOf(caller: ToolCaller, toolbox: Toolbox): Pick<Subscriber, 'sees' | 'versionOf'> {
  const { tenantId, domain } = caller.principal
  return {
    sees: JSON.stringify([tenantId, domain]),
    versionOf: (uri) =>
      versionOf(
        watchedResources.find((each) => each.uri === uri),
        caller,
        toolbox,
      ),
  }
}

/** Without an audit entry: nothing of it is sent. */
async function versionOf(
  resource: ToolResource | undefined,
  caller: ToolCaller,
  toolbox: Toolbox,
): Promise<string | undefined> {
  if (resource?.watched === undefined) return undefined
  const answer = await toolbox.look(resource.tool, caller.principal)
  return answer.kind === 'done' ? (digestOf(resource.watched(answer.data)) ?? '') : undefined
}
