/** The schema of `GET /api/v1/metrics/telemetry`. Totals count from the start of the process. */
import { z } from 'zod'
import { entryKinds } from '../../../schema/contracts/field-values.ts'

const count = z.int().min(0)
const percentage = z.number().min(0).max(100)

const calls = z.strictObject({
  active: count,
  per_second: z
    .number()
    .min(0)
    .describe('Calls started per second, averaged over the last ten seconds.'),
  total: count.describe('Ended calls.'),
  answered: count,
  asr_percent: percentage.nullable().describe('Answer-seizure ratio; null before the first call.'),
  acd_seconds: z.number().min(0).nullable().describe('Average duration of answered calls.'),
  billed_seconds: count,
  by_disposition: z.record(z.string(), count),
  post_dial_delay: z.strictObject({
    count,
    average_ms: z.number().min(0).nullable(),
    sum_ms: z.number().min(0),
    buckets: z.array(
      z.strictObject({
        le_ms: z
          .number()
          .nullable()
          .describe('Upper bound of the bucket. Null for the last one, which has none.'),
        count: count.describe('Delays up to this bound, lower buckets included.'),
      }),
    ),
  }),
  mos: z
    .strictObject({
      count,
      average: z.number().nullable(),
      sum: z.number().min(0),
      buckets: z.array(
        z.strictObject({
          le: z.number(),
          count: count.describe('Calls whose MOS is at most this, lower buckets included.'),
        }),
      ),
    })
    .describe('Answered calls whose quality is known, by the MOS of their worse direction.'),
})

const node = z.strictObject({
  set_id: z.int(),
  node_id: z.int(),
  destination: z.string(),
  state: z.enum(['active', 'probing', 'inactive']),
  latency_ms: z.number().min(0).nullable(),
  active_calls: count,
  probes: z.strictObject({ sent: count, answered: count, failed: count }),
})

const relay = z.strictObject({
  relay: z.string().describe('host:port of its control protocol.'),
  weight: count,
  alive: z.boolean().describe('It answers, and new sessions may go to it.'),
  latency_ms: z.number().min(0).nullable().describe('Smoothed. Null before the first answer.'),
  sessions: count
    .nullable()
    .describe('Sessions at the relay, those of other programs included. Null when unknown.'),
  outstanding: count.describe('Requests without an answer so far.'),
  requests_total: count,
  timeouts_total: count,
  errors_total: count,
  restarts_total: count.describe('How often it has started anew, which ends its sessions.'),
})

const api = z.strictObject({
  requests_total: count,
  by_status_class: z.record(z.string(), count),
  refused: z.strictObject({
    connections: count.describe('Connections refused over the limit of an address or a listener.'),
    event_readers: count.describe('Streams refused over the limit of a credential or a tenant.'),
    audit_entries: count.describe('Failed logins not logged, over the limit of the audit log.'),
  }),
  routes: z.array(
    z.strictObject({
      method: z.string(),
      route: z.string().describe('The path pattern, or `none` when no route matched.'),
      status_class: z.enum(['1xx', '2xx', '3xx', '4xx', '5xx']),
      count,
    }),
  ),
})

const billing = z.strictObject({
  authorizations_total: count,
  verdicts: z
    .record(z.string(), count)
    .describe('Counts of `granted`, `overloaded` and each denial code.'),
  open_calls: count,
  reserved: z.string().describe('Decimal number as text.'),
  moved: z.array(
    z.strictObject({
      kind: z.enum(entryKinds),
      currency: z.string(),
      count,
      amount: z.string().describe('Decimal number as text.'),
    }),
  ),
  waiting_writes: count,
  commits_total: count,
  commit_failures: count.describe('Consecutive failures.'),
  lost_events_total: count.describe(
    'Webhook events `call.authorized`, `call.denied` and `call.answered` that could not be stored.',
  ),
})

const processFigures = z.strictObject({
  resident_bytes: count,
  heap_used_bytes: count,
  cpu_seconds: z.number().min(0),
})

