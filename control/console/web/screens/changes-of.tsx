/** The latest changes of one thing: what was changed, by whom and why. */
import { may } from '../api/session.ts'
import type { Change } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { momentColumn, textColumn } from '../parts/columns.tsx'
import { useView } from '../parts/resource.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Problem, Text } from '../parts/text.tsx'
import { actorOf } from './changes.tsx'

const SHOWN = 5
const REFRESH_MS = 15_000

const columns: readonly ShownColumn<Change>[] = [
  momentColumn('at', 'Time', ({ at }) => at),
  textColumn('effect', 'Change', ({ effect }) => effect, {
    max: 300,
    second: ({ reason }) => reason !== null && <Text value={reason} max={300} />,
  }),
  textColumn('actor', 'Who', actorOf),
  textColumn('state', 'State', ({ state }) => state, { isMinor: true }),
]

interface ChangesOfProps {
  /** As changes name it: `carrier` and its id. */
  readonly kind: string
  readonly id: string
  /** How people call it. */
  readonly named: string
}

/** The list of its changes. `named`: how the list calls it. */
export const changesPath = (kind: string, id: string, named?: string): string =>
  pathOf('changes', undefined, { target_kind: kind, target: id, named })

/** Nothing, where the user may not see changes. */
export const ChangesOf = (props: ChangesOfProps) =>
  may('audit:read') ? <Latest {...props} /> : null

function Latest({ kind, id, named }: ChangesOfProps) {
  const words = new URLSearchParams({ target_kind: kind, target: id, limit: `${SHOWN}` })
  const { data, problem } = useView<readonly Change[]>(`/changes?${words}`, {
    everyMs: REFRESH_MS,
  })
  return (
    <section>
      <div class="part-head">
        <h2>Changes</h2>
        <a href={changesPath(kind, id, named)}>All its changes</a>
      </div>
      <Problem message={problem.value} />
      <Table
        label="Changes of it"
        rows={data.value}
        columns={columns}
        keyOf={(change) => change.change_id}
        empty="Nothing was changed since it was made."
        isWrapped
        isPart
      />
    </section>
  )
}
