/**
 * The Prometheus registry. Every metric is read from the telemetry view, so that both responses agree. The
 * text format is https://prometheus.io/docs/instrumenting/exposition_formats/ (version 0.0.4).
 */
import { billingMetrics } from './billing-metrics.ts'
import { type Labels, many, type Metric, one } from './metric.ts'
import type { TelemetryView } from './telemetry-view.ts'

const nodeLabels = ({ set_id, destination }: TelemetryView['nodes'][number]) => ({
  set_id,
  destination,
})
const states = ['active', 'probing', 'inactive'] as const

const calls: readonly Metric[] = [
  one('gauge', 'tollgate_calls_active', 'Live calls.', (view) => view.calls.active),
  one(
    'gauge',
    'tollgate_calls_per_second',
    'Calls started per second over the last ten seconds.',
    (view) => view.calls.per_second,
  ),
  many('counter', 'tollgate_calls_total', 'Ended calls by disposition.', (view) =>
    Object.entries(view.calls.by_disposition).map(([disposition, value]) => ({
      value,
      labels: { disposition },
    })),
  ),
  one('gauge', 'tollgate_calls_answer_seizure_ratio', 'Answered of all calls, 0 to 1.', (view) =>
    view.calls.asr_percent === null ? null : view.calls.asr_percent / 100,
  ),
  one(
    'gauge',
    'tollgate_calls_average_duration_seconds',
    'Billed seconds per answered call.',
    (view) => view.calls.acd_seconds,
  ),
  one(
    'counter',
    'tollgate_calls_billed_seconds_total',
    'Seconds between answer and end of all calls.',
    (view) => view.calls.billed_seconds,
  ),
  many(
    'histogram',
    'tollgate_post_dial_delay_seconds',
    'Seconds from the INVITE to the first response of the callee.',
    ({ calls: { post_dial_delay } }) => [
      ...post_dial_delay.buckets.map(({ le_ms, count }) => ({
        suffix: '_bucket',
        labels: { le: le_ms === null ? '+Inf' : le_ms / 1_000 },
        value: count,
      })),
      { suffix: '_sum', value: post_dial_delay.sum_ms / 1_000 },
      { suffix: '_count', value: post_dial_delay.count },
    ],
  ),
  many(
    'histogram',
    'tollgate_mos',
    'Calls whose quality is known, by the MOS of their worse direction.',
    ({ calls: { mos } }) => [
      ...[...mos.buckets, { le: '+Inf', count: mos.count }].map(({ le, count }) => ({
        suffix: '_bucket',
        labels: { le },
        value: count,
      })),
      { suffix: '_sum', value: mos.sum },
      { suffix: '_count', value: mos.count },
    ],
  ),
]

const nodes: readonly Metric[] = [
  many('gauge', 'tollgate_node_state', '1 for the state that the node is in.', (view) =>
    view.nodes.flatMap((node) =>
      states.map((state) => ({
        value: node.state === state ? 1 : 0,
        labels: { ...nodeLabels(node), state },
      })),
    ),
  ),
  many('gauge', 'tollgate_node_latency_seconds', 'Smoothed round trip of the probes.', (view) =>
    view.nodes.flatMap((node) =>
      node.latency_ms === null
        ? []
        : [{ value: node.latency_ms / 1_000, labels: nodeLabels(node) }],
    ),
  ),
  many('gauge', 'tollgate_node_calls_active', 'Live calls on the node.', (view) =>
    view.nodes.map((node) => ({ value: node.active_calls, labels: nodeLabels(node) })),
  ),
  many('counter', 'tollgate_node_probes_total', 'Finished probes by result.', (view) =>
    view.nodes.flatMap((node) =>
      (['answered', 'failed'] as const).map((result) => ({
        value: node.probes[result],
        labels: { ...nodeLabels(node), result },
      })),
    ),
  ),
]

type Relay = TelemetryView['relays'][number]

/** One sample for each relay that has a value. */
const ofRelays = (
  type: 'counter' | 'gauge',
  name: string,
  help: string,
  read: (relay: Relay) => number | null,
): Metric =>
  many(type, name, help, (view) =>
    view.relays.flatMap((relay) => {
      const value = read(relay)
      return value === null ? [] : [{ value, labels: { relay: relay.relay } }]
    }),
  )

