/** Margins by customer, carrier, destination or day; the greatest losses first. */
import { useSignal } from '@preact/signals'
import { now } from '../api/browser.ts'
import type { MarginReport } from '../api/views.ts'
import { figureColumn, textColumn } from '../parts/columns.tsx'
import { Choice } from '../parts/form.tsx'
import { moneyText, unitText } from '../parts/format.ts'
import { useView } from '../parts/resource.ts'
import { address, setQuery } from '../parts/router.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Problem } from '../parts/text.tsx'
import { ZoneChoice, zoneWords } from '../parts/zone-choice.tsx'

const DAY_MS = 86_400_000
const periods = { '1': 'Today', '7': 'Last 7 days', '31': 'Last 31 days' } as const
const groupings = {
  carrier: 'Carrier',
  customer: 'Customer',
  destination: 'First digits of the called number',
  day: 'Day',
} as const

type Group = MarginReport['groups'][number]

const columnsOf = (by: keyof typeof groupings): readonly ShownColumn<Group>[] => [
  textColumn('group', groupings[by], ({ group, name }) => name ?? group ?? 'none'),
  figureColumn('margin', 'Margin', ({ margin }) => (margin === null ? null : Number(margin)), {
    show: ({ margin, currency }) => moneyText(margin, currency),
  }),
  figureColumn('percent', 'Of revenue', (row) => row.margin_percent, {
    show: (row) => unitText(row.margin_percent, '%'),
  }),
  figureColumn('losses', 'Below cost', ({ losses }) => losses),
  figureColumn('calls', 'Calls', ({ calls }) => calls),
  figureColumn('revenue', 'Sold for', ({ revenue }) => Number(revenue), {
    show: ({ revenue, currency }) => moneyText(revenue, currency),
  }),
  figureColumn('cost', 'Carriers take', (row) => Number(row.carrier_cost), {
    show: (row) =>
      row.carrier_currency === null
        ? 'not known'
        : moneyText(row.carrier_cost, row.carrier_currency),
  }),
]

const isGrouping = (text: string | undefined): text is keyof typeof groupings =>
  text !== undefined && text in groupings

export function MarginsScreen() {
  const { query } = address.value
  const days = query['days'] !== undefined && query['days'] in periods ? query['days'] : '7'
  const by = isGrouping(query['by']) ? query['by'] : 'carrier'
  const openedAt = useSignal(now())
  // The report has whole days of its zone: those of the first and of the last moment, too.
  const words = new URLSearchParams({
    start_date: new Date(openedAt.value - (Number(days) - 1) * DAY_MS).toISOString(),
    end_date: new Date(openedAt.value + 1).toISOString(),
    group_by: by,
    ...zoneWords(),
  })
  const { data, problem } = useView<MarginReport>(`/reports/margins?${words}&limit=200`)
  return (
    <>
      <p class="tools">
        <Choice
          label="Period"
          name="days"
          value={days}
          options={periods}
          onChange={(value) => setQuery({ days: value })}
        />
        <Choice
          label="By"
          name="by"
          value={by}
          options={groupings}
          onChange={(value) => setQuery({ by: value })}
        />
        <ZoneChoice own="As set" />
        <a href={`/api/v1/reports/margins?${words}&format=csv`} download>
          CSV
        </a>
        {data.value !== undefined && <span>Days are those of {data.value.time_zone}.</span>}
      </p>
      <Problem message={problem.value} />
      <Table<Group>
        label="Margins"
        rows={data.value?.groups}
        columns={columnsOf(by)}
        keyOf={({ group, currency, carrier_currency: other }) => `${group} ${currency} ${other}`}
        empty="No call of this period was answered by a carrier."
      />
    </>
  )
}
