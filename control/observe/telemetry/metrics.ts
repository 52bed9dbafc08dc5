/** The metrics for Prometheus. Each is read from the telemetry view, so that both answers agree. */
import { Gauge, Registry } from 'prom-client'
import type { CertificateStatus } from '../../../schema/contracts/certificates.ts'
import type { InstancesPort } from '../../../schema/contracts/instances.ts'
import { clockSecondsOf } from '../../instances/membership.ts'
import type { TelemetryView } from './telemetry-view.ts'

interface Sample {
  readonly value: number
  readonly labels: Record<string, string | number>
  /** Name of a line of a histogram: with `_bucket`, `_sum` or `_count`. */
  readonly metricName?: string
}

interface Metric {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary'
  /** Null and undefined: there is no sample now. */
  readonly read: (view: TelemetryView) => number | null | undefined | readonly Sample[]
}

const metric =
  (type: Metric['type']) =>
  (name: string, help: string, read: Metric['read']): Metric => ({ name, help, type, read })

const gauge = metric('gauge')
const counter = metric('counter')

/** @param read the cumulative buckets, without the last one, which has no bound. */
const histogram = (
  name: string,
  help: string,
  read: (view: TelemetryView) => {
    readonly buckets: readonly { readonly le: number; readonly count: number }[]
    readonly sum: number
    readonly count: number
  },
): Metric =>
  metric('histogram')(name, help, (view) => {
    const { buckets, sum, count } = read(view)
    return [
      ...[...buckets, { le: '+Inf', count }].map((bucket) => ({
        metricName: `${name}_bucket`,
        labels: { le: bucket.le },
        value: bucket.count,
      })),
      { metricName: `${name}_sum`, labels: {}, value: sum },
      { metricName: `${name}_count`, labels: {}, value: count },
    ]
  })

/** One sample for each state: 1 for the one that it is in. */
const stateSamples = (
  states: readonly string[],
  current: string,
  labels: Sample['labels'],
): readonly Sample[] =>
  states.map((state) => ({ value: current === state ? 1 : 0, labels: { ...labels, state } }))

const nodeLabels = ({ set_id, destination }: TelemetryView['nodes'][number]) => ({
  set_id,
  destination,
})

/** One sample for each media relay that has a value. */
const ofRelays =
  (read: (relay: TelemetryView['relays'][number]) => number | null): Metric['read'] =>
  ({ relays }) =>
    relays.flatMap((relay) => {
      const value = read(relay)
      return value === null ? [] : [{ value, labels: { relay: relay.relay } }]
    })

/** Totals that have a label in Prometheus. */
const ofSignatures = /^stir_calls_(?<what>verified|signed)_(?<label>\w+)_total$/
/** Totals of the library: those above have them, too. */
const alsoCounted = /^stir_(?:signed|unsigned|verified_\w+)_total$/

const signatures =
  (what: 'verified' | 'signed', label: string): Metric['read'] =>
  ({ engine }) =>
    Object.entries(engine).flatMap(([name, value]) => {
      const { groups } = ofSignatures.exec(name) ?? {}
      return groups?.['what'] === what
        ? [{ value, labels: { [label]: groups['label'] ?? '' } }]
        : []
    })

