import { z } from 'zod'
import {
  historyView,
  nodeHistoryView,
  telemetryView,
  tenantTelemetryView,
} from '../observe/telemetry/telemetry-view.ts'
import { bare, data, either, list, type Operations, text } from '../http/openapi/operation.ts'
import { count, exampleTime, moment } from '../http/view-fields.ts'

const health = z
  .strictObject({ status: z.literal('ok'), service: z.string(), version: z.string() })
  .meta({ id: 'Health' })
const exampleHealth = { status: 'ok', service: 'tollgate', version: '0.1.0' }

const auditEntry = z
  .strictObject({
    id: z.int(),
    at: moment,
    actor: z
      .string()
      .describe(
        '`key:<uuid>`, `user:<username>`, `customer:<id>`, `anonymous`, `console` or `platform`.',
      ),
    actor_name: z.string().nullable().describe('For a key: its name at that time.'),
    actor_key_prefix: z
      .string()
      .nullable()
      .describe('For a key: the start of its token at that time.'),
    tenant_id: z.int().nullable(),
    address: z.string(),
    action: z.string(),
    target: z.string(),
    outcome: z.enum(['success', 'refused', 'failed']),
    status: z.int(),
    code: z.string().nullable(),
    before_digest: z.string().nullable().describe('SHA-256 of the resource as the API shows it.'),
    after_digest: z.string().nullable(),
    correlation_id: z.string(),
    change_id: z.string().nullable().describe('Of the change that was made or undone.'),
    reason: z.string().nullable().describe('As given with the change.'),
    is_agent: z.boolean().describe('The call of a tool, or by a key that names a scope of MCP.'),
  })
  .meta({ id: 'AuditEntry' })

const ban = z
  .strictObject({
    source: z.string().describe('An IPv4 address or an IPv6 network.'),
    reason: z.enum(['password_guessing', 'unknown_calls', 'operator']),
    since: moment,
    until: moment,
    dropped_packets: count,
  })
  .meta({ id: 'Ban' })

const node = z
  .strictObject({
    name: z.string(),
    epoch: count.describe('Grows with each start; 0 with SQLite.'),
    address: z.string().describe('Of its API, for the other nodes.'),
    version: z.string(),
    state: z
      .enum(['starting', 'serving', 'draining', 'stopped', 'lost'])
      .describe('`lost`: not heard for ten seconds.'),
    live_calls: count,
    started_at: moment,
    heartbeat_at: moment.describe('By the clock of the database server.'),
    is_this: z.boolean().describe('The process that answers.'),
    differing_settings: z
      .array(z.string())
      .describe(
        'Settings that must be the same on all nodes, and in which this one differs from another that lives.',
      ),
  })
  .meta({ id: 'ProcessNode' })

const setting = z
  .strictObject({
    name: z.string(),
    value: z.string().nullable().describe('Null when it is unset, and for secrets.'),
    source: z.enum(['environment', 'file', 'default']).describe('`file`: `.env`.'),
    allowed: z.string(),
    meaning: z.string(),
    is_set: z.boolean(),
    is_secret: z.boolean(),
    when_unset: z.string(),
  })
  .meta({ id: 'Setting' })

const settingsView = z
  .strictObject({
    settings: z.array(setting),
    notes: z.array(z.string()).describe('What is set and has no effect.'),
  })
  .meta({ id: 'Settings' })

const tag = 'System'

const exampleTelemetry = {
  at: exampleTime,
  calls: { active: 3 },
  nodes: [],
}

