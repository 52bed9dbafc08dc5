/** The shape of `GET /api/v1/metrics/telemetry`. Totals count from the start of the process. */
import { z } from 'zod'

const count = z.int().min(0)
const percentage = z.number().min(0).max(100)

const calls = z.strictObject({
  active: count,
  per_second: z.number().min(0).describe('Calls started, over the last ten seconds.'),
  total: count.describe('Calls that ended.'),
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
        le_ms: z.number().nullable().describe('Upper bound; null: above the last one.'),
        count: count.describe('Delays up to this bound, those of lower buckets included.'),
      }),
    ),
  }),
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

const api = z.strictObject({
  requests_total: count,
  by_status_class: z.record(z.string(), count),
  refused: z.strictObject({
    connections: count.describe('Beyond those that one address, or a listener, may have.'),
    event_readers: count.describe('Streams beyond those that a credential, or a tenant, may have.'),
    audit_entries: count.describe('Failed logins beyond those that the audit log takes.'),
  }),
  routes: z.array(
    z.strictObject({
      method: z.string(),
      route: z.string().describe('`none`: no route has this path.'),
      status_class: z.enum(['1xx', '2xx', '3xx', '4xx', '5xx']),
      count,
    }),
  ),
})

const billing = z.strictObject({
  authorizations_total: count,
  verdicts: z.record(z.string(), count).describe('`granted`, `overloaded`, or why not.'),
  open_calls: count,
  reserved: z.string().describe('Decimal text.'),
  moved: z.array(
    z.strictObject({
      kind: z.enum(['topup', 'debit', 'adjust', 'refund']),
      currency: z.string(),
      count,
      amount: z.string().describe('Decimal text.'),
    }),
  ),
  waiting_writes: count,
  commits_total: count,
  commit_failures: count.describe('In a row.'),
})

export const telemetryView = z.strictObject({
  at: z.iso.datetime(),
  uptime_seconds: z.number().min(0),
  calls,
  nodes: z.array(node),
  registrations: z.strictObject({ contacts: count, extensions: count }),
  api,
  billing: billing.nullable().describe('Null: another OCS charges.'),
  outbox: z
    .strictObject({
      call_reports: count,
      webhook_deliveries: count.describe('Counted up to 10,000.'),
      webhook_oldest_seconds: z
        .number()
        .min(0)
        .nullable()
        .describe('Since its event; null: none waits.'),
    })
    .describe('Kept until who is to be told has taken them.'),
  event_loop: z
    .strictObject({ lag_p50_ms: z.number().min(0), lag_p99_ms: z.number().min(0) })
    .describe('Over the last ten seconds.'),
  process: z.strictObject({
    resident_bytes: count,
    heap_used_bytes: count,
    cpu_seconds: z.number().min(0),
  }),
  database: z.strictObject({ bytes: count, free_bytes: count }),
  engine: z
    .record(z.string(), z.number())
    .describe('Sizes of the tables of the SIP server and of call control, and further totals.'),
})

export type TelemetryView = z.output<typeof telemetryView>

/** What a tenant's credential sees: its own calls, and the nodes of its own sets. */
export const tenantTelemetryView = z.strictObject({
  at: z.iso.datetime(),
  calls: z.strictObject({ active: count }),
  nodes: z.array(node),
})

export type TenantTelemetryView = z.output<typeof tenantTelemetryView>
