/**
 * A table of any number of rows, of which only those in sight exist; its state is in the address.
 */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { chooserColumn } from './chooser-column.tsx'
import type { ChosenRows } from './chosen-rows.ts'
import { address, setQuery } from './router.ts'
import { decimalsOf, figureText } from './format.ts'
import {
  arranged,
  inSight,
  nextSort,
  readTableState,
  type TableColumn,
  type TableState,
} from './table-state.ts'

export interface ShownColumn<Row> extends TableColumn<Row> {
  /** `decimals`: of the most exact amount in the column. */
  readonly show: (row: Row, decimals?: number) => ComponentChildren
  /** Secondary text, on a second line of the row. */
  readonly second?: ((row: Row) => ComponentChildren) | undefined
  /** Exact amounts of money, which all have the same decimals. */
  readonly exact?: (row: Row) => string | null
  readonly isFigure?: boolean
  /** Left out on narrow screens. */
  readonly isMinor?: boolean
  /** Has buttons: stays in sight, and is not sorted by. */
  readonly isActions?: boolean
  /** Has the boxes by which rows are chosen; `head` has the one of all. */
  readonly isChooser?: boolean
  readonly head?: ComponentChildren
}

export interface TableProps<Row> {
  /** The heading of the rows, for people: `Live calls`. */
  readonly label: string
  /** Undefined: they are being loaded. */
  readonly rows: readonly Row[] | undefined
  readonly columns: readonly ShownColumn<Row>[]
  readonly keyOf: (row: Row) => string | number
  /** Shown when there is no row at all. */
  readonly empty: string
  readonly filters?: ComponentChildren
  /** Cells have as many lines as their text needs: for a hundred rows at most, which all exist. */
  readonly isWrapped?: boolean
  /** The server searches, by a field in `filters`: there is one search field. */
  readonly isSearched?: boolean
  /** A part of a page: no search and no order, and as high as its rows, which are few. */
  readonly isPart?: boolean
  /** Cells make two lines of their own. */
  readonly isTall?: boolean
  /** The server has ordered and searched the rows. Absent: the table does, by the address. */
  readonly order?: ServerOrder
  /** Rows can be chosen; `bar` has what is done with them. */
  readonly choice?: RowChoice<Row> | undefined
}

interface RowChoice<Row> {
  readonly chosen: ChosenRows
  readonly nameOf: (row: Row) => string
  readonly bar: ComponentChildren
}

/** How the server has ordered the rows of a table, and how another order is asked for. */
export interface ServerOrder {
  readonly sortBy: string
  readonly isDescending: boolean
  /** Columns by which it can order. */
  readonly names: ReadonlySet<string>
  readonly onSort: (column: string) => void
  /** How many of how many rows are shown. */
  readonly count: string
}

/** These equal `--row` of `style.css`: rows of one line, and of two. */
const ROW_HEIGHT = 40
const TWO_LINES_HEIGHT = 56
const TALL_ROW_HEIGHT = 50
/** Rows are made for so much at a time; fewer than the margin beyond those in sight. */
const STEP_ROWS = 4

const none: readonly never[] = []
const unordered: TableState = { search: '', sortBy: undefined, isDescending: false }

export function Table<Row>(props: TableProps<Row>) {
  const { label, rows = none, keyOf, empty, filters, order, choice } = props
  const { isWrapped = false, isSearched = false, isPart = false, isTall = false } = props
  const box = useRef<HTMLDivElement>(null)
  const sight = useSignal({ top: 0, height: 600 })
  const state = isPart ? unordered : readTableState(address.value.query)
  const { search, sortBy, isDescending } = state
  const isArranged = order !== undefined
  // This would be too slow for each frame of scrolling.
  const shown = useMemo(
    () => (isArranged ? rows : arranged(rows, props.columns, { search, sortBy, isDescending })),
    [isArranged, rows, props.columns.length, search, sortBy, isDescending],
  )
  const columns: readonly ShownColumn<Row>[] =
    choice === undefined
      ? props.columns
      : [chooserColumn({ ...choice, shown, keyOf, label }), ...props.columns]
  const isTwoLines = columns.some(({ second }) => second !== undefined)
  const rowHeight = isTall ? TALL_ROW_HEIGHT : isTwoLines ? TWO_LINES_HEIGHT : ROW_HEIGHT
  const measure = () => {
    const { scrollTop = 0, clientHeight = 0 } = box.current ?? {}
    const step = STEP_ROWS * rowHeight
    const top = Math.floor(scrollTop / step) * step
    const seen = sight.peek()
    if (seen.top !== top || seen.height !== clientHeight)
      sight.value = { top, height: clientHeight }
  }
  useLayoutEffect(measure, [shown.length])
  const { from, to } =
    isWrapped || isPart
      ? { from: 0, to: shown.length }
      : inSight(shown.length, rowHeight, sight.value.top, sight.value.height)
  const kinds = [
    isWrapped && 'wrapped',
    isPart && 'part',
    isTwoLines && 'two-lines',
    isTall && 'tall',
    choice !== undefined && 'choosing',
  ]
  return (
    <section
      class={['table', ...kinds.filter((kind) => kind !== false)].join(' ')}
      aria-label={label}
      aria-busy={props.rows === undefined}
    >
      {!(isPart && filters === undefined) && (
        <div class="tools">
          {!isPart && !isSearched && !isArranged && (
            <input
              type="search"
              aria-label="Search"
              placeholder="Search"
              value={state.search}
              maxLength={100}
              onInput={(event) => setQuery({ q: event.currentTarget.value })}
            />
          )}
          {filters}
          {!isSearched && (
            <span class="count" role="status">
              {order?.count ?? (props.rows !== undefined && countText(shown.length, rows.length))}
            </span>
          )}
        </div>
      )}
      {choice?.bar}
      {/* Reached by the keyboard, so that arrow keys scroll it. */}
      <div
        class="scroll"
        ref={box}
        onScroll={measure}
        tabIndex={0}
        role="group"
        aria-label={`${label}, table`}
      >
        <Grid
          shown={shown}
          from={from}
          to={to}
          columns={columns}
          keyOf={keyOf}
          order={isPart ? undefined : (order ?? orderBy(state))}
          rowHeight={rowHeight}
          isCovered={choice !== undefined && choice.chosen.keys.value.size > 0}
        />
        {shown.length === 0 && (
          <p class="empty">
            {props.rows === undefined
              ? 'Loading …'
              : rows.length === 0
                ? empty
                : 'Nothing matches the search.'}
          </p>
        )}
      </div>
    </section>
  )
}

