/**
 * The ledger of a customer as a bank statement: one month, with the balance before and after each
 * entry.
 */
import { useEffect } from 'preact/hooks'
import { get, getRows, type ConsoleAnswer } from '../api/api.ts'
import type { Customer, LedgerEntry } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { address, setQuery } from '../parts/router.ts'
import { may } from '../api/session.ts'
import { now } from '../api/browser.ts'
import { momentColumn, moneyColumn, textColumn } from '../parts/columns.tsx'
import { Choice, withAll } from '../parts/form.tsx'
import { figureText, moneyText } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { viewerZone } from '../parts/zone-choice.tsx'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Facts, Problem, Text } from '../parts/text.tsx'
import { entryText } from './ledger-words.ts'
import { monthOf, monthsBetween, monthText, periodOf } from './months.ts'

const PAGE_ENTRIES = 100
const REFRESH_MS = 10_000

const kinds = { topup: 'top-up', debit: 'call', adjust: 'adjustment', refund: 'refund' } as const

const columnsIn = (zone: string): readonly ShownColumn<LedgerEntry>[] => [
  momentColumn('date', 'Date', (entry) => entry.created_at, { zone }),
  textColumn('what', 'What', (entry) => entryText(entry), {
    show: (entry) => <What entry={entry} />,
  }),
  // The currency is that of the wallet.
  moneyColumn('amount', 'Amount', (entry) => ({ amount: entry.amount_exact, currency: null }), {
    before: ({ amount }) => (amount > 0 ? '+' : ''),
  }),
  moneyColumn('balance', 'Balance after', (entry) => ({
    amount: entry.balance_after_exact,
    currency: null,
  })),
]

/** A call is a link to what became of it. */
function What({ entry }: { entry: LedgerEntry }) {
  const text = <Text value={entryText(entry)} max={300} />
  return entry.kind === 'debit' && may('cdrs:read') ? (
    <a href={pathOf('calls', entry.ref)}>{text}</a>
  ) : (
    text
  )
}

interface Statement {
  readonly entries: readonly LedgerEntry[]
  /** Sums of the month, over all pages. */
  readonly total: number
  readonly opening: string
  readonly closing: string
}

interface Selection {
  readonly month: string
  /** Empty: all. */
  readonly kind: string
  readonly page: number
}

/** The month in the address; by default the present one. */
function choiceOf(query: Readonly<Record<string, string>>, present: string): Selection {
  const { month = '', kind = '', page = '' } = query
  return {
    month: periodOf(month) === undefined ? present : month,
    kind: kind in kinds ? kind : '',
    page: /^[1-9]\d{0,3}$/.test(page) ? Number(page) : 1,
  }
}

/** The viewer's, where neither the customer nor its tenant names one. */
const zoneOf = (customer: Customer | undefined): string =>
  customer?.effective_time_zone ?? viewerZone()

async function loadStatement(
  path: string,
  choice: Selection,
  zone: string,
): Promise<ConsoleAnswer<Statement>> {
  const { month, kind, page } = choice
  const period = periodOf(month)
  if (period === undefined) throw new Error(`${month} is no month`)
  const words = new URLSearchParams({
    start_date: period.from,
    end_date: period.to,
    time_zone: zone,
  })
  if (kind !== '') words.set('kind', kind)
  const [entries, opening, closing] = await Promise.all([
    getRows<LedgerEntry>(`${path}/ledger?${words}&limit=${PAGE_ENTRIES}&page=${page}`),
    balanceBefore(path, period.from, zone),
    balanceBefore(path, period.to, zone),
  ])
  if (entries.kind !== 'ok') return entries
  if (opening.kind !== 'ok') return opening
  if (closing.kind !== 'ok') return closing
  const { rows, total } = entries.data
  return {
    ...entries,
    data: { entries: rows, total, opening: opening.data, closing: closing.data },
  }
}

async function balanceBefore(
  path: string,
  before: string,
  zone: string,
): Promise<ConsoleAnswer<string>> {
  const words = new URLSearchParams({ end_date: before, time_zone: zone, limit: '1' })
  const answer = await get<LedgerEntry[]>(`${path}/ledger?${words}`)
  if (answer.kind !== 'ok') return answer
  return { ...answer, data: answer.data[0]?.balance_after_exact ?? '0.00' }
}

interface StatementProps {
  /** Path of the customer in the API. */
  readonly path: string
  readonly customer: Customer | undefined
  /** Loads it again when this changes. */
  readonly moves: number
}

export function StatementView({ path, customer, moves }: StatementProps) {
  const zone = zoneOf(customer)
  const present = monthOf(now(), zone)
  const choice = choiceOf(address.value.query, present)
  const { month, kind, page } = choice
  const load = () => loadStatement(path, choice, zone)
  const { data, problem, reload } = useResource(`${path} ${zone} ${month} ${kind} ${page}`, load, {
    everyMs: REFRESH_MS,
  })
  useEffect(() => void (moves > 0 && reload()), [moves])
  const isNow = choice.month === present
  const money = (exact: string | undefined) => moneyText(exact ?? null, customer?.currency ?? '')
  const pages = Math.max(1, Math.ceil((data.value?.total ?? 0) / PAGE_ENTRIES))
  return (
    <>
      <Problem message={problem.value} />
      <Facts
        of={{
          'Balance at the start of the month': money(data.value?.opening),
          [isNow ? 'Balance so far' : 'Closing balance']: money(data.value?.closing),
          Entries: figureText(data.value?.total),
          'Months and times of': zone,
        }}
      />
      <Table
        label="Ledger"
        rows={data.value?.entries}
        columns={columnsIn(zone)}
        keyOf={(entry) => entry.id}
        empty="No money moved in this month."
        filters={<Choices customer={customer} choice={choice} pages={pages} />}
      />
    </>
  )
}

interface ChoicesProps {
  readonly customer: Customer | undefined
  readonly choice: Selection
  readonly pages: number
}

function Choices({ customer, choice: { month, kind, page }, pages }: ChoicesProps) {
  const zone = zoneOf(customer)
  const first = customer === undefined ? now() : Date.parse(customer.created_at)
  const offered = monthsBetween(monthOf(first, zone), monthOf(now(), zone))
  const months = offered.includes(month) ? offered : [month, ...offered]
  return (
    <>
      <Choice
        label="Month"
        name="month"
        value={month}
        options={Object.fromEntries(months.map((each) => [each, monthText(each)]))}
        onChange={(value) => setQuery({ month: value, page: undefined })}
      />
      <Choice
        label="Kind"
        name="kind"
        value={kind}
        options={withAll(kinds)}
        onChange={(value) => setQuery({ kind: value, page: undefined })}
      />
      <span class="pages">
        <button
          type="button"
          disabled={page <= 1}
          onClick={() => setQuery({ page: String(page - 1) })}
        >
          Newer
        </button>{' '}
        Page {page} of {pages}{' '}
        <button
          type="button"
          disabled={page >= pages}
          onClick={() => setQuery({ page: String(page + 1) })}
        >
          Older
        </button>
      </span>
    </>
  )
}
