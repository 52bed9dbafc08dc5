/** Calls that have ended: searched in the records of the server, and exported as they were searched. */
import { useSignal } from '@preact/signals'
import { getBare } from '../api/api.ts'
import type { CallRecord, CallReport } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { address, setQuery } from '../parts/router.ts'
import { now } from '../api/browser.ts'
import { figureColumn, textColumn } from '../parts/columns.tsx'
import { Choice, Field, onForm, textIn, withAll } from '../parts/form.tsx'
import { durationText, figureText, moneyText, type Tone } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Moment, Problem } from '../parts/text.tsx'
import {
  dispositions,
  PAGE_ROWS,
  pageNumber,
  pageOf,
  periods,
  reportQuery,
  searches,
} from './report-query.ts'

const tones: Readonly<Partial<Record<CallRecord['disposition'], Tone>>> = {
  ANSWERED: 'good',
  FAILED: 'bad',
}

const columns: readonly ShownColumn<CallRecord>[] = [
  textColumn('started', 'Started', (call) => call.start_stamp, {
    show: (call) => (
      <a href={pathOf('calls', call.call_uuid)}>
        <Moment at={call.start_stamp} />
      </a>
    ),
  }),
  textColumn('from', 'From', (call) => call.caller_id_number, { max: 40 }),
  textColumn('to', 'To', (call) => call.destination_number, { max: 40 }),
  textColumn('result', 'Result', (call) => `${call.disposition.toLowerCase()} ${call.sip_code}`, {
    tone: ({ disposition }) => tones[disposition] ?? 'plain',
  }),
  figureColumn('talk', 'Talk time', ({ billsec }) => billsec, {
    show: ({ billsec }) => durationText(billsec),
  }),
  figureColumn('cost', 'Cost', ({ cost }) => cost, {
    show: (call) => moneyText(call.cost_exact, call.currency),
  }),
  figureColumn('mos', 'MOS', (call) => call.mos_score, {
    isMinor: true,
    show: (call) => figureText(call.mos_score, 2),
  }),
  textColumn('cause', 'Reason', (call) => call.denial_code ?? call.hangup_cause, {
    isMinor: true,
  }),
]

export function HistoryScreen() {
  // The period ends when the screen opens, or is searched again: the export then has the rows that are shown.
  const openedAt = useSignal(now())
  const words = reportQuery(address.value.query, openedAt.value)
  const page = `limit=${PAGE_ROWS}&page=${pageNumber(address.value.query['page'])}`
  const path = `/reports/cdrs?${words}&order=newest&${page}`
  const report = useResource(path, () => getBare<CallReport>(path))
  const { data } = report
  return (
    <>
      <Filters onSearch={() => (openedAt.value = now())} />
      <Problem message={report.problem.value} />
      <p class="sums" role="status">
        {data.value !== undefined &&
          `${figureText(data.value.total_calls)} calls, ${durationText(data.value.total_billsec)} of talk`}
      </p>
      {data.value !== undefined && <Pages count={data.value.total_calls} />}
      <Table
        label="Recent calls"
        rows={data.value?.records}
        columns={columns}
        keyOf={(call) => call.call_uuid}
        empty="No call in this period."
        filters={
          <>
            <a href={`/api/v1/reports/cdrs?${words}&order=newest&format=csv`} download>
              Export CSV
            </a>
            <a href={`/api/v1/reports/cdrs?${words}&order=newest&format=ndjson`} download>
              NDJSON
            </a>
          </>
        }
      />
    </>
  )
}

/** Nothing, where one page has all. */
function Pages({ count }: { count: number }) {
  const { query } = address.value
  const { first, last, newer, older } = pageOf(query, count)
  if (newer === undefined && older === undefined) return null
  const link = (page: number, text: string) => (
    <a href={pathOf('history', undefined, { ...query, page: `${page}` })}>{text}</a>
  )
  return (
    <nav class="links" aria-label="Pages">
      {newer !== undefined && link(newer, '← Newer')}
      <span>
        {first > last ? 'No call' : `${figureText(first)} to ${figureText(last)}`} of{' '}
        {figureText(count)}, the newest first
      </span>
      {older !== undefined && link(older, 'Older →')}
    </nav>
  )
}

const results = Object.fromEntries(dispositions.map((each) => [each, each.toLowerCase()]))

function Filters({ onSearch }: { onSearch: () => void }) {
  const { query } = address.value
  const search = onForm((form) => {
    const names = ['days', 'disposition', 'by', 'for']
    onSearch()
    const asked = Object.fromEntries(names.map((name) => [name, textIn(form, name)]))
    setQuery({ ...asked, page: undefined })
  })
  return (
    <form class="tools" onSubmit={search} role="search">
      <Choice label="Period" name="days" value={query['days'] ?? '1'} options={periods} />
      <Choice
        label="Result"
        name="disposition"
        value={query['disposition'] ?? ''}
        options={withAll(results)}
      />
      <Choice label="Field" name="by" value={query['by'] ?? 'number'} options={searches} />
      <Field label="is" name="for" defaultValue={query['for'] ?? ''} maxLength={100} />
      <button class="primary">Search</button>
    </form>
  )
}
