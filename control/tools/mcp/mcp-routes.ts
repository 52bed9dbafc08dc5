/** `/mcp`: Streamable HTTP for MCP clients of both protocol eras, without sessions. */
import { createMcpHandler, type AuthInfo } from '@modelcontextprotocol/server'
import { type Context, Hono } from 'hono'
import type { Log } from '../../../schema/contracts/log.ts'
import { requires } from '../../auth/requires.ts'
import type { Scope } from '../../auth/scopes.ts'
import { MAX_BODY_BYTES } from '../../http/body.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import type { OtherNodes } from '../../nodes/other-nodes.ts'
import type { Toolbox, ToolCaller } from '../toolbox.ts'
import { callerOf } from '../caller.ts'
import { mcpRequest } from './listen-request.ts'
import { ownPages } from './own-pages.ts'
import { type ToolResource, watchedResources } from './resources.ts'
import { mcpServer } from './server.ts'
import { MAX_STREAMS, type Subscriber, type Subscriptions } from './subscriptions.ts'

/** Returns a check whether a request with this scope would still be admitted. */
export type Revalidator = (c: Context<ControlEnv>, scope: Scope) => () => Promise<boolean>

export interface McpRoutesDeps {
  readonly toolbox: Toolbox
  readonly subscriptions: Subscriptions
  readonly revalidate: Revalidator
  readonly version: string
  /** Host names under which a proxy serves the API. */
  readonly allowedHosts: readonly string[]
  readonly log: Log
  readonly others?: OtherNodes | undefined
}

export function mcpRoutes(deps: McpRoutesDeps) {
  const { toolbox, subscriptions, version, allowedHosts, log, others } = deps
  const callers = new WeakMap<AuthInfo, ToolCaller>()
  const handler = createMcpHandler(
    ({ authInfo, requestInfo, era }) => {
      const caller = authInfo && callers.get(authInfo)
      if (caller === undefined) throw new Error('an MCP request came without its caller')
      return mcpServer({
        version,
        protocolVersion: requestInfo?.headers.get('mcp-protocol-version') ?? undefined,
        // A request of 2025 is answered, and then nothing connects us with its client.
        notifies: era === 'modern',
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
      const { actor, scopeLabels } = caller.principal
      const authInfo: AuthInfo = { token: '', clientId: actor, scopes: [...scopeLabels] }
      callers.set(authInfo, caller)
      const { request, wanted } = await mcpRequest(c)
      const answer = () => handler.fetch(request, { authInfo })
      if (wanted === undefined) return answer()
      return subscriptions.open(subscriberOf(c, wanted, caller, deps), answer)
    },
  )
}

function subscriberOf(
  c: Context<ControlEnv>,
  wanted: readonly string[],
  caller: ToolCaller,
  { toolbox, revalidate }: McpRoutesDeps,
): Subscriber {
  const { actor, tenantId, domain } = caller.principal
  const watched = watchedResources.filter(({ uri }) => wanted.includes(uri))
  const scopes = new Set<Scope>(['mcp:read'])
  for (const { tool } of watched)
    for (const scope of toolbox.admit(tool, caller.principal)) scopes.add(scope)
  const checks = [...scopes].map((scope) => revalidate(c, scope))
  return {
    ...{ actor, tenantId, sees: JSON.stringify([tenantId, domain]) },
    uris: watched.map(({ uri, everyMs = 0 }) => ({ uri, everyMs })),
    isStillAdmitted: async () => {
      for (const isAdmitted of checks) if (!(await isAdmitted())) return false
      return true
    },
    versionOf: (uri) =>
      versionOf(
        watched.find((each) => each.uri === uri),
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
  return answer.kind === 'done' ? JSON.stringify(resource.watched(answer.data)) : undefined
}
