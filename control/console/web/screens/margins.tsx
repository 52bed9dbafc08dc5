/** Margins by customer, carrier, destination or day; the greatest losses first. */
import { useSignal } from '@preact/signals'
import { now } from '../api/browser.ts'
import type { MarginReport } from '../api/views.ts'
import { figureColumn, moneyColumn, textColumn } from '../parts/columns.tsx'
import { Choice } from '../parts/form.tsx'
import { unitText } from '../parts/format.ts'
import { PageHead } from '../parts/page-head.tsx'
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
  moneyColumn('margin', 'Margin', ({ margin: amount, currency }) => ({ amount, currency })),
  figureColumn('percent', 'Of revenue', (row) => row.margin_percent, {
    show: (row) => unitText(row.margin_percent, '%'),
  }),
  figureColumn('losses', 'Below cost', ({ losses }) => losses),
  figureColumn('calls', 'Calls', ({ calls }) => calls),
  moneyColumn('revenue', 'Sold for', ({ revenue: amount, currency }) => ({ amount, currency })),
  moneyColumn(
    'cost',
    'Carriers take',
    ({ carrier_cost: cost, carrier_currency: currency }) => ({
      amount: currency === null ? null : cost,
      currency,
    }),
    { absent: () => 'not known' },
  ),
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
      <PageHead about="What calls were sold for, less what carriers take; the greatest loss first.">
        <a href={`/api/v1/reports/margins?${words}&format=csv`} download>
          CSV
        </a>
      </PageHead>
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
