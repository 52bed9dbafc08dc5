/**
 * The telemetry of all instances as one view: totals are sums, and what is about a process is
 * listed by instance.
 */
import type { z } from 'zod'
import { moneyToDecimal } from '../../../schema/columns.ts'
import { dataOf } from '../../instances/instance-client.ts'
import type { PeerRequests } from '../../instances/other-instances.ts'
import {
  type TelemetryView,
  telemetryView,
  type TenantTelemetryView,
  tenantTelemetryView,
} from './telemetry-view.ts'

const target = '/api/v1/metrics/telemetry'

type ViewsByInstance<View> = readonly (readonly [string, View])[]

/** Each instance answers for itself, to the same principal. */
async function ofOthers<S extends z.ZodType>(
  peers: PeerRequests,
  schema: S,
): Promise<ViewsByInstance<z.output<S>>> {
  const answers = await peers.all({ method: 'GET', target })
  return answers.flatMap((answer) => {
    const view = dataOf(answer, schema)
    return view === undefined ? [] : [[answer.peer.name, view] as const]
  })
}

export async function telemetryOfAll(
  peers: PeerRequests,
  own: TelemetryView,
): Promise<TelemetryView> {
  const others = await ofOthers(peers, telemetryView)
  const views = [own, ...others.map(([, view]) => view)]
  return {
    ...own,
    calls: callsOf(views.map(({ calls }) => calls)),
    nodes: nodesOf(own.nodes, others),
    api: apiOf(views.map(({ api }) => api)),
    billing: billingOf(views.flatMap(({ billing }) => billing ?? [])),
    platform_nodes: [[peers.self, own] as const, ...others].map(([name, view]) => ({
      name,
      uptime_seconds: view.uptime_seconds,
      active_calls: view.calls.active,
      calls_per_second: view.calls.per_second,
      event_loop: view.event_loop,
      process: view.process,
    })),
  }
}

export async function tenantTelemetryOfAll(
  peers: PeerRequests,
  own: TenantTelemetryView,
): Promise<TenantTelemetryView> {
  const others = await ofOthers(peers, tenantTelemetryView)
  const views = [own, ...others.map(([, view]) => view)]
  return {
    ...own,
    calls: { active: sumOf(views, ({ calls }) => calls.active) },
    nodes: nodesOf(own.nodes, others),
  }
}

/** States and latencies are those that this instance sees; calls are those of all. */
function nodesOf<View extends Pick<TelemetryView, 'nodes'>>(
  own: TelemetryView['nodes'],
  others: ViewsByInstance<View>,
): TelemetryView['nodes'] {
  const more = new Map<number, number>()
  for (const [, { nodes }] of others)
    for (const { node_id: id, active_calls: calls } of nodes)
      more.set(id, (more.get(id) ?? 0) + calls)
  return own.map((node) => ({
    ...node,
    active_calls: node.active_calls + (more.get(node.node_id) ?? 0),
  }))
}

type Calls = TelemetryView['calls']

function callsOf(all: readonly Calls[]): Calls {
  const total = sumOf(all, (calls) => calls.total)
  const answered = sumOf(all, (calls) => calls.answered)
  const billed = sumOf(all, (calls) => calls.billed_seconds)
  return {
    active: sumOf(all, (calls) => calls.active),
    per_second: rounded(sumOf(all, (calls) => calls.per_second)),
    total,
    answered,
    billed_seconds: billed,
    asr_percent: total === 0 ? null : rounded((answered / total) * 100),
    acd_seconds: answered === 0 ? null : rounded(billed / answered),
    by_disposition: sumsOf(all.map((calls) => calls.by_disposition)),
    post_dial_delay: delaysOf(all.map((calls) => calls.post_dial_delay)),
    mos: mosOf(all.map((calls) => calls.mos)),
  }
}

