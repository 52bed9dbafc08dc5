/** Telemetry: JSON for programs, text for Prometheus, both from one view. */
import { Hono } from 'hono'
import type { InstancesPort } from '../../../schema/contracts/instances.ts'
import { requires, requiresGlobal } from '../../auth/requires.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { ok } from '../../http/envelope.ts'
import type { WithOthers } from '../../instances/other-instances.ts'
import type { Platform } from '../../http/platform.ts'
import { prometheusText } from './metrics.ts'
import { telemetryOfAll, tenantTelemetryOfAll } from './telemetry-of-all.ts'
import type { Telemetry } from './telemetry.ts'
import { exampleTime } from '../../http/view-fields.ts'
import { data, text } from '../../http/operation.ts'
import { describeRoute } from '../../http/validate.ts'
import {
  historyView,
  nodeHistoryView,
  telemetryView,
  tenantTelemetryView,
} from './telemetry-view.ts'
import { z } from 'zod'

const exampleTelemetry = {
  at: exampleTime,
  calls: { active: 3 },
  nodes: [],
}

/** Mounted under `/api/v1`. A tenant credential sees only its own calls and nodes. */
interface TelemetryRoutesDeps extends WithOthers {
  readonly telemetry: Pick<Telemetry, 'read' | 'readForTenant' | 'history' | 'nodeHistory'>
}

export const telemetryRoutes = (deps: TelemetryRoutesDeps) =>
  new Hono<ControlEnv>()
    .route('/', getTelemetryRoute(deps))
    .route('/', getTelemetryHistoryRoute(deps))
    .route('/', getNodeHistoryRoute(deps))

const getTelemetryRoute = ({ telemetry, others }: TelemetryRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/metrics/telemetry',
    describeRoute({
      id: 'getTelemetry',
      tag: 'System',
      instances: 'all',
      summary: 'Get telemetry. A tenant credential sees its own calls and nodes.',
      answer: data(
        z.union([
          telemetryView.meta({ id: 'Telemetry' }),
          tenantTelemetryView.meta({ id: 'TenantTelemetry' }),
        ]),
        exampleTelemetry,
      ),
    }),
    requires('metrics:read'),
    async (c) => {
      const { tenantId } = c.var.principal
      const peers = others?.of(c)
      if (tenantId === null) {
        const own = await telemetry.read()
        return ok(c, peers === undefined ? own : await telemetryOfAll(peers, own))
      }
      const own = await telemetry.readForTenant(tenantId)
      return ok(c, peers === undefined ? own : await tenantTelemetryOfAll(peers, own))
    },
  )

const getTelemetryHistoryRoute = ({ telemetry }: TelemetryRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/metrics/history',
    describeRoute({
      id: 'getTelemetryHistory',
      tag: 'System',
      summary: 'Get what was counted in the last ten minutes. Requires a global credential.',
      answer: data(historyView.meta({ id: 'TelemetryHistory' }), {
        interval_seconds: 5,
        samples: [
          {
            at: exampleTime,
            active: 3,
            started: 5,
            ended: 4,
            answered: 3,
            lag_p99_ms: 1.2,
            post_dial_delay: { count: 4, sum_ms: 1_840 },
            spent: [{ currency: 'USD', amount: '0.42' }],
          },
        ],
      }),
    }),
    requiresGlobal('metrics:read'),
    (c) => ok(c, telemetry.history()),
  )

const getNodeHistoryRoute = ({ telemetry }: TelemetryRoutesDeps) =>
  new Hono<ControlEnv>().get(
    '/metrics/nodes',
    describeRoute({
      id: 'getNodeHistory',
      tag: 'System',
      summary:
        'Get the latencies of nodes in the last ten minutes. A tenant credential sees ' +
        'its own nodes.',
      answer: data(nodeHistoryView.meta({ id: 'NodeHistory' }), {
        interval_seconds: 5,
        nodes: [{ node_id: 1, latencies_ms: [2.1, 2.4, null] }],
      }),
    }),
    requires('dispatcher:read'),
    async (c) => ok(c, await telemetry.nodeHistory(c.var.principal.tenantId)),
  )

/**
 * Mounted at the root. It requires a key like everything else: an exception for loopback would also
 * admit what a proxy on this machine forwards.
 */
export const metricsRoute = (
  telemetry: Pick<Telemetry, 'read'>,
  instances: Pick<InstancesPort, 'list' | 'differingSettings'>,
  certificates: Platform['certificates'],
) =>
  new Hono<ControlEnv>().get(
    '/metrics',
    describeRoute({
      id: 'getMetrics',
      tag: 'System',
      summary: 'Get Prometheus metrics. Requires a global key.',
      answer: text('text/plain', '# TYPE tollgate_calls_active gauge\ntollgate_calls_active 3\n'),
    }),
    requiresGlobal('metrics:read'),
    async (c) => {
      c.header('Content-Type', 'text/plain; version=0.0.4; charset=utf-8')
      return c.body(await prometheusText(await telemetry.read(), instances, certificates?.()))
    },
  )
