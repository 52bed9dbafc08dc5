/** The latest calls of one thing, and the way to all of them. */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { getBare } from '../api/api.ts'
import { now } from '../api/browser.ts'
import { isGlobal, may } from '../api/session.ts'
import type { CallRecordView, CallReport } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { figureColumn, moneyColumn, textColumn } from '../parts/columns.tsx'
import { DAY_MS, durationText } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Moment, Problem, Text } from '../parts/text.tsx'
import { causeText, results } from './call-words.ts'
import { useCustomerNames } from './names.ts'

const SHOWN = 5
const DAYS = 7
const REFRESH_MS = 15_000

/** The search of the list of calls that finds those of one thing. */
export type CallsOfFilter = 'carrier' | 'node' | 'number' | 'customer_id'

const callsPath = (by: CallsOfFilter, text: string, tenant: string | undefined): string =>
  pathOf('history', undefined, { period: '7d', [by]: text, tenant })

const columnsFor = (
  customers: ReadonlyMap<number, string>,
): readonly ShownColumn<CallRecordView>[] => [
  textColumn('started', 'Started', ({ start_stamp: start }) => start, {
    show: (call) => (
      <a href={pathOf('calls', call.call_uuid)}>
        <Moment at={call.start_stamp} isShort />
      </a>
    ),
  }),
  textColumn('result', 'Result', ({ disposition }) => results[disposition].text, {
    tone: ({ disposition }) => results[disposition].tone,
    second: (call) => causeText(call) !== '' && <Text value={causeText(call)} max={80} />,
  }),
  textColumn('from', 'From', (call) => call.caller_id_number, { max: 40 }),
  textColumn('to', 'To', (call) => call.destination_number, {
    max: 40,
    second: ({ customer_id: id }) =>
      id !== null && <Text value={customers.get(id) ?? `customer ${id}`} max={60} />,
  }),
  figureColumn('talk', 'Talk', ({ billsec }) => billsec, {
    isMinor: true,
    show: ({ billsec }) => durationText(billsec),
  }),
  moneyColumn('cost', 'Cost', ({ cost_exact: amount, currency }) => ({ amount, currency }), {
    isMinor: true,
  }),
]

interface CallsOfProps {
  readonly by: CallsOfFilter
  readonly text: string
  /** The tenant of a thing whose number another tenant may have, too; absent: no other has it. */
  readonly tenant?: string
  /** Stands below: it is there when the calls are, so that nothing moves. */
  readonly children?: ComponentChildren
}

/** Only what stands below, where the user may not see calls. */
export const CallsOf = (props: CallsOfProps) =>
  may('cdrs:read') ? <Latest {...props} /> : <>{props.children}</>

function Latest({ by, text, tenant: given, children }: CallsOfProps) {
  const openedAt = useSignal(now())
  // Users of a tenant see the calls of that tenant alone.
  const tenant = isGlobal() ? given : undefined
  const customers = useCustomerNames()
  const load = () => {
    const words = new URLSearchParams({
      start_date: new Date(openedAt.value - DAYS * DAY_MS).toISOString(),
      end_date: new Date(now() + 1_000).toISOString(),
      [by]: text,
      ...(tenant !== undefined && { tenant }),
      order: 'newest',
      limit: `${SHOWN}`,
      page: '1',
    })
    return getBare<CallReport>(`/reports/cdrs?${words}`)
  }
  const { data, problem } = useResource(`calls of ${by} ${text}`, load, { everyMs: REFRESH_MS })
  return (
    <>
      <section>
        <div class="part-head">
          <h2>Latest calls</h2>
          <a href={callsPath(by, text, tenant)}>All its calls</a>
        </div>
        <Problem message={problem.value} />
        <Table
          label="Latest calls"
          rows={data.value?.records}
          columns={columnsFor(customers)}
          keyOf={(call) => call.call_uuid}
          empty={`No call in the last ${DAYS} days.`}
          isPart
        />
      </section>
      {(data.value !== undefined || problem.value !== undefined) && children}
    </>
  )
}
