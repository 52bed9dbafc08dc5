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
import type { Platform } from '../../http/platform.ts'
import type {
  HistoryView,
  NodeHistoryView,
  TelemetryView,
  TenantTelemetryView,
} from './telemetry-view.ts'
import type { Webhooks } from '../../webhooks/webhooks.ts'
import { RecentLoad } from './recent-load.ts'
import { History, type Measurement, SAMPLE_SECONDS } from './history.ts'
import { ApiRequests } from './api-requests.ts'

type TelemetryDeps = Pick<
  Platform,
  'store' | 'engine' | 'instances' | 'ocs' | 'now' | 'steadyNow' | 'loopDelay' | 'alerts'
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
      now: deps.steadyNow,
      startedCalls: () => deps.engine.startedCalls(),
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
    const { engine, instances, ocs, now, steadyNow } = this.#deps
    const [outbox, database] = await Promise.all([this.#outbox(), this.#database()])
    const figures = engine.telemetry()
    const lag = this.#recent.loopLag()
    return {
      at: timeToText(now()),
      uptime_seconds: (steadyNow() - this.#startedAt) / 1_000,
      this_node: {
        name: instances.identity.name,
        epoch: instances.identity.epoch,
        condition: instances.condition,
        heartbeat_age_seconds: instances.heartbeatAgeMs / 1_000,
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
  alerts: 0,
  alerts_failed: 0,
}
const noDatabase: TelemetryView['database'] = { bytes: 0, free_bytes: null }

function outboxOf({
  store,
  webhooks,
  alerts,
}: Pick<TelemetryDeps, 'store' | 'webhooks' | 'alerts'>): () => Promise<TelemetryView['outbox']> {
  const reports = prepare<Record<string, never>, { n: number }>(store, (db) =>
    db.selectFrom('cdr_outbox').select((row) => row.fn.countAll<number>().as('n')),
  )
  return async () => {
    const { pending, oldestMs } = await webhooks.backlog()
    const { waiting, failed } = (await alerts?.backlog()) ?? { waiting: 0, failed: 0 }
    return {
      call_reports: (await reports.get({}))?.n ?? 0,
      webhook_deliveries: pending,
      webhook_oldest_seconds: oldestMs === null ? null : oldestMs / 1_000,
      alerts: waiting,
      alerts_failed: failed,
    }
  }
}

function processFigures(): TelemetryView['process'] {
  const { rss, heapUsed } = process.memoryUsage()
  const { user, system } = process.cpuUsage()
  return { resident_bytes: rss, heap_used_bytes: heapUsed, cpu_seconds: (user + system) / 1e6 }
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