export const metrics: readonly Metric[] = [
  gauge('tollgate_calls_active', 'Live calls.', ({ calls }) => calls.active),
  gauge(
    'tollgate_calls_per_second',
    'Calls started per second over the last ten seconds.',
    ({ calls }) => calls.per_second,
  ),
  counter('tollgate_calls_total', 'Ended calls by disposition.', ({ calls }) =>
    Object.entries(calls.by_disposition).map(([disposition, value]) => ({
      value,
      labels: { disposition },
    })),
  ),
  gauge('tollgate_calls_answer_seizure_ratio', 'Answered of all calls, 0 to 1.', ({ calls }) =>
    calls.asr_percent === null ? null : calls.asr_percent / 100,
  ),
  gauge(
    'tollgate_calls_average_duration_seconds',
    'Billed seconds per answered call.',
    ({ calls }) => calls.acd_seconds,
  ),
  counter(
    'tollgate_calls_billed_seconds_total',
    'Seconds between answer and end of all calls.',
    ({ calls }) => calls.billed_seconds,
  ),
  histogram(
    'tollgate_post_dial_delay_seconds',
    'Seconds from the INVITE to the first response of the callee.',
    ({ calls: { post_dial_delay: delays } }) => ({
      buckets: delays.buckets.flatMap(({ le_ms, count }) =>
        le_ms === null ? [] : [{ le: le_ms / 1_000, count }],
      ),
      sum: delays.sum_ms / 1_000,
      count: delays.count,
    }),
  ),
  counter(
    'tollgate_stir_verified_total',
    'Calls whose Identity headers were looked at, by what these have proved.',
    signatures('verified', 'result'),
  ),
  counter(
    'tollgate_stir_signed_total',
    'INVITEs to carriers that want a signature, by the attestation that they got.',
    signatures('signed', 'attestation'),
  ),
  histogram(
    'tollgate_mos',
    'Calls whose quality is known, by the MOS of their worse direction.',
    ({ calls }) => calls.mos,
  ),
  gauge('tollgate_node_state', '1 for the state that the node is in.', ({ nodes }) =>
    nodes.flatMap((node) =>
      stateSamples(['active', 'probing', 'inactive'], node.state, nodeLabels(node)),
    ),
  ),
  gauge('tollgate_node_latency_seconds', 'Smoothed round trip of the probes.', ({ nodes }) =>
    nodes.flatMap((node) =>
      node.latency_ms === null
        ? []
        : [{ value: node.latency_ms / 1_000, labels: nodeLabels(node) }],
    ),
  ),
  gauge('tollgate_node_calls_active', 'Live calls on the node.', ({ nodes }) =>
    nodes.map((node) => ({ value: node.active_calls, labels: nodeLabels(node) })),
  ),
  counter('tollgate_node_probes_total', 'Finished probes by result.', ({ nodes }) =>
    nodes.flatMap((node) =>
      (['answered', 'failed'] as const).map((result) => ({
        value: node.probes[result],
        labels: { ...nodeLabels(node), result },
      })),
    ),
  ),
  gauge(
    'tollgate_relay_alive',
    '1 while the media relay answers.',
    ofRelays(({ alive }) => (alive ? 1 : 0)),
  ),
  gauge(
    'tollgate_relay_latency_seconds',
    'Smoothed round trip of requests to the media relay.',
    ofRelays(({ latency_ms }) => latency_ms && latency_ms / 1_000),
  ),
  gauge(
    'tollgate_relay_sessions',
    'Sessions at the media relay, those of other programs included.',
    ofRelays(({ sessions }) => sessions),
  ),
  gauge(
    'tollgate_relay_outstanding_requests',
    'Requests without an answer so far.',
    ofRelays(({ outstanding }) => outstanding),
  ),
  counter(
    'tollgate_relay_requests_total',
    'Requests to the media relay.',
    ofRelays(({ requests_total }) => requests_total),
  ),
  counter(
    'tollgate_relay_timeouts_total',
    'Requests that the media relay did not answer.',
    ofRelays(({ timeouts_total }) => timeouts_total),
  ),
  counter(
    'tollgate_relay_errors_total',
    'Requests that the media relay refused.',
    ofRelays(({ errors_total }) => errors_total),
  ),
  counter(
    'tollgate_relay_restarts_total',
    'How often the media relay has started anew, which ends its sessions.',
    ofRelays(({ restarts_total }) => restarts_total),
  ),
  gauge(
    'tollgate_registered_contacts',
    'Unexpired bindings of phones.',
    ({ registrations }) => registrations.contacts,
  ),
  gauge(
    'tollgate_registered_extensions',
    'Extensions with at least one binding.',
    ({ registrations }) => registrations.extensions,
  ),
  counter(
    'tollgate_api_refused_total',
    'Connections, event streams and audit entries refused over their limits.',
    ({ api: { refused } }) =>
      Object.entries(refused).map(([what, value]) => ({ value, labels: { what } })),
  ),
  counter(
    'tollgate_api_requests_total',
    'API requests by route and status class.',
    ({ api: { routes } }) =>
      routes.map(({ count, method, route, status_class }) => ({
        value: count,
        labels: { method, route, status: status_class },
      })),
  ),
  counter(
    'tollgate_billing_authorizations_total',
    'Charging verdicts: granted, the denial code, or the guard that has refused a call ' +
      'that could not be decided.',
    ({ billing }) =>
      Object.entries(billing?.verdicts ?? {}).map(([verdict, value]) => ({
        value,
        labels: { verdict },
      })),
  ),
  gauge(
    'tollgate_billing_open_calls',
    'Calls with a reservation or a pending debit.',
    ({ billing }) => billing?.open_calls,
  ),
  gauge('tollgate_billing_reserved', 'Held for live calls, all currencies.', ({ billing }) =>
    billing === null ? null : Number(billing.reserved),
  ),
  counter('tollgate_billing_entries_total', 'Ledger entries by kind.', ({ billing }) =>
    (billing?.moved ?? []).map(({ kind, currency, count }) => ({
      value: count,
      labels: { kind, currency },
    })),
  ),
  counter('tollgate_billing_amount_total', 'Money moved by kind, absolute.', ({ billing }) =>
    (billing?.moved ?? []).map(({ kind, currency, amount }) => ({
      value: Number(amount),
      labels: { kind, currency },
    })),
  ),
  gauge(
    'tollgate_billing_waiting_writes',
    'Records waiting for the next group commit.',
    ({ billing }) => billing?.waiting_writes,
  ),
  counter(
    'tollgate_billing_commits_total',
    'Group commits.',
    ({ billing }) => billing?.commits_total,
  ),
  gauge(
    'tollgate_billing_commit_failures',
    'Consecutive failed group commits.',
    ({ billing }) => billing?.commit_failures,
  ),
  counter(
    'tollgate_billing_lost_events_total',
    'Webhook events of calls that could not be stored.',
    ({ billing }) => billing?.lost_events_total,
  ),
  gauge(
    'tollgate_outbox_call_reports',
    'Call records waiting for the external OCS.',
    ({ outbox }) => outbox.call_reports,
  ),
  gauge(
    'tollgate_outbox_webhook_deliveries',
    'Waiting webhook deliveries, counted up to 10,000.',
    ({ outbox }) => outbox.webhook_deliveries,
  ),
  gauge(
    'tollgate_outbox_webhook_oldest_seconds',
    'Age of the oldest waiting webhook delivery; 0 when none is waiting.',
    ({ outbox }) => outbox.webhook_oldest_seconds ?? 0,
  ),
  gauge(
    'tollgate_outbox_alerts',
    'What alert channels are to be told, counted up to 10,000.',
    ({ outbox }) => outbox.alerts,
  ),
  gauge(
    'tollgate_outbox_alerts_failed',
    'Messages of alert channels that were given up, counted up to 10,000.',
    ({ outbox }) => outbox.alerts_failed,
  ),
  metric('summary')(
    'tollgate_event_loop_lag_seconds',
    'Event-loop delay over the last ten seconds.',
    ({ event_loop }) => [
      { value: event_loop.lag_p50_ms / 1_000, labels: { quantile: '0.5' } },
      { value: event_loop.lag_p99_ms / 1_000, labels: { quantile: '0.99' } },
    ],
  ),
  counter(
    'process_cpu_seconds_total',
    'User and system CPU time.',
    (view) => view.process.cpu_seconds,
  ),
  gauge('process_resident_memory_bytes', 'Resident memory.', (view) => view.process.resident_bytes),
  gauge(
    'tollgate_heap_used_bytes',
    'Used heap of JavaScript.',
    (view) => view.process.heap_used_bytes,
  ),
  gauge(
    'tollgate_process_info',
    'Always 1. The name and the epoch of the node that this process is.',
    ({ this_node: { name, epoch } }) => [{ value: 1, labels: { name, epoch } }],
  ),
  gauge('tollgate_process_fenced', '1: another process has its name.', ({ this_node }) =>
    this_node.condition === 'fenced' ? 1 : 0,
  ),
  gauge(
    'tollgate_process_heartbeat_age_seconds',
    'Since it was heard.',
    ({ this_node }) => this_node.heartbeat_age_seconds,
  ),
  gauge(
    'tollgate_uptime_seconds',
    'Seconds since the process started.',
    (view) => view.uptime_seconds,
  ),
  gauge('tollgate_database_bytes', 'Size of the database.', ({ database }) => database.bytes),
  gauge(
    'tollgate_database_free_bytes',
    'Free space in the database file.',
    ({ database }) => database.free_bytes,
  ),
]