const relays: readonly Metric[] = [
  ofRelays('gauge', 'tollgate_relay_alive', '1 while the media relay answers.', (relay) =>
    relay.alive ? 1 : 0,
  ),
  ofRelays(
    'gauge',
    'tollgate_relay_latency_seconds',
    'Smoothed round trip of requests to the media relay.',
    (relay) => relay.latency_ms && relay.latency_ms / 1_000,
  ),
  ofRelays(
    'gauge',
    'tollgate_relay_sessions',
    'Sessions at the media relay, those of other programs included.',
    (relay) => relay.sessions,
  ),
  ofRelays(
    'gauge',
    'tollgate_relay_outstanding_requests',
    'Requests without an answer so far.',
    (relay) => relay.outstanding,
  ),
  ofRelays(
    'counter',
    'tollgate_relay_requests_total',
    'Requests to the media relay.',
    (relay) => relay.requests_total,
  ),
  ofRelays(
    'counter',
    'tollgate_relay_timeouts_total',
    'Requests that the media relay did not answer.',
    (relay) => relay.timeouts_total,
  ),
  ofRelays(
    'counter',
    'tollgate_relay_errors_total',
    'Requests that the media relay refused.',
    (relay) => relay.errors_total,
  ),
  ofRelays(
    'counter',
    'tollgate_relay_restarts_total',
    'How often the media relay has started anew, which ends its sessions.',
    (relay) => relay.restarts_total,
  ),
]

const people: readonly Metric[] = [
  one(
    'gauge',
    'tollgate_registered_contacts',
    'Unexpired bindings of phones.',
    (view) => view.registrations.contacts,
  ),
  one(
    'gauge',
    'tollgate_registered_extensions',
    'Extensions with at least one binding.',
    (view) => view.registrations.extensions,
  ),
  many(
    'counter',
    'tollgate_api_refused_total',
    'Connections, event streams and audit entries refused over their limits.',
    ({ api: { refused } }) =>
      Object.entries(refused).map(([what, value]) => ({ value, labels: { what } })),
  ),
  many(
    'counter',
    'tollgate_api_requests_total',
    'API requests by route and status class.',
    (view) =>
      view.api.routes.map(({ count, method, route, status_class }) => ({
        value: count,
        labels: { method, route, status: status_class },
      })),
  ),
]

const machine: readonly Metric[] = [
  many(
    'summary',
    'tollgate_event_loop_lag_seconds',
    'Event-loop delay over the last ten seconds.',
    ({ event_loop }) => [
      { value: event_loop.lag_p50_ms / 1_000, labels: { quantile: '0.5' } },
      { value: event_loop.lag_p99_ms / 1_000, labels: { quantile: '0.99' } },
    ],
  ),
  one(
    'counter',
    'process_cpu_seconds_total',
    'User and system CPU time.',
    (view) => view.process.cpu_seconds,
  ),
  one(
    'gauge',
    'process_resident_memory_bytes',
    'Resident memory.',
    (view) => view.process.resident_bytes,
  ),
  one(
    'gauge',
    'tollgate_heap_used_bytes',
    'Used heap of JavaScript.',
    (view) => view.process.heap_used_bytes,
  ),
  many(
    'gauge',
    'tollgate_process_info',
    'Always 1. The name and the epoch of the node that this process is.',
    ({ this_node: { name, epoch } }) => [{ value: 1, labels: { name, epoch } }],
  ),
  one('gauge', 'tollgate_process_fenced', '1: another process has its name.', (view) =>
    view.this_node.condition === 'fenced' ? 1 : 0,
  ),
  one(
    'gauge',
    'tollgate_process_heartbeat_age_seconds',
    'Since it was heard.',
    (view) => view.this_node.heartbeat_age_seconds,
  ),
  one(
    'gauge',
    'tollgate_uptime_seconds',
    'Seconds since the process started.',
    (view) => view.uptime_seconds,
  ),
  one('gauge', 'tollgate_database_bytes', 'Size of the database.', (view) => view.database.bytes),
  one(
    'gauge',
    'tollgate_database_free_bytes',
    'Free space in the database file.',
    (view) => view.database.free_bytes,
  ),
]

export const metrics: readonly Metric[] = [
  ...calls,
  ...nodes,
  ...relays,
  ...people,
  ...billingMetrics,
  ...machine,
]

/** What the engine counts in addition, under its own names: `sip_dialogs` → `tollgate_sip_dialogs`. */
function engineMetrics(view: TelemetryView): readonly Metric[] {
  return Object.keys(view.engine).map((name) => ({
    name: `tollgate_${snakeCase(name)}`,
    type: name.endsWith('_total') ? 'counter' : 'gauge',
    help: 'A figure of the SIP engine.',
    read: ({ engine }) => [{ value: engine[name] ?? 0 }],
  }))
}

const snakeCase = (name: string): string =>
  name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

export function prometheusText(view: TelemetryView, further: readonly Metric[] = []): string {
  const blocks = [...metrics, ...engineMetrics(view), ...further].map(
    ({ name, type, help, read }) => {
      const lines = read(view).map(
        ({ suffix = '', labels, value }) => `${name}${suffix}${labelText(labels)} ${value}\n`,
      )
      return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
    },
  )
  return blocks.join('')
}

function labelText(labels: Labels | undefined): string {
  if (labels === undefined) return ''
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(String(value))}"`)
  return `{${pairs.join(',')}}`
}

const escaped = (value: string): string =>
  value.replaceAll(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`))
