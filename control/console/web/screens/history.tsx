/**
 * Calls that have ended: filtered, ordered and added up by the server, page after page; exported as
 * they are shown.
 */
import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { get } from '../api/api.ts'
import { now } from '../api/browser.ts'
import { may } from '../api/session.ts'
import type { CallReport, MatchedCalls, Customer } from '../api/views.ts'
import { ColumnsChoice, chosenColumns } from '../parts/columns-choice.tsx'
import { Chips } from '../parts/chips.tsx'
import { durationText, figureText, plural, unitText } from '../parts/format.ts'
import { PeriodChoice, zoneOf } from '../parts/period-choice.tsx'
import { readPeriod, type ShownPeriod } from '../parts/period.ts'
import { Popover } from '../parts/popover.tsx'
import { useResource } from '../parts/resource.ts'
import { address, setQuery } from '../parts/router.ts'
import { Table, type ServerOrder } from '../parts/table.tsx'
import { readTableState } from '../parts/table-state.ts'
import { Problem } from '../parts/text.tsx'
import { columnsFor, orders, usualColumns } from './call-columns.tsx'
import { FilterForm } from './call-filter-form.tsx'
import {
  activeFilters,
  filterWords,
  namesOf,
  oldWords,
  wantedText,
  withoutOldWords,
} from './call-filters.ts'
import { useCallNames, type CallNames } from './call-names.ts'
import { CallTabs } from './call-tabs.tsx'
import { hangupText } from './call-words.ts'
import { denialPhrase } from './denial-words.ts'
import { MAX_ROWS, searchWords, useCallTail, useEndedCalls } from './ended-calls.ts'
import { SavedViews } from './saved-views.tsx'

/** Periods that go on: calls that end now are in them. */
const ongoing: ReadonlySet<string> = new Set(['1h', '24h', 'today', '7d', '30d', 'month'])

export function HistoryScreen() {
  // The period ends when the screen opens, or is searched again: further pages and the export then
  // have the rows that are counted.
  const openedAt = useSignal(now())
  const renew = () => (openedAt.value = now())
  const query = withoutOldWords(address.value.query)
  const names = useCallNames()
  const customerZone = useCustomerZone(query['customer_id'])
  const zone = zoneOf(query, customerZone)
  const period = readPeriod(query, zone, openedAt.value)
  const filters = filterWords(query)
  const order = orderOf(query)
  const search = { ...period, filters, sort: `${order.isDescending ? '-' : ''}${order.sortBy}` }
  const list = useEndedCalls(search)
  const isTailed = query['tail'] === '1' && ongoing.has(period.name)
  const tail = useCallTail(filters, period.from, isTailed)
  const fresh = useMemo(() => new Set(tail.rows.map((each) => each.call_uuid)), [tail.rows])
  const rows = useMemo(
    () => list.rows && [...tail.rows, ...list.rows.filter((each) => !fresh.has(each.call_uuid))],
    [list.rows, tail.rows],
  )
  const all = columnsFor({ names, zone, rows: rows ?? [], fresh })
  const chosen = chosenColumns('calls', usualColumns)
  const columns = all.filter(({ name }) => chosen.has(name))
  return (
    <>
      <CallTabs current="history" />
      <Filters names={names} onChange={renew}>
        <PeriodChoice period={period} zone={zone} customerZone={customerZone} onChange={renew} />
      </Filters>
      <Problem message={list.problem} />
      <Totals report={list.report} />
      <Table
        label="Ended calls"
        isTall
        rows={rows}
        columns={columns}
        keyOf={(call) => call.call_uuid}
        empty="No call in this period."
        order={{ ...order, count: countOf(rows?.length ?? 0, list.report?.totals) }}
        filters={
          <>
            <SavedViews columns={columns.map(({ name }) => name)} />
            <ColumnsChoice table="calls" columns={all} usual={usualColumns} />
            <TailButton isOn={isTailed} period={period} news={tail.rows.length} />
            <button type="button" onClick={renew}>
              Refresh
            </button>
            <Export words={searchWords(search)} isNewestFirst={search.sort !== 'start'} />
          </>
        }
      />
      {tail.missed > 0 && (
        <p class="notice" role="status">
          {plural(tail.missed, 'more call')} ended than can be looked at one by one: refresh the
          list to see them.
        </p>
      )}
      <More onMore={list.loadMore} isFull={list.isFull} />
    </>
  )
}

function countOf(rows: number, totals: MatchedCalls | undefined): string {
  return totals === undefined || totals.calls <= rows
    ? figureText(rows)
    : `${figureText(rows)} of ${figureText(totals.calls)}`
}

/** The zone of the only customer whose calls are shown, where it has one. */
function useCustomerZone(id: string | undefined): string | undefined {
  const isOne = id !== undefined && /^[1-9]\d{0,14}$/.test(id) && may('customers:read')
  const key = isOne ? `/customers/${id}` : ''
  const { data } = useResource<Zoned | undefined>(key, async () =>
    isOne ? get<Zoned>(key) : { kind: 'ok', data: undefined, meta: undefined },
  )
  return data.value?.time_zone ?? undefined
}

type Zoned = Customer & { readonly time_zone?: string | null }

