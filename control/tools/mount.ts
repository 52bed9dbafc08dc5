/** Mounts the tools for AI agents: over MCP and over REST. */
import { setImmediate } from 'node:timers/promises'
import { Hono } from 'hono'
import type { AuditLog } from '../audit/audit-log.ts'
import { latest } from '../../schema/clock.ts'
import type { Access } from '../auth/access.ts'
import { revalidator } from '../auth/revalidate.ts'
import type { ControlDeps } from '../deps.ts'
import type { ControlEnv } from '../http/control-env.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import { mcpRoutes, type Revalidator } from './mcp/mcp-routes.ts'
import type { Subscriptions } from './mcp/subscriptions.ts'
import { toolRoutes } from './tool-routes.ts'
import { Toolbox } from './toolbox.ts'

/** Mounted at the root: `/mcp` and `/api/v1/mcp/tools`. */
export function agentToolRoutes(
  deps: ControlDeps,
  access: Access,
  telemetry: Telemetry,
  audit: AuditLog,
  subscriptions: Subscriptions,
) {
  const { log, version, settings, others } = deps
  const { keys, usage } = access
  const world = { ...deps, keys, usage, audit, telemetry, pause: nextTurn }
  const toolbox = new Toolbox(world, audit, log)
  const allowedHosts = settings.mcpAllowedHosts
  const revalidate: Revalidator = (c, scope) => revalidator(c, scope, access, () => latest(deps))
  const served = { toolbox, subscriptions, revalidate, version, allowedHosts, log, others }
  return new Hono<ControlEnv>()
    .route('/', mcpRoutes(served))
    .route('/api/v1', toolRoutes(toolbox, others))
}

const nextTurn = async (): Promise<void> => {
  await setImmediate()
}
