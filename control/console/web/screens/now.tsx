/** How the platform is now, and how it was in the last ten minutes. */
import { get } from '../api/api.ts'
import type { Telemetry, TelemetryHistory } from '../api/views.ts'
import { Chart } from '../parts/chart.tsx'
import { durationText, figureText, unitText } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Badge, Fact, Problem } from '../parts/text.tsx'
import { alertsOf } from './alerts.ts'
import { PlatformNodes } from './platform-nodes.tsx'
import { asrOf, chartsOf, delayOf, type Charts } from './samples.ts'

/** The server takes a sample every five seconds. */
const REFRESH_MS = 5_000
const none: TelemetryHistory = { interval_seconds: 5, samples: [] }

export function NowScreen() {
  const telemetry = useResource('now', () => get<Telemetry>('/metrics/telemetry'), {
    everyMs: REFRESH_MS,
  })
  const history = useResource('history', () => get<TelemetryHistory>('/metrics/history'), {
    everyMs: REFRESH_MS,
  })
  const known = history.data.value ?? none
  const charts = chartsOf(known)
  const { currency = '' } = charts
  return (
    <>
      <Problem message={telemetry.problem.value ?? history.problem.value} />
      <Alerts telemetry={telemetry.data.value} />
      <Figures telemetry={telemetry.data.value} history={known} charts={charts} />
      <PlatformNodes />
      <div class="charts">
        <Chart title="Calls per second" series={charts.perSecond} />
        <Chart title="Live calls" series={charts.active} />
        <Chart title="Answer-seizure ratio, %" series={charts.asrPercent} highest={100} />
        <Chart title="Post-dial delay, ms" series={charts.postDialDelayMs} />
        <Chart title={`Spend per minute ${currency}`.trimEnd()} series={charts.spendPerMinute} />
        <Chart title="Event-loop lag, ms (99 %)" series={charts.lagMs} />
      </div>
    </>
  )
}

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
    <dl class="facts big">
      <Fact name="Calls per second">{figureText(telemetry?.calls.per_second)}</Fact>
      <Fact name="Live calls">{figureText(telemetry?.calls.active)}</Fact>
      <Fact name="Answer-seizure ratio, 10 min">{unitText(asrOf(samples), '%')}</Fact>
      <Fact name="Post-dial delay, 10 min">{unitText(delayOf(samples), 'ms', 0)}</Fact>
      <Fact name="Spend per minute">{unitText(spend, charts.currency ?? '', 4)}</Fact>
      <Fact name="Event-loop lag, 99 %">{unitText(telemetry?.event_loop.lag_p99_ms, 'ms')}</Fact>
      <Fact name="Nodes in service">
        {figureText(telemetry && inService)} of {figureText(telemetry && nodes.length)}
      </Fact>
      <Fact name="Registered phones">{figureText(telemetry?.registrations.extensions)}</Fact>
      <Fact name="Webhooks waiting">{figureText(telemetry?.outbox.webhook_deliveries)}</Fact>
      <Fact name="Up for">{durationText(telemetry?.uptime_seconds ?? 0)}</Fact>
    </dl>
  )
}

function Alerts({ telemetry }: { telemetry: Telemetry | undefined }) {
  const alerts = telemetry === undefined ? [] : alertsOf(telemetry)
  return (
    <div class="alerts" role="status">
      {alerts.map((text) => (
        <Badge key={text} tone="bad">
          {text}
        </Badge>
      ))}
      {alerts.length === 0 && (
        <Badge tone={telemetry === undefined ? 'plain' : 'good'}>
          {telemetry === undefined ? 'Loading …' : 'Nothing needs attention'}
        </Badge>
      )}
    </div>
  )
}
