/** Tools for the platform: anomalies, health, processes, and the tools themselves. */
import { z } from 'zod'
import { timeToText } from '../../../schema/columns.ts'
import { didYouMean } from '../../../schema/rules/names.ts'
import { ApiError } from '../../http/api-error.ts'
import { cursorQuery, skippedBy } from '../../http/envelope.ts'
import { text } from '../../http/fields.ts'
import {
  anomaliesView,
  findAnomalies as search,
  MAX_FINDINGS,
  USUAL_FINDINGS,
} from '../../observe/causes/find-anomalies.ts'
import { clockSecondsOf } from '../../instances/membership.ts'
import { kinds } from '../../observe/causes/finding.ts'
import { failuresIn, failuresReader, failuresView } from '../../observe/causes/failures.ts'
import { periodInput, periodOf } from '../../observe/causes/state-history.ts'
import { telemetryOfAll, tenantTelemetryOfAll } from '../../observe/telemetry/telemetry-of-all.ts'
import {
  cut,
  defineTool,
  endOfPage,
  pageInput,
  pageOutput,
  type ToolListing,
  type ToolUse,
  MAX_ROWS,
  time,
} from './tool.ts'

export const findAnomalies = defineTool({
  name: 'find_anomalies',
  title: 'Find anomalies',
  description:
    'Finds what is unusual in a period, the worst first: start here. ' +
    'Against the 14 days before (less than a day: their same hours): spending, new or ' +
    'expensive destinations, empty wallets, missing rates, limits that refuse calls, ' +
    'unknown callers, use of keys, nodes, trunks, registrations, certificates, hooks, margins. ' +
    'Each finding says what, since when and how much, with evidence, advice, the tool to ' +
    'ask next, and a first step that can be undone. Those that a change deals with are ' +
    'marked with it.',
  effect: 'reads',
  scopes: ['cdrs:read'],
  input: z.strictObject({
    ...periodInput,
    kinds: z.array(z.enum(kinds)).min(1).max(kinds.length).optional().describe('Defaults to all.'),
    limit: z.int().min(1).max(MAX_FINDINGS).default(USUAL_FINDINGS),
    cursor: cursorQuery,
  }),
  output: anomaliesView,
  run({ start, end, kinds: wanted = kinds, limit, cursor }, use) {
    const span = periodOf({ start, end }, use.now(), { longestDays: 7 })
    return search(use, use.principal, {
      span,
      wanted: [...new Set(wanted)],
      limit,
      offset: skippedBy(cursor),
    })
  },
})

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
    'Returns the health of the platform. Live calls, success rates, PBX nodes, event-loop ' +
    'lag and charging verdicts. ' +
    'With start or end also what happened in that period: calls by denial, and requests of ' +
    'the API that failed, by route and key. ' +
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
    nodes: z
      .array(node)
      .describe(`PBX nodes, at most ${MAX_ROWS}; get_dispatcher_status lists all of them.`),
    nodes_total: z.int(),
    platform: platform.nullable().describe('Null for tenant credentials.'),
    period: failuresView.optional().describe('With start or end.'),
  }),
  async run({ start, end, limit }, use) {
    const { telemetry, peers, principal } = use
    const { tenantId } = principal
    const isPeriod = start !== undefined || end !== undefined
    const period = isPeriod ? { period: await periodFor({ start, end }, limit, use) } : {}
    if (tenantId !== null) {
      const own = await telemetry.readForTenant(tenantId)
      const view = peers === undefined ? own : await tenantTelemetryOfAll(peers, own)
      return {
        ...view,
        nodes: view.nodes.slice(0, MAX_ROWS),
        nodes_total: view.nodes.length,
        platform: null,
        ...period,
      }
    }
    const own = await telemetry.read()
    const view = peers === undefined ? own : await telemetryOfAll(peers, own)
    const { at, calls: counted, nodes, ...rest } = view
    return {
      at,
      ...period,
      calls: counted,
      nodes: nodes.slice(0, MAX_ROWS),
      nodes_total: nodes.length,
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

const instance = z.object({
  name: z.string(),
  state: z
    .enum(['starting', 'serving', 'draining', 'stopped', 'lost'])
    .describe('lost: not heard for 10 s.'),
  epoch: z.int().describe('Grows with each start.'),
  live_calls: z.int(),
  heartbeat_at: time,
  version: z.string(),
  is_this: z.boolean().describe('It answers this call.'),
  clock_difference_seconds: z
    .number()
    .describe('How far its clock is ahead of the database server; 0 within 2 s.'),
  differing_settings: z
    .array(z.string())
    .describe('Settings in which it differs from another instance, and must not.'),
})

export const listInstances = defineTool({
  name: 'list_instances',
  title: 'List instances',
  description:
    'Lists the instances of Tollgate: the processes that share its database. ' +
    'get_dispatcher_status lists the PBX nodes.',
  effect: 'reads',
  scopes: ['metrics:read'],
  input: z.strictObject(pageInput(MAX_ROWS, MAX_ROWS)),
  output: z.object({ instances: z.array(instance), ...pageOutput }),
  run: (page, { instances, principal: { tenantId } }) => {
    if (tenantId !== null)
      throw new ApiError(403, 'forbidden', 'Instances are shown to keys of the platform')
    const all = instances.list()
    const listed = cut(all, page)
    return {
      ...endOfPage(page, listed.length, all.length),
      instances: listed.map(({ liveCalls, heartbeatAt, isThis, ...rest }) => ({
        name: rest.name,
        state: rest.state,
        epoch: rest.epoch,
        version: rest.version,
        live_calls: liveCalls,
        heartbeat_at: timeToText(heartbeatAt),
        is_this: isThis,
        clock_difference_seconds: clockSecondsOf(rest),
        differing_settings: [...(instances.differingSettings.get(rest.name) ?? [])],
      })),
    }
  },
})

const schema = z.record(z.string(), z.unknown())

export const describeTool = defineTool({
  name: 'describe_tool',
  title: 'Describe a tool',
  description:
    'Returns the full description and schemas of one tool, and the scopes that it requires.',
  effect: 'reads',
  isOwnText: true,
  scopes: [],
  input: z.strictObject({ name: text(100).min(1).describe('Name of the tool.') }),
  output: z.object({
    name: z.string(),
    description: z.string(),
    effect: z.enum(['reads', 'changes', 'destroys']),
    scopes: z.array(z.string()),
    input_schema: schema,
    output_schema: schema,
  }),
  run({ name }, { listings }) {
    const tools = listings()
    const tool = tools.find((each) => each.name === name)
    if (tool === undefined)
      throw new ApiError(
        404,
        'unknown_tool',
        `Unknown tool: tools/list lists the tools.${didYouMean(
          name,
          tools.map((each) => each.name),
        )}`,
      )
    return toolView(tool)
  },
})

const toolView = ({
  name,
  description,
  annotations: { readOnlyHint, destructiveHint },
  scopes,
  inputSchema,
  outputSchema,
}: ToolListing) => ({
  name,
  description,
  scopes: [...scopes],
  effect: readOnlyHint
    ? ('reads' as const)
    : destructiveHint
      ? ('destroys' as const)
      : ('changes' as const),
  input_schema: inputSchema,
  output_schema: outputSchema,
})
