/**
 * Metrics in Prometheus' text format. Names are those of drachtio-server, so that its dashboards go
 * on; metrics that it does not have begin with `sip_server_`.
 */
import { createServer, type Server } from 'node:http'
import type { CallTimesByDirection, TrafficTotals } from './core/traffic.ts'
import type { Histogram } from './core/histogram.ts'
import type { Load } from './overload.ts'
import { type BoundAddress, listen } from './transport/listen.ts'

export interface ServerFigures {
  readonly version: string
  /** Seconds since the epoch. */
  readonly startedAt: number
  readonly traffic: TrafficTotals
  readonly callTimes: CallTimesByDirection
  /** Confirmed dialogs by who sent the INVITE. */
  readonly dialogs: { readonly inbound: number; readonly outbound: number }
  readonly applications: number
  /** Sizes of the core's tables. */
  readonly sizes: Readonly<Record<string, number>>
  readonly load: Load
}

type Labels = Readonly<Record<string, string | number>>
type Sample = readonly [Labels, number]

export function prometheusText(figures: ServerFigures): string {
  const { traffic, dialogs, sizes, load } = figures
  return [
    counter(
      'drachtio_sip_requests_in_total',
      'SIP requests received',
      byMethod(traffic.requestsIn),
    ),
    counter('drachtio_sip_requests_out_total', 'SIP requests sent', byMethod(traffic.requestsOut)),
    counter(
      'drachtio_sip_responses_in_total',
      'SIP responses received',
      byStatus(traffic.responsesIn),
    ),
    counter(
      'drachtio_sip_responses_out_total',
      'SIP responses sent',
      byStatus(traffic.responsesOut),
    ),
    ...durations(figures.callTimes),
    counter('drachtio_build_info', 'The version that runs', [[{ version: figures.version }, 1]]),
    gauge('drachtio_time_started', 'Start, seconds since the epoch', figures.startedAt),
    family('drachtio_stable_dialogs', 'gauge', 'Established dialogs', [
      [{ type: 'inbound' }, dialogs.inbound],
      [{ type: 'outbound' }, dialogs.outbound],
    ]),
    gauge('drachtio_proxy_cores', 'Requests that are being forwarded', sizes['forwarding'] ?? 0),
    gauge(
      'drachtio_registered_endpoints',
      'Registrations that are reached by their connection',
      sizes['registrationFlows'] ?? 0,
    ),
    gauge('drachtio_app_connections', 'Connected applications', figures.applications),
    gauge('drachtio_sofia_server_txns', 'Server transactions', sizes['serverTransactions'] ?? 0),
    gauge('drachtio_sofia_client_txns', 'Client transactions', sizes['clientTransactions'] ?? 0),
    gauge('drachtio_sofia_dialogs', 'Dialogs, early ones included', sizes['dialogs'] ?? 0),
    ...messages(traffic),
    gauge(
      'sip_server_lag_seconds',
      'How long what arrives waits before it is read',
      load.lagMs / 1_000,
    ),
    gauge('sip_server_admitted_ratio', 'The part of new calls that is let in', load.share),
    counter('sip_server_calls_refused_total', 'New calls refused by overload', [
      [{}, load.refused + traffic.refusedWhenFull],
    ]),
  ].join('')
}

const durations = ({ inbound, outbound }: CallTimesByDirection): string[] => [
  histogram('drachtio_call_answer_seconds_in', 'Received calls until their answer', inbound.answer),
  histogram('drachtio_call_answer_seconds_out', 'Sent calls until their answer', outbound.answer),
  histogram('drachtio_call_pdd_seconds_in', 'Received calls until they ring', inbound.ringing),
  histogram('drachtio_call_pdd_seconds_out', 'Sent calls until they ring', outbound.ringing),
]

/**
 * Counters of Sofia in drachtio-server, some with `total` in the name although they are gauges
 * there.
 */