/**
 * Further counters of the engine, under their own names: `sip_dialogs` → `tollgate_sip_dialogs`.
 */
const engineMetrics = ({ engine }: TelemetryView): readonly Metric[] =>
  Object.entries(engine).flatMap(([name, value]) => {
    if (ofSignatures.test(name) || alsoCounted.test(name)) return []
    const type = name.endsWith('_total') ? 'counter' : 'gauge'
    return metric(type)(
      `tollgate_${name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`,
      'A figure of the SIP engine.',
      () => value,
    )
  })

type Members = Pick<InstancesPort, 'list' | 'differingSettings'>

/**
 * The instances that share the database, as this one hears of them: it reports those that answer no
 * more.
 */
const memberMetrics = (members: Members): readonly Metric[] => [
  gauge(
    'tollgate_platform_node_state',
    '1 for the state of each node that shares the database, as this one hears of it.',
    () =>
      members
        .list()
        .flatMap(({ name, state }) =>
          stateSamples(['starting', 'serving', 'draining', 'stopped', 'lost'], state, { name }),
        ),
  ),
  gauge(
    'tollgate_platform_node_clock_difference_seconds',
    'How far the clock of each node is ahead of the database server; 0 within two seconds.',
    () =>
      members
        .list()
        .map((instance) => ({ value: clockSecondsOf(instance), labels: { name: instance.name } })),
  ),
  gauge(
    'tollgate_platform_node_differing_settings',
    'Settings of each node that must be the same on all, and differ from those of another ' +
      'node that lives.',
    () =>
      members.list().map(({ name }) => ({
        value: members.differingSettings.get(name)?.length ?? 0,
        labels: { name },
      })),
  ),
]

const certificateMetrics = (certificates: readonly CertificateStatus[]): readonly Metric[] => [
  gauge(
    'tollgate_certificate_not_after_seconds',
    'Unix time at which the certificate of a listener expires.',
    () => certificates.map(({ use, notAfter }) => ({ value: notAfter / 1_000, labels: { use } })),
  ),
]

export async function prometheusText(
  view: TelemetryView,
  members: Members,
  certificates: readonly CertificateStatus[] = [],
): Promise<string> {
  const registry = new Registry()
  for (const { name, help, type, read } of [
    ...metrics,
    ...engineMetrics(view),
    ...memberMetrics(members),
    ...certificateMetrics(certificates),
  ]) {
    const found = read(view)
    const values = typeof found === 'number' ? [{ value: found, labels: {} }] : (found ?? [])
    // The registry asks for the samples alone: histograms are summed already, and nothing is
    // counted twice.
    const get = async () => ({ name, help, type, values })
    registry.registerMetric(Object.assign(new Gauge({ name, help, registers: [] }), { get }))
  }
  // The library puts a blank line between two metrics.
  return (await registry.metrics()).replaceAll('\n\n', '\n')
}