interface GridProps<Row> extends Pick<TableProps<Row>, 'columns' | 'keyOf'> {
  /** All rows; of them, those in sight are made: from `from` to before `to`. */
  readonly shown: readonly Row[]
  readonly from: number
  readonly to: number
  /** Undefined: the rows have the order in which they came. */
  readonly order: ShownOrder | undefined
  readonly rowHeight: number
  /** The actions on chosen rows lie over the headings. */
  readonly isCovered: boolean
}

interface ShownOrder extends Pick<ServerOrder, 'isDescending' | 'onSort'> {
  readonly sortBy: string | undefined
  /** Absent: all. */
  readonly names?: ServerOrder['names']
}

const orderBy = (state: TableState): ShownOrder => ({
  sortBy: state.sortBy,
  isDescending: state.isDescending,
  onSort: (column) => setQuery({ sort: nextSort(state, column) }),
})

function Grid<Row>(props: GridProps<Row>) {
  const { shown, from, to, columns, keyOf, order, rowHeight, isCovered } = props
  const decimals = useMemo(
    () => columns.map(({ exact }) => (exact === undefined ? 0 : mostDecimals(shown, exact))),
    [shown, columns.length],
  )
  return (
    <table aria-rowcount={shown.length + 1}>
      <thead>
        <tr aria-rowindex={1}>
          {columns.map((column) => (
            <Heading key={column.name} column={column} order={order} isCovered={isCovered} />
          ))}
        </tr>
      </thead>
      <tbody>
        <Space rows={from} columns={columns.length} height={rowHeight} />
        {shown.slice(from, to).map((row, index) => (
          <tr key={keyOf(row)} aria-rowindex={from + index + 2}>
            {columns.map((column, at) => (
              <td key={column.name} class={classOf(column)}>
                {column.show(row, decimals[at])}
                {column.second !== undefined && <Second of={column.second(row)} />}
              </td>
            ))}
          </tr>
        ))}
        <Space rows={shown.length - to} columns={columns.length} height={rowHeight} />
      </tbody>
    </table>
  )
}

const Second = ({ of }: { of: ComponentChildren }) =>
  of === null || of === undefined || of === false || of === '' ? null : (
    <small class="second">{of}</small>
  )

function mostDecimals<Row>(rows: readonly Row[], exact: (row: Row) => string | null): number {
  let most = 0
  for (const row of rows) most = Math.max(most, decimalsOf(exact(row) ?? ''))
  return most
}

const countText = (shown: number, all: number): string =>
  shown === all ? figureText(all) : `${figureText(shown)} of ${figureText(all)}`

const classOf = <Row,>({ isFigure, isMinor, isActions, isChooser }: ShownColumn<Row>): string =>
  [
    isFigure === true && 'figure',
    isMinor === true && 'minor',
    isActions === true && 'actions',
    isChooser === true && 'chooser',
  ]
    .filter(Boolean)
    .join(' ')

interface HeadingProps<Row> {
  readonly column: ShownColumn<Row>
  readonly order: ShownOrder | undefined
  readonly isCovered: boolean
}

function Heading<Row>({ column, order, isCovered }: HeadingProps<Row>) {
  const { name } = column
  if (column.head !== undefined)
    return (
      <th scope="col" class={classOf(column)}>
        {column.head}
      </th>
    )
  if (column.isActions === true || order === undefined || order.names?.has(name) === false)
    return (
      <th scope="col" class={classOf(column)}>
        {column.title}
      </th>
    )
  const isSorted = order.sortBy === name
  const direction = order.isDescending ? 'descending' : 'ascending'
  return (
    <th scope="col" class={classOf(column)} aria-sort={isSorted ? direction : 'none'}>
      <button type="button" disabled={isCovered} onClick={() => order.onSort(name)}>
        {column.title}
        <span aria-hidden="true">{isSorted ? (order.isDescending ? ' ↓' : ' ↑') : ''}</span>
      </button>
    </th>
  )
}

/** Is as high as the rows that are not made. */
function Space({ rows, columns, height }: { rows: number; columns: number; height: number }) {
  if (rows <= 0) return null
  return (
    <tr aria-hidden="true" class="space">
      <td colSpan={columns} style={{ height: `${rows * height}px` }} />
    </tr>
  )
}
