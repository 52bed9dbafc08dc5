/**
 * Charts of the last day or week by hour, and what calls came to by carrier, customer, node or
 * destination.
 */
import { useSignal } from '@preact/signals'
import { now } from '../api/browser.ts'
import { may } from '../api/session.ts'
import type { CallSummary } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { Chart } from '../parts/chart.tsx'
import { figureColumn, textColumn } from '../parts/columns.tsx'
import { Choice } from '../parts/form.tsx'
import {
  HOUR_MS,
  durationText,
  figureText,
  plural,
  shortAddress,
  unitText,
} from '../parts/format.ts'
import { useView } from '../parts/resource.ts'
import { address, setQuery } from '../parts/router.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Facts, Problem, Short } from '../parts/text.tsx'
import { chosenZone, viewerZone, ZoneChoice } from '../parts/zone-choice.tsx'
import { hourEnd, hourly, meanSeconds } from './hourly.ts'
import { nameOfNode, useNodeNames } from './names.ts'

const REFRESH_MS = 60_000

/** Lengths of the periods in hours. */
const periods = { '24': 'Last 24 hours', '168': 'Last 7 days' } as const
const groupings = {
  carrier: 'Carrier',
  customer: 'Customer',
  node: 'PBX node',
  callee_prefix: 'First digits of the called number',
} as const

type Group = CallSummary['groups'][number]

export function ChartsScreen() {
  const { query } = address.value
  const hours = query['hours'] === '168' ? 168 : 24
  const by = query['by'] !== undefined && query['by'] in groupings ? query['by'] : 'carrier'
  const openedAt = useSignal(now())
  const zone = chosenZone() ?? viewerZone()
  const before = hourEnd(openedAt.value, zone)
  const period = new URLSearchParams({
    start_date: new Date(before - hours * HOUR_MS).toISOString(),
    end_date: new Date(before).toISOString(),
    time_zone: zone,
  })
  const options = { everyMs: REFRESH_MS }
  const sums = useView<CallSummary>(`/reports/calls?${period}&group_by=hour&limit=200`, options)
  return (
    <>
      <p class="tools">
        <Choice
          label="Period"
          name="hours"
          value={String(hours)}
          options={periods}
          onChange={(value) => setQuery({ hours: value })}
        />
        <ZoneChoice />
      </p>
      <Problem message={sums.problem.value} />
      <Hours summary={sums.data.value} before={before} hours={hours} zone={zone} />
      <Groups path={`/reports/calls?${period}&group_by=${by}&limit=200`} by={by} hours={hours} />
    </>
  )
}

interface HoursProps {
  readonly summary: CallSummary | undefined
  readonly before: number
  readonly hours: number
  /** IANA name. */
  readonly zone: string
}

function Hours({ summary, before, hours, zone }: HoursProps) {
  const { currency = '', ...series } = hourly(summary, before, hours)
  const totals = summary?.totals
  const asr = unitText(totals?.asr_percent, '%')
  const seconds = totals === undefined ? null : meanSeconds(totals)
  const mean = seconds === null ? figureText(null) : durationText(seconds)
  return (
    <>
      <Facts
        isBig
        of={{
          Calls: figureText(totals?.calls),
          Answered: figureText(totals?.answered),
          'Answer-seizure ratio': asr,
          'Average duration': mean,
          Cost: costText(totals?.cost ?? {}),
          'Refused by the platform': figureText(totals?.denied),
        }}
      />
      {summary?.complete === false && (
        <p class="notice">There are too many calls for one answer: what is older is not shown.</p>
      )}
      <div class="charts halves">
        <Chart
          title="Calls per hour"
          {...series.calls}
          hours={hours}
          zone={zone}
          isEmpty={totals?.calls === 0}
          total={figureText(totals?.calls)}
        />
        <Chart
          title="Answer-seizure ratio, %"
          {...series.asr}
          highest={100}
          hours={hours}
          zone={zone}
          isEmpty={totals?.calls === 0}
          total={asr}
        />
        <Chart
          title={currency === '' ? 'Cost per hour' : `Cost per hour, ${currency}`}
          {...series.cost}
          hours={hours}
          zone={zone}
          isEmpty={totals?.calls === 0}
          total={totals?.cost[currency] ?? figureText(null)}
        />
        <Chart
          title="Average duration, s"
          {...series.seconds}
          hours={hours}
          zone={zone}
          isEmpty={totals?.calls === 0}
          total={mean}
        />
      </div>
    </>
  )
}

