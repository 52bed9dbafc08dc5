/** Telemetry: JSON for programs, text for Prometheus, both from one view. */
import { Hono } from 'hono'
import { requires, requiresGlobal } from '../../auth/requires.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { ok } from '../../http/envelope.ts'
import type { NodesPort } from '../../../schema/contracts/nodes.ts'
import type { OtherNodes } from '../../nodes/other-nodes.ts'
import { telemetryOfAll, tenantTelemetryOfAll } from './telemetry-of-all.ts'
import { prometheusText } from './metrics.ts'
import type { Telemetry } from './telemetry.ts'

/** Mounted under `/api/v1`. A tenant credential sees only its own calls and nodes. */
export const telemetryRoutes = (
  telemetry: Pick<Telemetry, 'read' | 'readForTenant' | 'history' | 'nodeHistory'>,
  others: OtherNodes | undefined,
) =>
  new Hono<ControlEnv>()
    .get('/metrics/telemetry', requires('metrics:read'), async (c) => {
      const { tenantId } = c.var.principal
      const asked = others?.of(c)
      if (tenantId === null) {
        const own = await telemetry.read()
        return ok(c, asked === undefined ? own : await telemetryOfAll(asked, own))
      }
      const own = await telemetry.readForTenant(tenantId)
      return ok(c, asked === undefined ? own : await tenantTelemetryOfAll(asked, own))
    })
    .get('/metrics/history', requiresGlobal('metrics:read'), (c) => ok(c, telemetry.history()))
    .get('/metrics/nodes', requires('dispatcher:read'), async (c) =>
      ok(c, await telemetry.nodeHistory(c.var.principal.tenantId)),
    )

/**
 * Mounted at the root. It requires a key like everything else: an exception for loopback would also admit
 * what a proxy on this machine forwards.
 */
export const metricsRoute = (
  telemetry: Pick<Telemetry, 'read'>,
  nodes: Pick<NodesPort, 'list' | 'differingSettings'>,
) =>
  new Hono<ControlEnv>().get('/metrics', requiresGlobal('metrics:read'), async (c) => {
    c.header('Content-Type', 'text/plain; version=0.0.4; charset=utf-8')
    return c.body(await prometheusText(await telemetry.read(), nodes))
  })
