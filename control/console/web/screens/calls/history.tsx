/** Calls that have ended: searched in the records of the server, and exported as they were searched. */
import { useSignal } from '@preact/signals'
import { getBare } from '../../api/api.ts'
import type { CallRecord, CallReport } from '../../api/api-types.ts'
import { pathOf } from '../../app/address.ts'
import { address, setQuery } from '../../app/router.ts'
import { now } from '../../browser.ts'
import { durationText, figureText, moneyText } from '../../parts/format.ts'
import { useResource } from '../../parts/resource.ts'
import { Table, type ShownColumn } from '../../parts/table.tsx'
import { Badge, Moment, Problem, Text } from '../../parts/text.tsx'
import { dispositions, periods, reportQuery, searches } from './report-query.ts'

/** The most that one page of the API has. */
const SHOWN = 200

const columns: readonly ShownColumn<CallRecord>[] = [
  {
    ...{ name: 'started', title: 'Started', value: (call) => call.start_stamp },
    show: (call) => (
      <a href={pathOf('calls', call.call_uuid)}>
        <Moment at={call.start_stamp} />
      </a>
    ),
  },
  {
    ...{ name: 'from', title: 'From', value: (call) => call.caller_id_number },
    show: (call) => <Text value={call.caller_id_number} max={40} />,
  },
  {
    ...{ name: 'to', title: 'To', value: (call) => call.destination_number },
    show: (call) => <Text value={call.destination_number} max={40} />,
  },
  {
    ...{ name: 'result', title: 'Result', value: (call) => `${call.disposition} ${call.sip_code}` },
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
    ...{ name: 'talk', title: 'Talk time', value: (call) => call.billsec },
    isFigure: true,
    show: (call) => durationText(call.billsec),
  },
  {
    ...{ name: 'cost', title: 'Cost', value: (call) => call.cost },
    isFigure: true,
    show: (call) => moneyText(call.cost_exact, call.currency),
  },
  {
    ...{ name: 'mos', title: 'MOS', value: (call) => call.mos_score },
    ...{ isFigure: true, isMinor: true },
    show: (call) => figureText(call.mos_score, 2),
  },
  {
    ...{ name: 'cause', title: 'Reason', value: (call) => call.denial_code ?? call.hangup_cause },
    isMinor: true,
    show: (call) => <Text value={call.denial_code ?? call.hangup_cause} max={60} />,
  },
]

export function HistoryScreen() {
  // The period ends when the screen opens, or is searched again: the export then has the rows that are shown.
  const openedAt = useSignal(now())
  const words = reportQuery(address.value.query, openedAt.value)
  const report = useResource(words, () =>
    getBare<CallReport>(`/reports/cdrs?${words}&order=newest&limit=${SHOWN}&page=1`),
  )
  const { data } = report
  return (
    <>
      <Filters onSearch={() => (openedAt.value = now())} />
      <Problem message={report.problem.value} />
      <p class="sums" role="status">
        {data.value !== undefined &&
          `${figureText(data.value.total_calls)} calls, ${durationText(data.value.total_billsec)} of talk` +
            (data.value.total_calls > SHOWN ? `; the newest ${SHOWN} are shown` : '')}
      </p>
      <Table
        label="Recent calls"
        rows={data.value?.records ?? []}
        columns={columns}
        keyOf={(call) => call.call_uuid}
        empty={data.value === undefined ? 'Loading …' : 'No call in this period.'}
        filters={
          <>
            <a href={`/api/v1/reports/cdrs?${words}&format=csv`} download>
              CSV
            </a>
            <a href={`/api/v1/reports/cdrs?${words}&format=ndjson`} download>
              NDJSON
            </a>
          </>
        }
      />
    </>
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
    setQuery(Object.fromEntries(names.map((name) => [name, textOf(form.get(name))])))
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
        <select name="by" value={query['by'] ?? 'called'}>
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

const textOf = (value: FormDataEntryValue | null): string =>
  typeof value === 'string' ? value.trim() : ''
