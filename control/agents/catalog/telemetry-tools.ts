/** The health of the platform in one result that a model can read. */
import { z } from 'zod'
import { telemetryOfAll, tenantTelemetryOfAll } from '../../observe/telemetry/telemetry-of-all.ts'
import { failuresIn, failuresReader, failuresView } from '../../observe/causes/failures.ts'
import { periodInput, periodOf } from '../../observe/causes/period.ts'
import { defineTool, type ToolUse } from '../tool.ts'
import { MAX_ROWS, time } from './shapes.ts'

const node = z.object({
  set_id: z.int(),
  node_id: z.int(),
  destination: z.string(),
  state: z.enum(['active', 'probing', 'inactive']),
  latency_ms: z.number().nullable(),
  active_calls: z.int(),
})

const calls = z.object({
  active: z.int(),
  per_second: z
    .number()
    .optional()
    .describe('Calls started per second, averaged over the last ten seconds.'),
  total: z.int().optional().describe('Calls ended since the process started.'),
  answered: z.int().optional(),
  asr_percent: z.number().nullable().optional().describe('Answer-seizure ratio.'),
  acd_seconds: z.number().nullable().optional().describe('Average duration of answered calls.'),
  by_disposition: z.record(z.string(), z.int()).optional(),
})

const platform = z.object({
  uptime_seconds: z.number(),
  event_loop: z
    .object({ lag_p50_ms: z.number(), lag_p99_ms: z.number() })
    .describe('Over the last ten seconds. Above 20 ms, the process is overloaded.'),
  registrations: z.object({ contacts: z.int(), extensions: z.int() }),
  authorizations: z
    .record(z.string(), z.int())
    .nullable()
    .describe(
      'Charging verdicts since the process started. Null when another OCS charges the calls.',
    ),
  api_requests_by_status_class: z.record(z.string(), z.int()),
  resident_bytes: z.int(),
  database_bytes: z.int(),
})

export const getTelemetry = defineTool({
  name: 'get_telemetry',
  title: 'Telemetry',
  description:
    'Returns the health of the platform: live calls, success rates, nodes, event-loop lag and charging verdicts. ' +
    'With start or end also what happened in that period: calls by denial, and requests of the API that failed, by route and key. ' +
    'A tenant credential sees only its own calls and nodes.',
  effect: 'reads',
  scopes: ['metrics:read'],
  input: z.strictObject({
    ...periodInput,
    limit: z.int().min(1).max(50).default(15).describe('Of the failures.'),
  }),
  output: z.object({
    at: time,
    calls,
    nodes: z.array(node).describe(`At most ${MAX_ROWS}.`),
    platform: platform.nullable().describe('Null for tenant credentials.'),
    period: failuresView.optional().describe('With start or end.'),
  }),
  async run({ start, end, limit }, use) {
    const { telemetry, elsewhere, principal } = use
    const { tenantId } = principal
    const isPeriod = start !== undefined || end !== undefined
    const period = isPeriod ? { period: await periodFor({ start, end }, limit, use) } : {}
    if (tenantId !== null) {
      const own = await telemetry.readForTenant(tenantId)
      const view = elsewhere === undefined ? own : await tenantTelemetryOfAll(elsewhere, own)
      return { ...view, nodes: view.nodes.slice(0, MAX_ROWS), platform: null, ...period }
    }
    const own = await telemetry.read()
    const view = elsewhere === undefined ? own : await telemetryOfAll(elsewhere, own)
    const { at, calls: counted, nodes, ...rest } = view
    return {
      at,
      ...period,
      calls: counted,
      nodes: nodes.slice(0, MAX_ROWS),
      platform: {
        uptime_seconds: rest.uptime_seconds,
        event_loop: rest.event_loop,
        registrations: rest.registrations,
        authorizations: rest.billing?.verdicts ?? null,
        api_requests_by_status_class: rest.api.by_status_class,
        resident_bytes: rest.process.resident_bytes,
        database_bytes: rest.database.bytes,
      },
    }
  },
})

function periodFor(
  asked: { readonly start?: number | undefined; readonly end?: number | undefined },
  limit: number,
  { store, pause, now, principal }: ToolUse,
) {
  const period = periodOf(asked, now(), { longestDays: 7 })
  return failuresIn(failuresReader({ store, pause }, principal), { ...period, limit })
}
