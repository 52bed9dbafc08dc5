/** Reads all measurements on demand; nothing is pushed. */
import type Sqlite from 'better-sqlite3'
import { moneyToDecimal, timeToText } from '../../../schema/columns.ts'
import type {
  DelayHistogram,
  MosHistogram,
  RelayStatus,
  SetStatus,
  TelemetrySnapshot,
} from '../../../schema/contracts/engine.ts'
import type { OcsStats } from '../../../schema/contracts/charging.ts'
import type { Store, MaybeLocal } from '../../../schema/storage/store.ts'
import { all, prepare } from '../../../schema/sql/query.ts'
import { isUnstored } from '../../../schema/storage/storage.ts'
import type { LoopDelay, Platform } from '../../http/platform.ts'
import type {
  HistoryView,
  NodeHistoryView,
  TelemetryView,
  TenantTelemetryView,
} from './telemetry-view.ts'
import type { Webhooks } from '../../webhooks/webhooks.ts'
import type { Context } from 'hono'
import { matchedRoutes } from 'hono/route'
import { answerOf, type ControlEnv, type Step } from '../../http/control-env.ts'

type TelemetryDeps = Pick<
  Platform,
  'store' | 'engine' | 'nodes' | 'ocs' | 'now' | 'steadyNow' | 'loopDelay'
> & { readonly webhooks: Webhooks }

/** Names of the engine's figures that have their own place in the view. */
const dispositions = {
  ANSWERED: 'calls_answered_total',
  'NO ANSWER': 'calls_no_answer_total',
  BUSY: 'calls_busy_total',
  CANCELED: 'calls_canceled_total',
  FAILED: 'calls_failed_total',
  CONGESTION: 'calls_congestion_total',
} as const
const placed: ReadonlySet<string> = new Set([
  'active_calls',
  'calls_total',
  'billed_seconds_total',
  'registered_contacts',
  'registered_extensions',
  ...Object.values(dispositions),
])

export class Telemetry {
  readonly requests = new ApiRequests()
  /** Since the start. */
  readonly refused = { connections: 0, eventReaders: 0, auditEntries: 0 }
  readonly #deps: TelemetryDeps
  readonly #recent: RecentLoad
  readonly #history: History
  #ticks = 0
  readonly #startedAt: number
  readonly #outbox: () => Promise<TelemetryView['outbox']>
  readonly #database: () => Promise<TelemetryView['database']>