/** Each currency apart. */
const costText = (cost: Readonly<Record<string, string>>): string => {
  const amounts = Object.entries(cost).map(([currency, amount]) => `${amount} ${currency}`)
  return amounts.length === 0 ? figureText(null) : amounts.join(', ')
}

const columns: readonly ShownColumn<Group>[] = [
  figureColumn('calls', 'Calls', ({ calls }) => calls),
  figureColumn('answered', 'Answered', ({ answered }) => answered, { isMinor: true }),
  figureColumn('asr', 'ASR', (group) => group.asr_percent, {
    show: (group) => unitText(group.asr_percent, '%'),
  }),
  figureColumn('mean', 'Average', meanSeconds, {
    isMinor: true,
    show: (group) => durationOf(meanSeconds(group)),
  }),
  figureColumn('pdd', 'Post-dial delay', (group) => group.mean_pdd_ms, {
    isMinor: true,
    show: (group) => unitText(group.mean_pdd_ms, 'ms', 0),
  }),
  figureColumn('cost', 'Cost', ({ cost }) => Number(Object.values(cost)[0] ?? 0), {
    show: ({ cost }) => costText(cost),
  }),
]

const durationOf = (seconds: number | null): string =>
  seconds === null ? figureText(null) : durationText(seconds)

interface GroupsProps {
  readonly path: string
  readonly by: string
  readonly hours: number
}

function Groups({ path, by, hours }: GroupsProps) {
  const { data, problem } = useView<CallSummary>(path, { everyMs: REFRESH_MS })
  const nodes = useNodeNames()
  const nameOf = ({ group, name }: Group): string => {
    if (group === null) return 'none'
    if (by === 'node') return nameOfNode(nodes, group).full
    return name ?? group
  }
  const title = groupings[by as keyof typeof groupings]
  const named = textColumn<Group>('name', title, nameOf, {
    show: (group) => {
      const text = <Short value={nameOf(group)} />
      const to = group.group === null ? undefined : callsOf(by, group.group, hours)
      return to !== undefined && may('cdrs:read') ? <a href={to}>{text}</a> : text
    },
  })
  return (
    <section aria-labelledby="groups">
      <h2 id="groups">By {title.charAt(0).toLowerCase() === 'p' ? title : title.toLowerCase()}</h2>
      <Problem message={problem.value} />
      <Table
        label="Sums"
        rows={data.value?.groups}
        columns={[named, ...columns]}
        keyOf={({ group }) => group ?? ''}
        empty="No call in this period."
        filters={
          <>
            <Choice
              label="By"
              name="by"
              value={by}
              options={groupings}
              onChange={(value) => setQuery({ by: value })}
            />
            {data.value !== undefined && data.value.totals.groups > data.value.groups.length && (
              <span>the largest of {plural(data.value.totals.groups, 'group')}</span>
            )}
          </>
        }
      />
    </section>
  )
}

/** The calls of a group. */
function callsOf(by: string, group: string, hours: number): string | undefined {
  const days = hours > 24 ? '7' : '1'
  const search = { carrier: 'carrier', customer: 'customer_id', node: 'node' }[by]
  if (by === 'callee_prefix') return pathOf('history', undefined, { days, called: `${group}*` })
  if (search === undefined) return undefined
  return pathOf('history', undefined, {
    days,
    by: search,
    for: by === 'node' ? shortAddress(group) : group,
  })
}
