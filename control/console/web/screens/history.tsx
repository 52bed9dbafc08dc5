/** Calls that have ended: searched in the records of the server, and exported as they were searched. */
import { useSignal } from '@preact/signals'
import { getBare } from '../api/api.ts'
import type { CallRecord, CallReport } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { address, setQuery } from '../parts/router.ts'
import { now } from '../browser.ts'
import { textIn } from '../parts/form.ts'
import { durationText, figureText, moneyText } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Badge, Moment, Problem, Text } from '../parts/text.tsx'
import {
  dispositions,
  PAGE_ROWS,
  pageNumber,
  pageOf,
  periods,
  reportQuery,
  searches,
} from './report-query.ts'

const columns: readonly ShownColumn<CallRecord>[] = [
  {
    name: 'started',
    title: 'Started',
    value: (call) => call.start_stamp,
    show: (call) => (
      <a href={pathOf('calls', call.call_uuid)}>
        <Moment at={call.start_stamp} />
      </a>
    ),
  },
  {
    name: 'from',
    title: 'From',
    value: (call) => call.caller_id_number,
    show: (call) => <Text value={call.caller_id_number} max={40} />,
  },
  {
    name: 'to',
    title: 'To',
    value: (call) => call.destination_number,
    show: (call) => <Text value={call.destination_number} max={40} />,
  },
  {
    name: 'result',
    title: 'Result',
    value: (call) => `${call.disposition} ${call.sip_code}`,
    show: (call) => (
      <Badge
        tone={
          call.disposition === 'ANSWERED' ? 'good' : call.disposition === 'FAILED' ? 'bad' : 'plain'
        }
      >
        {call.disposition.toLowerCase()} {call.sip_code}
      </Badge>
    ),
  },
  {
    name: 'talk',
    title: 'Talk time',
    value: (call) => call.billsec,
    isFigure: true,
    show: (call) => durationText(call.billsec),
  },
  {
    name: 'cost',
    title: 'Cost',
    value: (call) => call.cost,
    isFigure: true,
    show: (call) => moneyText(call.cost_exact, call.currency),
  },
  {
    name: 'mos',
    title: 'MOS',
    value: (call) => call.mos_score,
    isFigure: true,
    isMinor: true,
    show: (call) => figureText(call.mos_score, 2),
  },
  {
    name: 'cause',
    title: 'Reason',
    value: (call) => call.denial_code ?? call.hangup_cause,
    isMinor: true,
    show: (call) => <Text value={call.denial_code ?? call.hangup_cause} max={60} />,
  },
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
        rows={data.value?.records ?? []}
        columns={columns}
        keyOf={(call) => call.call_uuid}
        empty={data.value === undefined ? 'Loading …' : 'No call in this period.'}
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

function Filters({ onSearch }: { onSearch: () => void }) {
  const { query } = address.value
  const search = (event: SubmitEvent): void => {
    event.preventDefault()
    if (!(event.currentTarget instanceof HTMLFormElement)) return
    const form = new FormData(event.currentTarget)
    const names = ['days', 'disposition', 'by', 'for']
    onSearch()
    const asked = Object.fromEntries(names.map((name) => [name, textIn(form, name)]))
    setQuery({ ...asked, page: undefined })
  }
  return (
    <form class="tools" onSubmit={search} role="search">
      <label>
        Period{' '}
        <select name="days" value={query['days'] ?? '1'}>
          {Object.entries(periods).map(([days, text]) => (
            <option key={days} value={days}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <label>
        Result{' '}
        <select name="disposition" value={query['disposition'] ?? ''}>
          <option value="">all</option>
          {dispositions.map((each) => (
            <option key={each} value={each}>
              {each.toLowerCase()}
            </option>
          ))}
        </select>
      </label>
      <label>
        Field{' '}
        <select name="by" value={query['by'] ?? 'number'}>
          {Object.entries(searches).map(([name, text]) => (
            <option key={name} value={name}>
              {text}
            </option>
          ))}
        </select>
      </label>
      <label>
        is <input name="for" defaultValue={query['for'] ?? ''} maxLength={100} />
      </label>
      <button class="primary">Search</button>
    </form>
  )
}
