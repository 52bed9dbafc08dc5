/** The calls of one thing in the last day: their figures, and charts by the hour. */
import { useSignal } from '@preact/signals'
import { now } from '../api/browser.ts'
import { may } from '../api/session.ts'
import type { CallSummary, MarginReport } from '../api/views.ts'
import { Chart } from '../parts/chart.tsx'
import {
  absent,
  DAY_MS,
  durationText,
  figureText,
  HOUR_MS,
  moneyText,
  unitText,
} from '../parts/format.ts'
import { useView } from '../parts/resource.ts'
import { Facts, Problem } from '../parts/text.tsx'
import { hourly, meanSeconds } from './hourly.ts'

const REFRESH_MS = 60_000
const HOURS = 24

interface DayFiguresProps {
  /** Filters of `GET /reports/calls`. */
  readonly of: Readonly<Record<string, string>>
  /** The group of `GET /reports/margins` that it is. */
  readonly margin?: { readonly by: 'carrier' | 'customer'; readonly group: string }
}

/** Nothing, where the user may not see calls. */
export const DayFigures = (props: DayFiguresProps) =>
  may('cdrs:read') ? <Figures {...props} /> : null

function Figures({ of, margin }: DayFiguresProps) {
  const openedAt = useSignal(now())
  const before = Math.floor(openedAt.value / HOUR_MS) * HOUR_MS + HOUR_MS
  const words = new URLSearchParams({
    ...of,
    start_date: new Date(before - HOURS * HOUR_MS).toISOString(),
    end_date: new Date(before).toISOString(),
    group_by: 'hour',
    limit: '200',
  })
  const { data, problem } = useView<CallSummary>(`/reports/calls?${words}`, {
    everyMs: REFRESH_MS,
  })
  const { totals } = data.value ?? {}
  const { calls, asr } = hourly(data.value, before, HOURS)
  const seconds = totals === undefined ? null : meanSeconds(totals)
  return (
    <section>
      <h2>The last 24 hours</h2>
      <Problem message={problem.value} />
      <Facts
        isBig
        of={{
          Calls: figureText(totals?.calls),
          Answered: figureText(totals?.answered),
          ASR: unitText(totals?.asr_percent, '%'),
          ACD: seconds === null ? absent : durationText(seconds),
          Spend: spendText(totals?.cost ?? {}),
          'Refused here': figureText(totals?.denied),
          ...(margin !== undefined && { 'Margin today': <Margin {...margin} /> }),
        }}
      />
      <div class="charts">
        <Chart
          title="Calls per hour"
          {...calls}
          hours={HOURS}
          total={figureText(totals?.calls)}
          isEmpty={totals?.calls === 0}
        />
        <Chart
          title="Answer-seizure ratio, %"
          {...asr}
          highest={100}
          hours={HOURS}
          total={unitText(totals?.asr_percent, '%')}
          isEmpty={totals?.calls === 0}
        />
      </div>
    </section>
  )
}

/** Each currency apart. */
const spendText = (cost: Readonly<Record<string, string>>): string =>
  Object.entries(cost)
    .map(([currency, amount]) => moneyText(amount, currency))
    .join(', ') || absent

/** The margin is known where its carrier, or those of its calls, have prices. */
function Margin({ by, group }: NonNullable<DayFiguresProps['margin']>) {
  const day = Math.floor(now() / DAY_MS) * DAY_MS
  const words = new URLSearchParams({
    start_date: new Date(day).toISOString(),
    end_date: new Date(day + DAY_MS).toISOString(),
    group_by: by,
    limit: '200',
  })
  const { data } = useView<MarginReport>(`/reports/margins?${words}`, { everyMs: REFRESH_MS })
  const found = data.value?.groups.filter((each) => each.group === group && each.margin !== null)
  return (
    <>
      {found
        ?.map(({ margin, currency }) => moneyText(margin?.replace('-', '−') ?? null, currency))
        .join(', ') || absent}
    </>
  )
}