/** Instances of one version have the same buckets. */
function delaysOf(all: readonly Calls['post_dial_delay'][]): Calls['post_dial_delay'] {
  const count = sumOf(all, (delays) => delays.count)
  const sum = sumOf(all, (delays) => delays.sum_ms)
  const buckets = (all[0]?.buckets ?? []).map(({ le_ms: bound }) => ({
    le_ms: bound,
    count: sumOf(all, (each) => countIn(each.buckets, (bucket) => bucket.le_ms === bound)),
  }))
  return { count, sum_ms: sum, average_ms: count === 0 ? null : rounded(sum / count), buckets }
}

function mosOf(all: readonly Calls['mos'][]): Calls['mos'] {
  const count = sumOf(all, (mos) => mos.count)
  const sum = rounded(sumOf(all, (mos) => mos.sum))
  const buckets = (all[0]?.buckets ?? []).map(({ le }) => ({
    le,
    count: sumOf(all, (each) => countIn(each.buckets, (bucket) => bucket.le === le)),
  }))
  return { count, average: count === 0 ? null : rounded(sum / count), sum, buckets }
}

function countIn<B extends { readonly count: number }>(
  buckets: readonly B[],
  isWanted: (bucket: B) => boolean,
): number {
  return buckets.find(isWanted)?.count ?? 0
}

type Api = TelemetryView['api']

function apiOf(all: readonly Api[]): Api {
  const routes = new Map<string, Api['routes'][number]>()
  for (const route of all.flatMap((api) => api.routes)) {
    const name = `${route.method} ${route.route} ${route.status_class}`
    const known = routes.get(name)
    routes.set(name, known ? { ...known, count: known.count + route.count } : route)
  }
  return {
    requests_total: sumOf(all, (api) => api.requests_total),
    by_status_class: sumsOf(all.map((api) => api.by_status_class)),
    refused: {
      connections: sumOf(all, ({ refused }) => refused.connections),
      event_readers: sumOf(all, ({ refused }) => refused.event_readers),
      audit_entries: sumOf(all, ({ refused }) => refused.audit_entries),
    },
    routes: [...routes.values()],
  }
}

type Billing = NonNullable<TelemetryView['billing']>

/** Null: another OCS charges. */
function billingOf(all: readonly Billing[]): Billing | null {
  if (all.length === 0) return null
  const moved = new Map<string, Billing['moved'][number]>()
  for (const sum of all.flatMap((billing) => billing.moved)) {
    const name = `${sum.kind} ${sum.currency}`
    const known = moved.get(name)
    const count = (known?.count ?? 0) + sum.count
    moved.set(name, { ...sum, count, amount: decimalSum([known?.amount ?? '0', sum.amount]) })
  }
  return {
    authorizations_total: sumOf(all, (billing) => billing.authorizations_total),
    verdicts: sumsOf(all.map(({ verdicts }) => verdicts)),
    open_calls: sumOf(all, (billing) => billing.open_calls),
    reserved: decimalSum(all.map(({ reserved }) => reserved)),
    moved: [...moved.values()],
    waiting_writes: sumOf(all, (billing) => billing.waiting_writes),
    commits_total: sumOf(all, (billing) => billing.commits_total),
    commit_failures: sumOf(all, (billing) => billing.commit_failures),
    lost_events_total: sumOf(all, (billing) => billing.lost_events_total),
  }
}

/** Exact. */
function decimalSum(amounts: readonly string[]): string {
  let micros = 0n
  for (const amount of amounts) {
    const [, sign = '', whole = '0', fraction = ''] =
      /^(-?)(\d+)(?:\.(\d{1,6}))?$/.exec(amount) ?? []
    const size = BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, '0'))
    micros += sign === '-' ? -size : size
  }
  return moneyToDecimal(micros)
}

function sumsOf(all: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums: Record<string, number> = {}
  for (const each of all)
    for (const [name, count] of Object.entries(each)) sums[name] = (sums[name] ?? 0) + count
  return sums
}

function sumOf<T>(all: readonly T[], read: (each: T) => number): number {
  return all.reduce((sum, each) => sum + read(each), 0)
}

const rounded = (value: number): number => Math.round(value * 1_000) / 1_000
