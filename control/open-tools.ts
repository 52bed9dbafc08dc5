/** Mounts the tools for AI agents: over MCP and over REST. */
import { setImmediate } from 'node:timers/promises'
import { Hono } from 'hono'
import { kinds } from './resources/kinds.ts'
import type { AuditLog } from './changes/audit.ts'
import { latest } from '../schema/clock.ts'
import type { OpenedAccess } from './access.ts'
import { revalidator } from './auth/authenticate.ts'
import type { ControlEnv } from './http/control-env.ts'
import { countMembers } from './auth/rate-limit.ts'
import { newUuid, type Platform } from './http/platform.ts'
import type { WithOthers } from './instances/other-instances.ts'
import type { WithReports } from './reports/reports.ts'
import type { Webhooks } from './webhooks/webhooks.ts'
import type { Telemetry } from './observe/telemetry/telemetry.ts'
import { mcpRoutes, type Revalidator } from './agents/mcp/mcp-routes.ts'
import { McpSessions } from './agents/mcp/sessions.ts'
import type { McpSubscriptions } from './agents/mcp/subscriptions.ts'
import { toolRoutes } from './agents/tool-routes.ts'
import type { Reratings } from './resources/reratings/reratings.ts'
import { Proposals } from './agents/proposals/proposals.ts'
import { Toolbox } from './agents/toolbox.ts'

/** The tools, and the proposals to use them. */
export function openTools(
  deps: Platform &
    WithOthers &
    WithReports & { readonly webhooks: Webhooks; readonly reratings: Reratings | undefined },
  access: Pick<OpenedAccess, 'keys' | 'usage' | 'users' | 'tenants'>,
  telemetry: Telemetry,
  audit: AuditLog,
) {
  const proposals: Proposals = new Proposals({
    ...deps,
    keys: access.keys,
    users: access.users,
    tenants: access.tenants,
    tools: {
      find: (name) => toolbox.proposable(name),
      names: () => toolbox.proposableNames(),
    },
  })
  const { keys, usage, tenants } = access
  const toolDeps = {
    ...deps,
    kinds,
    keys,
    usage,
    tenants,
    audit,
    telemetry,
    proposals,
    pause: nextTurn,
  }
  const toolbox: Toolbox = new Toolbox(toolDeps, audit, deps.log)
  return { toolbox, proposals }
}

/** Mounted at the root: `/mcp` and `/api/v1/mcp/tools`. */
export function agentToolRoutes(
  deps: Platform & WithOthers,
  access: OpenedAccess,
  toolbox: Toolbox,
  subscriptions: McpSubscriptions,
) {
  const { log, version, settings, others } = deps
  const allowedHosts = settings.mcpAllowedHosts
  const revalidate: Revalidator = (c, scope) => revalidator(c, scope, access, () => latest(deps))
  const served = {
    toolbox,
    subscriptions,
    revalidate,
    version,
    allowedHosts,
    log,
    others,
    sessions: new McpSessions(deps),
    newUuid: () => newUuid(deps.randomBytes),
    countMembers: countMembers(access.limits, deps),
  }
  return new Hono<ControlEnv>()
    .route('/', mcpRoutes(served))
    .route('/api/v1', toolRoutes({ toolbox, others }))
}

const nextTurn = async (): Promise<void> => {
  await setImmediate()
}
