/** `/mcp`: Streamable HTTP for MCP clients of both protocol eras, without sessions. */
import { createMcpHandler, type AuthInfo } from '@modelcontextprotocol/server'
import { Hono } from 'hono'
import type { Log } from '../../../schema/contracts/log.ts'
import { requires } from '../../auth/requires.ts'
import { MAX_BODY_BYTES } from '../../http/body.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import type { OtherNodes } from '../../nodes/other-nodes.ts'
import type { Toolbox, ToolCaller } from '../toolbox.ts'
import { callerOf } from '../caller.ts'
import { ownPages } from './own-pages.ts'
import { mcpServer } from './server.ts'

export interface McpRoutesDeps {
  readonly toolbox: Toolbox
  readonly version: string
  /** Host names under which a proxy serves the API. */
  readonly allowedHosts: readonly string[]
  readonly log: Log
  readonly others?: OtherNodes | undefined
}

/** Limit of streams that wait for notifications. There are none, so few streams are worth a connection. */
const MAX_SUBSCRIPTIONS = 64

export function mcpRoutes({ toolbox, version, allowedHosts, log, others }: McpRoutesDeps) {
  const callers = new WeakMap<AuthInfo, ToolCaller>()
  const handler = createMcpHandler(
    ({ authInfo }) => {
      const caller = authInfo && callers.get(authInfo)
      if (caller === undefined) throw new Error('an MCP request came without its caller')
      return mcpServer({
        version,
        list: () => toolbox.list(),
        call: (name, given) => toolbox.call(name, given, caller),
      })
    },
    {
      maxRequestBodySize: MAX_BODY_BYTES,
      maxSubscriptions: MAX_SUBSCRIPTIONS,
      onerror: (error) => log('debug', 'mcp: request refused', { error: error.message }),
    },
  )

  // For every method, because the protocol defines responses for unused ones.
  return new Hono<ControlEnv>().all('/mcp', ownPages(allowedHosts), requires('mcp:read'), (c) => {
    // Tool calls write their own audit entries; nothing else here changes anything.
    c.set('isAudited', true)
    const caller = callerOf(c, others)
    const { actor, scopeLabels } = caller.principal
    const authInfo: AuthInfo = { token: '', clientId: actor, scopes: [...scopeLabels] }
    callers.set(authInfo, caller)
    return handler.fetch(c.req.raw, { authInfo })
  })
}
