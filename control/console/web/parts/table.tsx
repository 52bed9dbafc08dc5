/**
 * A table of any number of rows, of which only those in sight exist; its state is in the address.
 */
import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { address, setQuery } from './router.ts'
import { figureText } from './format.ts'
import {
  arranged,
  inSight,
  nextSort,
  readTableState,
  type TableColumn,
  type TableState,
} from './table-state.ts'

export interface ShownColumn<Row> extends TableColumn<Row> {
  readonly show: (row: Row) => ComponentChildren
  readonly isFigure?: boolean
  /** Left out on narrow screens. */
  readonly isMinor?: boolean
  /** Has buttons: stays in sight, and is not sorted by. */
  readonly isActions?: boolean
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
  /** The rows have two lines. */
  readonly isTall?: boolean
  /** The server has ordered and searched the rows. Absent: the table does, by the address. */
  readonly order?: ServerOrder
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

/** Equal `--row` of `style.css`. */
const ROW_HEIGHT = 40
const TALL_ROW_HEIGHT = 50
/** Rows are made for so much at a time; fewer than the margin beyond those in sight. */
const STEP_HEIGHT = 4 * ROW_HEIGHT

const none: readonly never[] = []

export function Table<Row>(props: TableProps<Row>) {
  const { label, rows = none, columns, keyOf, empty, filters, isWrapped = false, order } = props
  const rowHeight = props.isTall === true ? TALL_ROW_HEIGHT : ROW_HEIGHT
  const box = useRef<HTMLDivElement>(null)
  const sight = useSignal({ top: 0, height: 600 })
  const state = readTableState(address.value.query)
  const { search, sortBy, isDescending } = state
  const isArranged = order !== undefined
  // This would be too slow for each frame of scrolling.
  const shown = useMemo(
    () => (isArranged ? rows : arranged(rows, columns, { search, sortBy, isDescending })),
    [isArranged, rows, columns.length, search, sortBy, isDescending],
  )
  const measure = () => {
    const { scrollTop = 0, clientHeight = 0 } = box.current ?? {}
    const top = Math.floor(scrollTop / STEP_HEIGHT) * STEP_HEIGHT
    const seen = sight.peek()
    if (seen.top !== top || seen.height !== clientHeight)
      sight.value = { top, height: clientHeight }
  }
  useLayoutEffect(measure, [shown.length])
  const { from, to } = isWrapped
    ? { from: 0, to: shown.length }
    : inSight(shown.length, rowHeight, sight.value.top, sight.value.height)
  return (
    <section
      class={['table', isWrapped && 'wrapped', props.isTall && 'tall'].filter(Boolean).join(' ')}
      aria-label={label}
      aria-busy={props.rows === undefined}
    >
      <div class="tools">
        {order === undefined && (
          <label>
            Search{' '}
            <input
              type="search"
              value={state.search}
              maxLength={100}
              onInput={(event) => setQuery({ q: event.currentTarget.value })}
            />
          </label>
        )}
        {filters}
        <span class="count" role="status">
          {order?.count ?? countText(shown.length, rows.length)}
        </span>
      </div>
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
          rowHeight={rowHeight}
          order={order ?? orderBy(state)}
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
  readonly order: ShownOrder
  readonly rowHeight: number
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

const Grid = <Row,>({ shown, from, to, columns, keyOf, order, rowHeight }: GridProps<Row>) => (
  <table aria-rowcount={shown.length + 1}>
    <thead>
      <tr aria-rowindex={1}>
        {columns.map((column) => (
          <Heading key={column.name} column={column} order={order} />
        ))}
      </tr>
    </thead>
    <tbody>
      <Space height={from * rowHeight} columns={columns.length} />
      {shown.slice(from, to).map((row, index) => (
        <tr key={keyOf(row)} aria-rowindex={from + index + 2}>
          {columns.map((column) => (
            <td key={column.name} class={classOf(column)}>
              {column.show(row)}
            </td>
          ))}
        </tr>
      ))}
      <Space height={(shown.length - to) * rowHeight} columns={columns.length} />
    </tbody>
  </table>
)

const countText = (shown: number, all: number): string =>
  shown === all ? figureText(all) : `${figureText(shown)} of ${figureText(all)}`

const classOf = <Row,>({ isFigure, isMinor, isActions }: ShownColumn<Row>): string =>
  [isFigure === true && 'figure', isMinor === true && 'minor', isActions === true && 'actions']
    .filter(Boolean)
    .join(' ')

function Heading<Row>({ column, order }: { column: ShownColumn<Row>; order: ShownOrder }) {
  const { name } = column
  if (column.isActions === true || order.names?.has(name) === false)
    return (
      <th scope="col" class={classOf(column)}>
        {column.title}
      </th>
    )
  const isSorted = order.sortBy === name
  const direction = order.isDescending ? 'descending' : 'ascending'
  return (
    <th scope="col" class={classOf(column)} aria-sort={isSorted ? direction : 'none'}>
      <button type="button" onClick={() => order.onSort(name)}>
        {column.title}
        <span aria-hidden="true">{isSorted ? (order.isDescending ? ' ↓' : ' ↑') : ''}</span>
      </button>
    </th>
  )
}

/** Is as high as the rows that are not made. */
function Space({ height, columns }: { height: number; columns: number }) {
  if (height <= 0) return null
  return (
    <tr aria-hidden="true" class="space">
      <td colSpan={columns} style={{ height: `${height}px` }} />
    </tr>
  )
}