export const telemetryView = z.strictObject({
  at: z.iso.datetime(),
  uptime_seconds: z.number().min(0),
  this_node: z
    .strictObject({
      name: z.string(),
      epoch: count.describe('Grows with each start of the node; 0 on SQLite.'),
      condition: z
        .enum(['valid', 'unheard', 'fenced'])
        .describe('Unless `valid`, the node takes no new calls: see `GET /nodes`.'),
      heartbeat_age_seconds: z.number().min(0),
    })
    .describe('The process that answers.'),
  calls,
  nodes: z.array(node),
  relays: z.array(relay).describe('Media relays.'),
  registrations: z.strictObject({ contacts: count, extensions: count }),
  api,
  billing: billing.nullable().describe('Null when another OCS charges the calls.'),
  outbox: z
    .strictObject({
      call_reports: count,
      webhook_deliveries: count.describe('Waiting deliveries, counted up to 10,000.'),
      webhook_oldest_seconds: z
        .number()
        .min(0)
        .nullable()
        .describe('Age of the oldest waiting event. Null when none is waiting.'),
      alerts: count.describe('What alert channels are to be told, counted up to 10,000.'),
      alerts_failed: count.describe('Messages of alert channels that were given up.'),
    })
    .describe('Data waiting to be delivered to its receivers.'),
  event_loop: z
    .strictObject({ lag_p50_ms: z.number().min(0), lag_p99_ms: z.number().min(0) })
    .describe('Measured over the last ten seconds.'),
  process: processFigures,
  database: z.strictObject({
    bytes: count,
    free_bytes: count.nullable().describe('Null on PostgreSQL.'),
  }),
  engine: z
    .record(z.string(), z.number())
    .describe('Table sizes and totals of the SIP server and of call control.'),
  platform_nodes: z
    .array(
      z.strictObject({
        name: z.string(),
        uptime_seconds: z.number().min(0),
        active_calls: count,
        calls_per_second: z.number().min(0),
        event_loop: z.strictObject({
          lag_p50_ms: z.number().min(0),
          lag_p99_ms: z.number().min(0),
        }),
        process: processFigures,
      }),
    )
    .optional()
    .describe(
      'Where several nodes share a database: each that has answered. `calls`, `api`, ' +
        '`billing` and `active_calls` of `nodes` are then sums of them; the rest is of the node ' +
        'that answers.',
    ),
})

export type TelemetryView = z.output<typeof telemetryView>

/** The schema of `GET /api/v1/metrics/history`. */
export const historyView = z.strictObject({
  interval_seconds: z.int().describe('Between two samples.'),
  samples: z
    .array(
      z.strictObject({
        at: z.iso.datetime(),
        active: count.describe('Live calls at this time.'),
        started: count.describe('In the interval that ends here, as the next ones.'),
        ended: count,
        answered: count.describe('Of those that ended.'),
        post_dial_delay: z.strictObject({ count, sum_ms: z.number().min(0) }),
        spent: z
          .array(z.strictObject({ currency: z.string(), amount: z.string() }))
          .describe('Debits for calls. Empty when another OCS charges them.'),
        lag_p99_ms: z.number().min(0).describe('Of the event loop, over about ten seconds.'),
      }),
    )
    .describe('Oldest first; at most ten minutes, since the start of the process.'),
})

export type HistoryView = z.output<typeof historyView>

/** The schema of `GET /api/v1/metrics/nodes`. */
export const nodeHistoryView = z.strictObject({
  interval_seconds: z.int().describe('Between two values.'),
  nodes: z.array(
    z.strictObject({
      node_id: z.int(),
      latencies_ms: z
        .array(z.number().min(0).nullable())
        .describe('Oldest first, at most ten minutes. Null while the latency was not known.'),
    }),
  ),
})

export type NodeHistoryView = z.output<typeof nodeHistoryView>

/** The telemetry for a tenant credential: its own calls, and the nodes of its own sets. */
export const tenantTelemetryView = z.strictObject({
  at: z.iso.datetime(),
  calls: z.strictObject({ active: count }),
  nodes: z.array(node),
})

export type TenantTelemetryView = z.output<typeof tenantTelemetryView>