function messages({ faulty, repeatedOut, ...traffic }: TrafficTotals): string[] {
  const requestsIn = sumOf(traffic.requestsIn.values()) + faulty.unreadableRequests
  const unreadable = faulty.unreadable - faulty.unreadableRequests
  const received = requestsIn + responsesOf(traffic.responsesIn) + unreadable
  const requestsOut = sumOf(traffic.requestsOut.values())
  const sent = requestsOut + responsesOf(traffic.responsesOut)
  const badRequests = faulty.unreadableRequests + faulty.requests
  return [
    gauge('drachtio_sofia_msgs_recv', 'Messages received', received),
    gauge('drachtio_sofia_msgs_sent', 'Messages sent', sent),
    gauge('drachtio_sofia_requests_recv_total', 'Requests received', requestsIn),
    gauge('drachtio_sofia_requests_sent', 'Requests sent', requestsOut),
    gauge(
      'drachtio_sofia_bad_msgs_recv',
      'Faulty messages received',
      badRequests + unreadable + faulty.responses,
    ),
    gauge('drachtio_sofia_bad_reqs_recv', 'Faulty requests received', badRequests),
    gauge('drachtio_sofia_retransmitted_requests', 'Copies of requests sent', repeatedOut.requests),
    gauge(
      'drachtio_sofia_retransmitted_responses',
      'Copies of responses sent',
      repeatedOut.responses,
    ),
  ]
}

const sumOf = (numbers: Iterable<number>): number =>
  [...numbers].reduce((sum, number) => sum + number, 0)

const responsesOf = (counts: ReadonlyMap<string, ReadonlyMap<number, number>>): number =>
  sumOf([...counts.values()].map((codes) => sumOf(codes.values())))

const byMethod = (counts: ReadonlyMap<string, number>): Sample[] =>
  [...counts].map(([method, count]) => [{ method }, count])

const byStatus = (counts: ReadonlyMap<string, ReadonlyMap<number, number>>): Sample[] =>
  [...counts].flatMap(([method, codes]) =>
    [...codes].map(([code, count]): Sample => [{ method, code }, count]),
  )

const counter = (name: string, help: string, samples: readonly Sample[]): string =>
  family(name, 'counter', help, samples)

const gauge = (name: string, help: string, value: number): string =>
  family(name, 'gauge', help, [[{}, value]])

/** Prometheus counts in each bucket all that is not above its bound. */
function histogram(name: string, help: string, { bounds, counts, sum }: Histogram): string {
  let count = 0
  const lines = counts.map((ofBucket, index) => {
    count += ofBucket
    return `${name}_bucket{le="${bounds[index] ?? '+Inf'}"} ${count}\n`
  })
  return (
    `# HELP ${name} ${help}\n# TYPE ${name} histogram\n${lines.join('')}` +
    `${name}_sum ${sum}\n${name}_count ${count}\n`
  )
}

function family(name: string, type: string, help: string, samples: readonly Sample[]): string {
  const lines = samples.map(([labels, value]) => `${name}${shown(labels)} ${value}\n`)
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join('')}`
}

function shown(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

/** An HTTP port for Prometheus: `GET /metrics`, and nothing else. */
export class MetricsListener {
  readonly #server: Server

  constructor(text: () => string) {
    this.#server = createServer({ requestTimeout: 5_000 }, ({ method, url }, response) => {
      if (url !== '/metrics' || (method !== 'GET' && method !== 'HEAD'))
        return void response.writeHead(404).end()
      return void response
        .writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' })
        .end(method === 'GET' ? text() : undefined)
    })
    this.#server.maxConnections = 64
  }

  /** @throws ListenError when the address cannot be bound. */
  start(host: string, port: number): Promise<BoundAddress> {
    return listen(this.#server, 'metrics', { host, port })
  }

  stop(): Promise<void> {
    this.#server.closeAllConnections()
    return new Promise((resolve) => this.#server.close(() => resolve()))
  }
}