  constructor(deps: TelemetryDeps) {
    this.#deps = deps
    this.#startedAt = deps.steadyNow()
    this.#recent = new RecentLoad({
      loopDelay: deps.loopDelay,
      startedCalls: () => this.#started(),
    })
    this.#outbox = lastKnown(deps.store, noOutbox, outboxOf(deps))
    this.#database = lastKnown(deps.store, noDatabase, databaseFigures(deps.store, deps.steadyNow))
    this.#history = new History(this.#measurement())
  }

  /** Called every `TICK_MS`. */
  tick(): void {
    this.#recent.tick()
    this.#ticks += 1
    if (this.#ticks % TICKS_OF_SAMPLE === 0) this.#history.add(this.#measurement())
  }

  history(): HistoryView {
    return this.#history.read()
  }

  /** Null: of all tenants. */
  async nodeHistory(tenantId: number | null): Promise<NodeHistoryView> {
    const own = tenantId === null ? undefined : await this.#setsOf(tenantId)
    return this.#history.readNodes((setId) => own?.has(setId) ?? true)
  }

  async read(): Promise<TelemetryView> {
    const { engine, nodes, ocs, now, steadyNow } = this.#deps
    const [outbox, database] = await Promise.all([this.#outbox(), this.#database()])
    const figures = engine.telemetry()
    const lag = this.#recent.loopLag()
    return {
      at: timeToText(now()),
      uptime_seconds: (steadyNow() - this.#startedAt) / 1_000,
      this_node: {
        name: nodes.identity.name,
        epoch: nodes.identity.epoch,
        condition: nodes.condition,
        heartbeat_age_seconds: nodes.heartbeatAgeMs / 1_000,
      },
      calls: this.#calls(figures),
      nodes: nodesOf(engine.dispatcher.status()),
      relays: engine.relays().map(relayOf),
      registrations: {
        contacts: figures['registered_contacts'] ?? 0,
        extensions: figures['registered_extensions'] ?? 0,
      },
      api: this.#api(),
      billing: ocs === undefined ? null : billingOf(ocs.stats()),
      outbox,
      event_loop: { lag_p50_ms: lag.p50, lag_p99_ms: lag.p99 },
      process: processFigures(),
      database,
      engine: Object.fromEntries(Object.entries(figures).filter(([name]) => !placed.has(name))),
    }
  }

  async readForTenant(tenantId: number): Promise<TenantTelemetryView> {
    const { engine, now } = this.#deps
    const own = await this.#setsOf(tenantId)
    return {
      at: timeToText(now()),
      calls: {
        active: engine.calls.list().filter((call) => call.tenantId === tenantId).length,
      },
      nodes: nodesOf(engine.dispatcher.status().filter(({ setId }) => own.has(setId))),
    }
  }

  async #setsOf(tenantId: number): Promise<ReadonlySet<number>> {
    const { store } = this.#deps
    const query = store.db
      .selectFrom('dispatcher_set')
      .select('set_id')
      .where('tenant_id', '=', tenantId)
    return new Set((await all(store, query)).map(({ set_id }) => set_id))
  }

  #measurement(): Measurement {
    const { engine, ocs, now } = this.#deps
    const figures = engine.telemetry()
    const { calls_total: ended = 0, active_calls: active = 0 } = figures
    const { counts, sumMs } = engine.postDialDelay()
    const debits = (ocs?.stats().moved ?? []).filter(({ kind }) => kind === 'debit')
    return {
      at: now(),
      active,
      ended,
      started: ended + active,
      answered: figures['calls_answered_total'] ?? 0,
      delays: counts.reduce((sum, count) => sum + count, 0),
      delaySumMs: sumMs,
      spentMicros: new Map(debits.map(({ currency, amountMicros }) => [currency, amountMicros])),
      lagP99Ms: this.#recent.loopLag().p99,
      nodes: engine.dispatcher
        .status()
        .flatMap(({ setId, nodes }) =>
          nodes.map(({ nodeId, latencyMs }) => ({ setId, nodeId, latencyMs })),
        ),
    }
  }

  /** Every call ever started has ended or is active. */
  #started(): number {
    const { calls_total: ended = 0, active_calls: active = 0 } = this.#deps.engine.telemetry()
    return ended + active
  }

  #calls(figures: TelemetrySnapshot): TelemetryView['calls'] {
    const total = figures['calls_total'] ?? 0
    const answered = figures['calls_answered_total'] ?? 0
    const billed = figures['billed_seconds_total'] ?? 0
    return {
      active: figures['active_calls'] ?? 0,
      per_second: this.#recent.callsPerSecond(),
      total,
      answered,
      asr_percent: total === 0 ? null : rounded((answered / total) * 100),
      acd_seconds: answered === 0 ? null : rounded(billed / answered),
      billed_seconds: billed,
      by_disposition: Object.fromEntries(
        Object.entries(dispositions).map(([name, figure]) => [name, figures[figure] ?? 0]),
      ),
      post_dial_delay: delayOf(this.#deps.engine.postDialDelay()),
      mos: mosOf(this.#deps.engine.mos()),
    }
  }

  #api(): TelemetryView['api'] {
    const routes = this.requests.list()
    const classes: Record<string, number> = {}
    for (const { statusClass, count } of routes)
      classes[statusClass] = (classes[statusClass] ?? 0) + count
    return {
      requests_total: routes.reduce((sum, { count }) => sum + count, 0),
      by_status_class: classes,
      refused: {
        connections: this.refused.connections,
        event_readers: this.refused.eventReaders,
        audit_entries: this.refused.auditEntries,
      },
      routes: routes.map(({ statusClass, ...rest }) => ({ ...rest, status_class: statusClass })),
    }
  }
}

/** Interval between calls of `tick`. */
export const TICK_MS = 1_000
/** Length of a sample of the history. */
const SAMPLE_SECONDS = 5
const TICKS_OF_SAMPLE = (SAMPLE_SECONDS * 1_000) / TICK_MS

