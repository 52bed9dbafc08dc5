/**
 * Calls that have ended: searched in the records of the server, and exported as they were searched.
 */
import { useSignal } from '@preact/signals'
import { getBare } from '../api/api.ts'
import type { CallRecordView, CallReport } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { address, setQuery } from '../parts/router.ts'
import { may } from '../api/session.ts'
import { now } from '../api/browser.ts'
import { figureColumn, textColumn } from '../parts/columns.tsx'
import { Choice, Field, onForm, textIn, withAll } from '../parts/form.tsx'
import { durationText, figureText, moneyText, plural } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Moment, Problem, Short } from '../parts/text.tsx'
import { causeText, results } from './call-words.ts'
import { nameOfNode, useCustomerNames, useNodeNames, type NodeName } from './names.ts'
import {
  dispositions,
  PAGE_ROWS,
  pageNumber,
  pageOf,
  periods,
  reportQuery,
  searches,
} from './report-query.ts'

interface Names {
  readonly customers: ReadonlyMap<number, string>
  readonly nodes: ReadonlyMap<string, NodeName>
}

const customerOf = ({ customer_id: id }: CallRecordView, { customers }: Names): string | null =>
  id === null ? null : (customers.get(id) ?? `customer ${id}`)

/** The carrier that took it, or that was tried last; else the node. */
function throughOf({ carrier, node }: CallRecordView, { nodes }: Names): NodeName | undefined {
  if (carrier !== null) return { name: carrier, full: `carrier ${carrier}` }
  return node === null ? undefined : nameOfNode(nodes, node)
}

interface Shown {
  readonly names: Names
  /** The period is that of today: its times need no date. */
  readonly isToday: boolean
  readonly hasMos: boolean
}

const columnsFor = ({ names, isToday, hasMos }: Shown): readonly ShownColumn<CallRecordView>[] => [
  textColumn('started', 'Started', (call) => call.start_stamp, {
    show: (call) => (
      <a href={pathOf('calls', call.call_uuid)}>
        <Moment at={call.start_stamp} isToday={isToday} isShort />
      </a>
    ),
  }),
  textColumn('result', 'Result', (call) => results[call.disposition].text, {
    tone: ({ disposition }) => results[disposition].tone,
  }),
  textColumn('from', 'From', (call) => call.caller_id_number, {
    show: (call) => <Short value={call.caller_id_number} />,
  }),
  textColumn('to', 'To', (call) => call.destination_number, {
    show: (call) => <Short value={call.destination_number} />,
  }),
  textColumn('customer', 'Customer', (call) => customerOf(call, names), {
    isMinor: true,
    show: (call) =>
      call.customer_id !== null && may('customers:read') ? (
        <a href={pathOf('customers', `${call.customer_id}`)}>
          <Short value={customerOf(call, names)} />
        </a>
      ) : (
        <Short value={customerOf(call, names)} />
      ),
  }),
  textColumn('through', 'Through', (call) => throughOf(call, names)?.name ?? null, {
    isMinor: true,
    show: (call) => {
      const through = throughOf(call, names)
      return <Short value={through?.name} title={through?.full} />
    },
  }),
  figureColumn('talk', 'Talk', ({ billsec }) => billsec, {
    isMinor: true,
    show: ({ billsec }) => durationText(billsec),
  }),
  figureColumn('cost', 'Cost', ({ cost }) => cost, {
    show: (call) => moneyText(call.cost_exact, call.currency),
  }),
  ...(hasMos
    ? [
        figureColumn<CallRecordView>('mos', 'MOS', (call) => call.mos_score, {
          isMinor: true,
          show: (call) => figureText(call.mos_score, 2),
        }),
      ]
    : []),
  textColumn('cause', 'Why', (call) => causeText(call), {
    isMinor: true,
    show: (call) => <Short value={causeText(call)} title={call.denial_text ?? causeText(call)} />,
  }),
]

export function HistoryScreen() {
  // The period ends when the screen opens, or is searched again: the export then has the rows that
  // are shown.
  const openedAt = useSignal(now())
  const words = reportQuery(address.value.query, openedAt.value)
  const page = `limit=${PAGE_ROWS}&page=${pageNumber(address.value.query['page'])}`
  const path = `/reports/cdrs?${words}&order=newest&${page}`
  const report = useResource(path, () => getBare<CallReport>(path))
  const { data } = report
  const names = { customers: useCustomerNames(), nodes: useNodeNames() }
  const hasMos = data.value?.records.some((call) => call.mos_score !== null) === true
  return (
    <>
      <Filters onSearch={() => (openedAt.value = now())} />
      <Problem message={report.problem.value} />
      <p class="sums" role="status">
        {data.value !== undefined &&
          `${plural(data.value.total_calls, 'call')}, ${durationText(data.value.total_billsec)} ` +
            'of talk'}
      </p>
      {data.value !== undefined && <Pages count={data.value.total_calls} />}
      <Table
        label="Recent calls"
        rows={data.value?.records}
        columns={columnsFor({
          names,
          hasMos,
          isToday: (address.value.query['days'] ?? '1') === '1',
        })}
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

const dispositionWords = Object.fromEntries(dispositions.map((each) => [each, each.toLowerCase()]))

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
        options={withAll(dispositionWords)}
      />
      <Choice label="Field" name="by" value={query['by'] ?? 'number'} options={searches} />
      <Field label="is" name="for" defaultValue={query['for'] ?? ''} maxLength={100} />
      <button class="primary">Search</button>
    </form>
  )
}
