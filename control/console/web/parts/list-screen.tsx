/** A screen that is one table of a resource of the API. */
import { get } from '../api/api.ts'
import { useResource } from './resource.ts'
import { Table, type ShownColumn } from './table.tsx'
import { Problem } from './text.tsx'

interface ListScreenProps<Row> {
  readonly label: string
  /** Of the resource. */
  readonly path: string
  readonly columns: readonly ShownColumn<Row>[]
  readonly keyOf: (row: Row) => string | number
  readonly empty: string
  /** Loads it again after such an event. */
  readonly events?: RegExp
}

const REFRESH_MS = 10_000

export function ListScreen<Row>(props: ListScreenProps<Row>) {
  const { path, events, ...table } = props
  const options = { everyMs: REFRESH_MS, ...(events !== undefined && { events }) }
  const { data, problem } = useResource(path, () => get<Row[]>(path), options)
  return (
    <>
      <Problem message={problem.value} />
      <Table
        {...table}
        rows={data.value ?? []}
        empty={data.value === undefined ? 'Loading …' : table.empty}
      />
    </>
  )
}