/** The order of an address; unless it says one, the newest come first. */
function orderOf(query: Readonly<Record<string, string>>): Omit<ServerOrder, 'count'> {
  const { sortBy, isDescending } = readTableState(query)
  const order =
    sortBy !== undefined && orders.has(sortBy)
      ? { sortBy, isDescending }
      : { sortBy: 'start', isDescending: true }
  return {
    ...order,
    names: orders,
    // The greatest first: these are looked for.
    onSort: (name) => {
      const isSame = name === order.sortBy
      setQuery({ sort: isSame && order.isDescending ? name : `-${name}` })
    },
  }
}

interface FiltersProps {
  readonly names: CallNames
  readonly onChange: () => void
  readonly children: preact.ComponentChildren
}

/** The filters as chips; each is changed in its place. */
function Filters({ names, onChange, children }: FiltersProps) {
  const query = withoutOldWords(address.value.query)
  const active = activeFilters(query)
  const change = (changes: Readonly<Record<string, string | undefined>>): void => {
    onChange()
    setQuery({ ...oldWords, ...query, ...changes })
  }
  const without = (filters: readonly (typeof active)[number][]) =>
    Object.fromEntries(
      filters.flatMap(({ filter }) => namesOf(filter).map((name) => [name, undefined] as const)),
    )
  const of = (name: string) => active.find(({ filter }) => filter.name === name)
  return (
    <Chips
      before={
        <>
          {children}
          <Popover text="+ Filter" title="Add a filter" label="Add a filter">
            {(close) => (
              <FilterForm
                names={names}
                onApply={(changes) => {
                  close()
                  change(changes)
                }}
              />
            )}
          </Popover>
        </>
      }
      chips={active.map((each) => ({
        name: each.filter.name,
        label: each.filter.label,
        text: wantedText(each, (filter, part) =>
          filter.name === 'cause' ? causeName(part) : names.nameOf(filter, part),
        ),
      }))}
      onRemove={({ name }) => {
        const found = of(name)
        if (found !== undefined) change(without([found]))
      }}
      edit={({ name }, close) => {
        const found = of(name)
        return (
          found && (
            <FilterForm
              of={found}
              names={names}
              onApply={(changes) => {
                close()
                change(changes)
              }}
            />
          )
        )
      }}
    >
      {active.length > 1 && (
        <button type="button" onClick={() => change(without(active))}>
          Clear filters
        </button>
      )}
    </Chips>
  )
}

/** A cause in words: why the platform refused a call, or how one ended. */
const causeName = (cause: string): string => denialPhrase(cause) ?? hangupText(cause)

/** Amounts of each currency. */
const amountsText = (amounts: Readonly<Record<string, string>>): string | undefined => {
  const texts = Object.entries(amounts).map(([currency, amount]) => `${amount} ${currency}`)
  return texts.length === 0 ? undefined : texts.join(', ')
}

/** Sums of all calls that match, on all pages. */
function Totals({ report }: { report: CallReport | undefined }) {
  const { totals } = report ?? {}
  return (
    <p class="sums" role="status">
      {totals !== undefined &&
        sumsOf(totals).map(([name, value]) => (
          <span key={name}>
            {name} <b>{value}</b>
          </span>
        ))}
      {report?.complete === false && (
        <span class="notice">
          {report.missing?.text ?? 'Not all of the period could be added up in time: narrow it.'}
        </span>
      )}
    </p>
  )
}

function sumsOf(totals: MatchedCalls): readonly (readonly [string, string])[] {
  const { calls, answered, billsec, asr_percent: asr, acd_seconds: acd } = totals
  const amounts = [
    ['Cost', amountsText(totals.cost)],
    ['Carrier cost', amountsText(totals.carrier_cost)],
    ['Margin', amountsText(totals.margin)],
  ] as const
  return [
    ['Calls', figureText(calls)],
    ['Answered', `${figureText(answered)} (${unitText(asr, '%')})`],
    ['Talk', durationText(billsec)],
    ['Mean', acd === null ? figureText(null) : durationText(acd)],
    ...amounts.flatMap(([name, text]) => (text === undefined ? [] : [[name, text] as const])),
  ]
}

interface TailButtonProps {
  readonly isOn: boolean
  readonly period: ShownPeriod
  /** Calls that have ended since. */
  readonly news: number
}

const TailButton = ({ isOn, period, news }: TailButtonProps) => (
  <button
    type="button"
    aria-pressed={isOn}
    disabled={!ongoing.has(period.name)}
    title="Calls that end appear on top"
    onClick={() => setQuery({ tail: isOn ? undefined : '1' })}
  >
    Live tail{isOn && news > 0 ? `: ${figureText(news)} new` : ''}
  </button>
)

/** The browser itself downloads them: they may have any length. */
const Export = ({ words, isNewestFirst }: { words: string; isNewestFirst: boolean }) => {
  const path = `/api/v1/reports/cdrs?${words}&order=${isNewestFirst ? 'newest' : 'oldest'}`
  return (
    <>
      <a href={`${path}&format=csv`} download>
        Export CSV
      </a>
      <a href={`${path}&format=ndjson`} download>
        NDJSON
      </a>
    </>
  )
}

/** Nothing, where all are shown. */
function More({ onMore, isFull }: { onMore: (() => void) | undefined; isFull: boolean }) {
  if (isFull)
    return <p>The first {figureText(MAX_ROWS)} are shown. Narrow the filter, or export all.</p>
  if (onMore === undefined) return null
  return (
    <p>
      <button type="button" onClick={onMore}>
        Load more
      </button>
    </p>
  )
}