export const systemOperations: Operations = {
  'GET /health': {
    id: 'getPublicHealth',
    tag,
    summary: 'Check that the service is up. Public.',
    answer: bare(health, exampleHealth),
  },
  'GET /livez': {
    id: 'getLiveness',
    tag,
    summary: 'Check that the process is alive',
    answer: data(z.strictObject({ status: z.literal('ok') }), { status: 'ok' }),
  },
  'GET /readyz': {
    id: 'getReadiness',
    tag,
    summary:
      'Check that this node accepts calls. Returns 503 during startup, while draining, while storage fails, and when another process has its name.',
    answer: data(
      z.strictObject({
        status: z.literal('ready'),
        database: z
          .enum(['available', 'unavailable'])
          .describe('`unavailable`: calls go on without the server of the database for a while.'),
        settings: z
          .enum(['same', 'different'])
          .describe('Of the nodes that live, where they must be the same.'),
        journal: z
          .enum(['whole', 'lost'])
          .describe(
            '`lost`: the journal of the last run was missing, empty or overwritten at the start; calls that were open then may have no record.',
          ),
      }),
      { status: 'ready', database: 'available', settings: 'same', journal: 'whole' },
    ),
    refusals: [503],
  },
  'GET /openapi.json': {
    id: 'getOpenApiDocument',
    tag,
    summary: 'Get this OpenAPI document',
    answer: bare(z.looseObject({ openapi: z.string() }), { openapi: '3.1.0' }),
  },
  'GET /': {
    id: 'getFrontPage',
    tag,
    summary: 'Get the page of the console',
    answer: text('text/html', '<!doctype html>'),
  },
  'GET /console': {
    id: 'getConsole',
    tag,
    summary: 'Get the page of the console',
    answer: text('text/html', '<!doctype html>'),
    refusals: [404],
  },
  'GET /console/:screen': {
    id: 'getConsoleScreen',
    tag,
    summary: 'Get the page of the console at a screen',
    answer: text('text/html', '<!doctype html>'),
    refusals: [404],
  },
  'GET /console/:screen/:item': {
    id: 'getConsoleItem',
    tag,
    summary: 'Get the page of the console at one thing',
    answer: text('text/html', '<!doctype html>'),
    refusals: [404],
  },
  'GET /console/assets/:file': {
    id: 'getConsoleFile',
    tag,
    summary: 'Get a file of the console',
    answer: either(text('text/javascript', ''), text('text/css', ''), text('image/svg+xml', '')),
    refusals: [404],
  },
  'GET /docs': {
    id: 'getDocsPage',
    tag,
    summary: 'Get the API reference as a web page',
    answer: text('text/html', '<!doctype html>'),
  },
  'GET /docs/:file': {
    id: 'getDocsFile',
    tag,
    summary: 'Get a file of the API reference page',
    answer: either(text('text/javascript', ''), text('text/css', '')),
    refusals: [404],
  },
  'GET /metrics': {
    id: 'getMetrics',
    tag,
    summary: 'Get Prometheus metrics. Requires a global key.',
    answer: text('text/plain', '# TYPE tollgate_calls_active gauge\ntollgate_calls_active 3\n'),
  },
  'GET /api/v1/health': {
    id: 'getHealth',
    tag,
    summary: 'Verify the presented credential',
    answer: data(health, exampleHealth),
  },
  'GET /api/v1/metrics/telemetry': {
    id: 'getTelemetry',
    tag,
    nodes: 'all',
    summary: 'Get telemetry. A tenant credential sees its own calls and nodes.',
    answer: data(
      z.union([
        telemetryView.meta({ id: 'Telemetry' }),
        tenantTelemetryView.meta({ id: 'TenantTelemetry' }),
      ]),
      exampleTelemetry,
    ),
  },
  'GET /api/v1/metrics/history': {
    id: 'getTelemetryHistory',
    tag,
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
  },
  'GET /api/v1/metrics/nodes': {
    id: 'getNodeHistory',
    tag,
    summary:
      'Get the latencies of nodes in the last ten minutes. A tenant credential sees its own nodes.',
    answer: data(nodeHistoryView.meta({ id: 'NodeHistory' }), {
      interval_seconds: 5,
      nodes: [{ node_id: 1, latencies_ms: [2.1, 2.4, null] }],
    }),
  },
  'GET /api/v1/settings': {
    id: 'listSettings',
    tag,
    summary: 'List the settings in force, without secrets',
    answer: data(settingsView, {
      settings: [
        {
          name: 'DRAIN_SECONDS',
          value: '30',
          source: 'default',
          allowed: 'a whole number from 0 to 3600 (s)',
          is_set: true,
          is_secret: false,
          meaning: 'how long live calls may go on after SIGTERM',
          when_unset: '30',
        },
      ],
      notes: [],
    }),
  },
  'GET /api/v1/nodes': {
    id: 'listNodes',
    tag,
    summary: 'List the processes of this installation; with SQLite there is one.',
    answer: data(z.array(node), [
      {
        name: 'sbc-1',
        epoch: 3,
        address: 'http://10.0.0.1:8080',
        version: '0.1.0',
        state: 'serving',
        live_calls: 12,
        started_at: exampleTime,
        heartbeat_at: exampleTime,
        is_this: true,
        differing_settings: [],
      },
    ]),
  },
  'GET /api/v1/guard/bans': {
    id: 'listBans',
    tag,
    summary: 'List banned SIP sources',
    answer: data(z.array(ban), [
      {
        source: '203.0.113.9',
        reason: 'password_guessing',
        since: exampleTime,
        until: '2026-01-01T00:10:00.000Z',
        dropped_packets: 1200,
      },
    ]),
  },
  'POST /api/v1/guard/bans': {
    id: 'createBan',
    tag,
    summary: 'Ban a SIP source for a period',
    body: { address: '203.0.113.9', duration_seconds: 3600 },
    answer: data(
      z.strictObject({ address: z.string(), duration_seconds: count }),
      { address: '203.0.113.9', duration_seconds: 3600 },
      201,
    ),
  },
  'DELETE /api/v1/guard/bans/:source': {
    id: 'deleteBan',
    tag,
    summary: 'Lift a ban',
    answer: data(z.strictObject({ source: z.string(), banned: z.literal(false) }), {
      source: '203.0.113.9',
      banned: false,
    }),
    refusals: [404],
  },
  'GET /api/v1/audit': {
    id: 'listAuditEntries',
    tag,
    summary: 'List audit log entries, newest first',
    answer: list(auditEntry, {
      id: 1,
      at: exampleTime,
      actor: 'key:9a7f1a6e-4a63-4d4c-9e55-2f6f0f5d9a11',
      actor_name: 'deploy',
      actor_key_prefix: 'sbc_live_a1B',
      tenant_id: null,
      address: '192.0.2.1',
      action: 'DELETE /api/v1/customers/:id',
      target: '/api/v1/customers/7',
      outcome: 'success',
      status: 200,
      code: null,
      before_digest: 'x2QJ',
      after_digest: null,
      correlation_id: '5f0c9a52-8c0f-4a86-9f53-2d3f9d3f7c10',
      change_id: null,
      reason: null,
      is_agent: false,
    }),
  },
}