const rounded = (value: number): number => Math.round(value * 1_000) / 1_000

function nodesOf(sets: readonly SetStatus[]): TelemetryView['nodes'] {
  return sets.flatMap(({ setId, nodes }) =>
    nodes.map((node) => ({
      set_id: setId,
      node_id: node.nodeId,
      destination: node.destination,
      state: node.state,
      latency_ms: node.latencyMs,
      active_calls: node.activeCalls,
      probes: { ...node.probes },
    })),
  )
}

const relayOf = (relay: RelayStatus): TelemetryView['relays'][number] => ({
  relay: relay.name,
  weight: relay.weight,
  alive: relay.isAlive,
  latency_ms: relay.latencyMs,
  sessions: relay.sessions,
  outstanding: relay.outstanding,
  requests_total: relay.requests,
  timeouts_total: relay.timeouts,
  errors_total: relay.errors,
  restarts_total: relay.restarts,
})

function delayOf({
  boundsMs,
  counts,
  sumMs,
}: DelayHistogram): TelemetryView['calls']['post_dial_delay'] {
  let count = 0
  const buckets = counts.map((own, index) => {
    count += own
    return { le_ms: boundsMs[index] ?? null, count }
  })
  return { count, average_ms: count === 0 ? null : rounded(sumMs / count), sum_ms: sumMs, buckets }
}

function mosOf({ buckets, sum, calls }: MosHistogram): TelemetryView['calls']['mos'] {
  const average = calls === 0 ? null : rounded(sum / calls)
  return { count: calls, average, sum: rounded(sum), buckets: [...buckets] }
}

function billingOf(stats: OcsStats): NonNullable<TelemetryView['billing']> {
  return {
    authorizations_total: Object.values(stats.verdicts).reduce((sum, count) => sum + count, 0),
    verdicts: stats.verdicts,
    open_calls: stats.openCalls,
    reserved: moneyToDecimal(stats.reservedMicros),
    moved: stats.moved.map(({ amountMicros, ...sum }) => ({
      ...sum,
      amount: moneyToDecimal(amountMicros),
    })),
    waiting_writes: stats.waitingWrites,
    commits_total: stats.commits,
    commit_failures: stats.commitFailures,
    lost_events_total: stats.lostEvents,
  }
}

const noOutbox: TelemetryView['outbox'] = {
  call_reports: 0,
  webhook_deliveries: 0,
  webhook_oldest_seconds: null,
}
const noDatabase: TelemetryView['database'] = { bytes: 0, free_bytes: null }

function outboxOf({
  store,
  webhooks,
}: Pick<TelemetryDeps, 'store' | 'webhooks'>): () => Promise<TelemetryView['outbox']> {
  const reports = prepare<Record<string, never>, { n: number }>(store, (db) =>
    db.selectFrom('cdr_outbox').select((row) => row.fn.countAll<number>().as('n')),
  )
  return async () => {
    const { pending, oldestMs } = await webhooks.backlog()
    return {
      call_reports: (await reports.get({}))?.n ?? 0,
      webhook_deliveries: pending,
      webhook_oldest_seconds: oldestMs === null ? null : oldestMs / 1_000,
    }
  }
}

function processFigures(): TelemetryView['process'] {
  const { rss, heapUsed } = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  return { resident_bytes: rss, heap_used_bytes: heapUsed, cpu_seconds: (user + system) / 1e6 }
}

const TICKS = 10
/** The resolution of Node's measurement, included in every value. */
export const LOOP_RESOLUTION_MS = 10

export interface LoopLag {
  /** Milliseconds, over the last ten seconds. */
  readonly p50: number
  readonly p99: number
}

interface RecentLoadDeps {
  readonly loopDelay: LoopDelay
  /** Total calls started. */
  readonly startedCalls: () => number
}

export class RecentLoad {
  readonly #deps: RecentLoadDeps
  /** Total calls started at each of the last ticks, oldest first. */
  readonly #started: number[]
  #ticks = 0
  #lag: LoopLag = { p50: 0, p99: 0 }

  constructor(deps: RecentLoadDeps) {
    this.#deps = deps
    this.#started = [deps.startedCalls()]
  }

