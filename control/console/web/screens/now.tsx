/** Shows the problems of now, how the platform is, and how it was in the last ten minutes. */
import type { ProcessNode, Telemetry, TelemetryHistory } from '../api/views.ts'
import { may } from '../api/session.ts'
import { Chart } from '../parts/chart.tsx'
import { pathOf } from '../parts/address.ts'
import { figureColumn, momentColumn, textColumn } from '../parts/columns.tsx'
import { absent, figureText, unitText } from '../parts/format.ts'
import { useView } from '../parts/resource.ts'
import { address } from '../parts/router.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Badge, Facts, Problem, Text } from '../parts/text.tsx'
import { FindingHistory } from './finding-history.tsx'
import { Findings, Refusals, useFindings } from './findings.tsx'
import { asrOf, chartsOf, delayOf, type Charts } from './samples.ts'

/** The server takes a sample every five seconds. */
const REFRESH_MS = 5_000
const none: TelemetryHistory = { interval_seconds: 5, samples: [] }

export function NowScreen() {
  const telemetry = useView<Telemetry>('/metrics/telemetry', { everyMs: REFRESH_MS })
  const history = useView<TelemetryHistory>('/metrics/history', { everyMs: REFRESH_MS })
  const known = history.data.value ?? none
  const charts = chartsOf(known)
  const { currency = '' } = charts
  const findings = useFindings()
  // The parts below them would move.
  const isKnown = findings.data.value !== undefined || findings.problem.value !== undefined
  if (address.value.query['view'] === 'history')
    return (
      <>
        <Views isHistory />
        <FindingHistory />
      </>
    )
  const problem = <Problem message={telemetry.problem.value ?? history.problem.value} />
  const wrong = <Findings telemetry={telemetry.data.value} findings={findings} />
  if (!isKnown)
    return (
      <>
        <Views />
        {problem}
        {wrong}
      </>
    )
  return (
    <>
      <Views />
      {problem}
      {wrong}
      {may('cdrs:read') && <Refusals />}
      <h2>The last ten minutes</h2>
      <Figures telemetry={telemetry.data.value} history={known} charts={charts} />
      <PlatformInstances />
      <div class="charts">
        <Chart title="Calls per second" {...charts.perSecond} />
        <Chart title="Live calls" {...charts.active} />
        <Chart title="Answer-seizure ratio, %" {...charts.asrPercent} highest={100} />
        <Chart title="Post-dial delay, ms" {...charts.postDialDelayMs} />
        <Chart
          title={currency === '' ? 'Spend per minute' : `Spend per minute, ${currency}`}
          {...charts.spendPerMinute}
        />
        <Chart title="Event-loop lag, ms (99 %)" {...charts.lagMs} isEmpty={false} />
      </div>
    </>
  )
}

/** Links between the present and the past. */
const Views = ({ isHistory = false }: { isHistory?: boolean }) =>
  may('cdrs:read') ? (
    <p class="links">
      {isHistory ? (
        <a href={pathOf('now')}>What is wrong now</a>
      ) : (
        <a href={pathOf('now', undefined, { view: 'history' })}>History of findings</a>
      )}
    </p>
  ) : null

interface FiguresProps {
  /** Undefined while it is not known: the figures have their places all the same. */
  readonly telemetry: Telemetry | undefined
  readonly history: TelemetryHistory
  readonly charts: Charts
}

function Figures({ telemetry, history: { samples }, charts }: FiguresProps) {
  const nodes = telemetry?.nodes ?? []
  const inService = nodes.filter(({ state }) => state === 'active').length
  const spend = charts.spendPerMinute.values.at(-1)
  return (
    <Facts
      isBig
      of={{
        'Calls per second': figureText(telemetry?.calls.per_second),
        'Live calls': figureText(telemetry?.calls.active),
        'Answer-seizure ratio, 10 min': unitText(asrOf(samples), '%'),
        'Post-dial delay, 10 min': unitText(delayOf(samples), 'ms', 0),
        'Spend per minute': unitText(spend, charts.currency ?? '', 4),
        'Event-loop lag, 99 %': unitText(telemetry?.event_loop.lag_p99_ms, 'ms'),
        'PBX nodes in service':
          `${figureText(telemetry && inService)} of ` + figureText(telemetry && nodes.length),
        'Registered phones': figureText(telemetry?.registrations.extensions),
        'Webhooks waiting': figureText(telemetry?.outbox.webhook_deliveries),
        'Up for': uptimeText(telemetry?.uptime_seconds),
      }}
    />
  )
}

/** `9 min`, `1 h 5 min`, `3 d 2 h` */
function uptimeText(seconds: number | undefined): string {
  if (seconds === undefined) return absent
  const minutes = Math.floor(seconds / 60)
  const hours = Math.floor(minutes / 60)
  if (hours === 0) return `${minutes} min`
  return hours < 24
    ? `${hours} h ${minutes % 60} min`
    : `${Math.floor(hours / 24)} d ${hours % 24} h`
}

const INSTANCES_REFRESH_MS = 2_000

const tones = {
  starting: 'warn',
  serving: 'good',
  draining: 'warn',
  stopped: 'plain',
  lost: 'bad',
} as const

/** `90 s ahead of`, `2.5 s behind` */
const clockText = (seconds: number): string =>
  `${Math.abs(seconds)} s ${seconds > 0 ? 'ahead of' : 'behind'}`

const columns: readonly ShownColumn<ProcessNode>[] = [
  textColumn('node', 'Node', ({ name }) => name, {
    show: ({ name, is_this: isThis }) => (
      <>
        <Text value={name} max={80} /> {isThis && <small>this page comes from it</small>}
      </>
    ),
  }),
  textColumn('state', 'State', ({ state }) => state, {
    show: ({ state, differing_settings: settings, clock_difference_seconds: clock }) => (
      <>
        <Badge tone={tones[state]}>{state}</Badge>
        {clock !== 0 && <small> its clock is {clockText(clock)} the database server</small>}
        {settings.length > 0 && <small> differs in {settings.join(', ')}</small>}
      </>
    ),
  }),
  figureColumn('calls', 'Calls', (instance) => instance.live_calls),
  figureColumn('epoch', 'Starts', ({ epoch }) => epoch),
  momentColumn('heartbeat', 'Heard', (instance) => instance.heartbeat_at, { isToday: true }),
  textColumn('version', 'Version', ({ version }) => version, { isMinor: true, max: 40 }),
]

/** The processes that share the database, where there are several. */
function PlatformInstances() {
  const { data } = useView<readonly ProcessNode[]>('/nodes', { everyMs: INSTANCES_REFRESH_MS })
  const rows = data.value ?? []
  if (rows.length < 2) return null
  return (
    <section>
      <h2>Nodes of the platform</h2>
      <Table
        label="Nodes of the platform"
        rows={rows}
        columns={columns}
        keyOf={({ name }) => name}
        empty="There is no node."
      />
    </section>
  )
}
