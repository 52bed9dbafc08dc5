/** How the platform is now, and how it was in the last ten minutes. */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { get } from '../api/api.ts'
import type { Telemetry } from '../api/api-types.ts'
import { Chart, type Series } from '../parts/chart.tsx'
import { durationText, figureText, unitText } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Badge, Fact, Problem } from '../parts/text.tsx'
import { alertsOf } from './alerts.ts'
import { figuresBetween, withSample, type Sample } from './samples.ts'

const REFRESH_MS = 2_000

/** Kept while the console is open, so that the charts are there when the screen is opened again. */
const samples = signal<readonly Sample[]>([])

export function NowScreen() {
  const telemetry = useResource('now', () => get<Telemetry>('/metrics/telemetry'), {
    everyMs: REFRESH_MS,
  })
  const present = telemetry.data.value
  useEffect(() => {
    if (present !== undefined) samples.value = withSample(samples.peek(), present)
  }, [present])
  return (
    <>
      <Problem message={telemetry.problem.value} />
      {present !== undefined && <Figures telemetry={present} />}
      <div class="charts">
        <SampleChart title="Live calls" pick={(sample) => sample.calls} />
        <SampleChart title="Calls per second" pick={(sample) => sample.perSecond} />
        <SampleChart title="Spend per minute" pick={(sample) => sample.spendPerMinute} />
        <SampleChart title="Event-loop lag, ms (99 %)" pick={(sample) => sample.lagMs} />
      </div>
    </>
  )
}

function SampleChart({ title, pick }: { title: string; pick: (sample: Sample) => number | null }) {
  const series: Series = {
    times: samples.value.map(({ at }) => at / 1_000),
    values: samples.value.map(pick),
  }
  return <Chart title={title} series={series} />
}

function Figures({ telemetry }: { telemetry: Telemetry }) {
  const { calls, event_loop: loop, nodes, outbox } = telemetry
  const last = samples.value.at(-1)
  const recent = figuresBetween(samples.value)
  const out = nodes.filter(({ state }) => state !== 'active').length
  return (
    <>
      <Alerts telemetry={telemetry} />
      <dl class="facts big">
        <Fact name="Live calls">{figureText(calls.active)}</Fact>
        <Fact name="Calls per second">{figureText(calls.per_second)}</Fact>
        <Fact name="Answer-seizure ratio, 10 min">{unitText(recent.asrPercent, '%')}</Fact>
        <Fact name="Post-dial delay, 10 min">{unitText(recent.postDialDelayMs, 'ms', 0)}</Fact>
        <Fact name="Spend per minute">{figureText(last?.spendPerMinute, 4)}</Fact>
        <Fact name="Event-loop lag, 99 %">{unitText(loop.lag_p99_ms, 'ms')}</Fact>
        <Fact name="Nodes in service">
          {figureText(nodes.length - out)} of {figureText(nodes.length)}
        </Fact>
        <Fact name="Registered phones">{figureText(telemetry.registrations.extensions)}</Fact>
        <Fact name="Webhooks waiting">{figureText(outbox.webhook_deliveries)}</Fact>
        <Fact name="Up for">{durationText(telemetry.uptime_seconds)}</Fact>
      </dl>
    </>
  )
}

function Alerts({ telemetry }: { telemetry: Telemetry }) {
  const alerts = alertsOf(telemetry)
  return (
    <div class="alerts" role="status">
      {alerts.length === 0 ? (
        <Badge tone="good">Nothing needs attention</Badge>
      ) : (
        alerts.map((text) => (
          <Badge key={text} tone="bad">
            {text}
          </Badge>
        ))
      )}
    </div>
  )
}