  /** Called every `TICK_MS`. */
  tick(): void {
    this.#started.push(this.#deps.startedCalls())
    if (this.#started.length > TICKS + 1) this.#started.shift()
    this.#ticks += 1
    if (this.#ticks % TICKS !== 0) return
    const { loopDelay } = this.#deps
    this.#lag = { p50: lagOf(loopDelay, 50), p99: lagOf(loopDelay, 99) }
    loopDelay.reset()
  }

  /** Over the last ten seconds, or since the start. */
  callsPerSecond(): number {
    const [oldest = 0] = this.#started
    const newest = this.#started.at(-1) ?? 0
    return (newest - oldest) / Math.max(1, this.#started.length - 1)
  }

  loopLag(): LoopLag {
    return this.#lag
  }
}

function lagOf(loopDelay: LoopDelay, percentile: number): number {
  const ms = loopDelay.percentile(percentile) / 1e6 - LOOP_RESOLUTION_MS
  return Math.max(0, Math.round(ms * 1_000) / 1_000)
}

/** Figures read from the database. While it is unavailable, the last ones are used. */
type Figures = TelemetryView['database']

/** A database server stats each file of the database to compute its size. */
const SIZE_MAX_AGE_MS = 60_000

/** Returns a function that reads the size of the database. */
function databaseFigures(
  { sqlite, statements }: MaybeLocal,
  now: () => number,
): () => Promise<Figures> {
  if (sqlite !== undefined) return async () => figuresOfFile(sqlite)
  const size = statements.prepare<{ readonly bytes: number }>(
    'SELECT pg_database_size(current_database()) AS bytes',
  )
  let read = { at: -Infinity, bytes: 0 }
  return async () => {
    if (now() - read.at >= SIZE_MAX_AGE_MS)
      read = { at: now(), bytes: (await size.get([]))?.bytes ?? 0 }
    return { bytes: read.bytes, free_bytes: null }
  }
}

function figuresOfFile(sqlite: Sqlite.Database): Figures {
  const pragma = (name: string) => Number(sqlite.pragma(name, { simple: true }))
  const pageSize = pragma('page_size')
  return {
    bytes: pragma('page_count') * pageSize,
    free_bytes: pragma('freelist_count') * pageSize,
  }
}

/**
 * Wraps `read`: returns its last result while the database is unavailable, without asking it again.
 */
export function lastKnown<T>(
  { storage }: Pick<Store, 'storage'>,
  first: T,
  read: () => Promise<T>,
): () => Promise<T> {
  let known = first
  return async () => {
    try {
      if (storage.problem === undefined) known = await read()
    } catch (error) {
      if (!isUnstored(error)) throw error
    }
    return known
  }
}

/** Ten minutes. */
const MAX_SAMPLES = 120

/** Totals since the start of the process, and current values. */
interface Measurement {
  /** Milliseconds UTC. */
  readonly at: number
  readonly active: number
  readonly started: number
  readonly ended: number
  readonly answered: number
  readonly delays: number
  readonly delaySumMs: number
  /** Debits by currency. */
  readonly spentMicros: ReadonlyMap<string, bigint>
  readonly lagP99Ms: number
  readonly nodes: readonly {
    readonly setId: number
    readonly nodeId: number
    readonly latencyMs: number | null
  }[]
}

interface NodeLatencies {
  readonly setId: number
  /** Oldest first; null where the node was out of reach, or not there yet. */
  readonly values: (number | null)[]
}

/**
 * The last ten minutes, so that a chart is full when it is opened: the counts of each five seconds,
 * and the latency of each node. A sample takes some microseconds, and calls do nothing for it.
 */
class History {
  readonly #samples: HistoryView['samples'] = []
  #nodes = new Map<number, NodeLatencies>()
  #last: Measurement

  constructor(first: Measurement) {
    this.#last = first
  }

  /** Called every `SAMPLE_SECONDS`. */
  add(measured: Measurement): void {
    this.#samples.push(sampleBetween(this.#last, measured))
    if (this.#samples.length > MAX_SAMPLES) this.#samples.shift()
    this.#nodes = new Map(
      measured.nodes.map(({ setId, nodeId, latencyMs }) => {
        const values = this.#nodes.get(nodeId)?.values ?? []
        values.push(latencyMs)
        if (values.length > MAX_SAMPLES) values.shift()
        return [nodeId, { setId, values }]
      }),
    )
    this.#last = measured
  }

  read(): HistoryView {
    return { interval_seconds: SAMPLE_SECONDS, samples: [...this.#samples] }
  }

  /** The history of nodes in the sets that `isVisible` admits. */
  readNodes(isVisible: (setId: number) => boolean): NodeHistoryView {
    const nodes = [...this.#nodes]
      .filter(([, { setId }]) => isVisible(setId))
      .map(([nodeId, { values }]) => ({ node_id: nodeId, latencies_ms: [...values] }))
    return { interval_seconds: SAMPLE_SECONDS, nodes }
  }
}

const sampleBetween = (last: Measurement, next: Measurement): HistoryView['samples'][number] => ({
  at: timeToText(next.at),
  active: next.active,
  started: next.started - last.started,
  ended: next.ended - last.ended,
  answered: next.answered - last.answered,
  post_dial_delay: {
    count: next.delays - last.delays,
    sum_ms: next.delaySumMs - last.delaySumMs,
  },
  spent: [...next.spentMicros].flatMap(([currency, micros]) => {
    const moved = micros - (last.spentMicros.get(currency) ?? 0n)
    return moved === 0n ? [] : [{ currency, amount: moneyToDecimal(moved) }]
  }),
  lag_p99_ms: next.lagP99Ms,
})

interface RequestCount {
  readonly method: string
  /** As routed, such as `/api/v1/users/:id`, or `none`. */
  readonly route: string
  readonly statusClass: '1xx' | '2xx' | '3xx' | '4xx' | '5xx'
  readonly count: number
}

const NO_ROUTE = 'none'
const methods = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const
const classes = ['1xx', '2xx', '3xx', '4xx', '5xx'] as const

class RouteRequests {
  /** Method and path pattern. */
  readonly route: string
  readonly counts = [0, 0, 0, 0, 0]

  constructor(route: string) {
    this.route = route
  }

  add(status: number): void {
    const index = Math.floor(status / 100) - 1
    this.counts[index] = (this.counts[index] ?? 0) + 1
  }
}

/**
 * Counts responses by route and status class. A request costs two look-ups: its route is noted
 * before the handler runs, its status when the response is sent.
 */
class ApiRequests {
  /** By method, then route; as many as the program has routes. */
  readonly #methods = new Map<string, Map<string, RouteRequests>>(
    [...methods, NO_ROUTE].map((method) => [method, new Map<string, RouteRequests>()]),
  )

  /** Runs before every other step. */
  note(): Step {
    return (c) => {
      // A path that is itself a route, without parameters, is in the table under its name.
      const known = this.#methods.get(c.req.method)?.get(c.req.path)
      answerOf(c).count = known ?? this.#routeOf(c.req.method, pathOf(c))
    }
  }

  /** Counts what never becomes a request of a route, such as a rejected one (400, 408, 431). */
  get unrouted(): { readonly route: string; add(status: number): void } {
    return this.#routeOf(NO_ROUTE, NO_ROUTE)
  }

  list(): readonly RequestCount[] {
    return [...this.#methods].flatMap(([method, routes]) =>
      [...routes].flatMap(([route, { counts }]) =>
        classes
          .map((statusClass, index) => ({ method, route, statusClass, count: counts[index] ?? 0 }))
          .filter(({ count }) => count > 0),
      ),
    )
  }

  #routeOf(method: string, path: string): RouteRequests {
    const routes = this.#methods.get(method)
    if (routes === undefined) return this.#routeOf(NO_ROUTE, path)
    const known = routes.get(path)
    if (known !== undefined) return known
    const added = new RouteRequests(path === NO_ROUTE ? NO_ROUTE : `${method} ${path}`)
    routes.set(path, added)
    return added
  }
}

/** The first matching route responds; middleware mounted on every path does not count. */
const pathOf = (c: Context<ControlEnv>): string =>
  matchedRoutes(c).find(({ path }) => path !== '/*')?.path ?? NO_ROUTE
