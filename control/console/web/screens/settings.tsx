/** The settings of the process, and the origin of each. */
import type { ShownSetting, ShownSettings } from '../api/views.ts'
import { textColumn } from '../parts/columns.tsx'
import { PageHead } from '../parts/page-head.tsx'
import { useView } from '../parts/resource.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Problem, Text } from '../parts/text.tsx'

const sources = { environment: 'environment', file: '.env file', default: 'default' } as const

const valueOf = ({ value, is_set, is_secret, when_unset }: ShownSetting): string => {
  if (is_secret) return is_set ? 'set, not shown' : `unset: ${when_unset}`
  return value ?? `unset: ${when_unset}`
}

const columns: readonly ShownColumn<ShownSetting>[] = [
  textColumn('name', 'Setting', ({ name }) => name, {
    show: ({ name }) => (
      <a href={`/guide#setting-${name.toLowerCase()}`}>
        <code>
          {name.split(/(?<=_)/).map((word) => (
            <>
              {word}
              <wbr />
            </>
          ))}
        </code>
      </a>
    ),
  }),
  textColumn('value', 'Value', valueOf, {
    max: 120,
    also: ({ meaning }) => meaning,
    second: ({ meaning, allowed }) => <span title={`Allowed: ${allowed}`}>{meaning}</span>,
  }),
  textColumn('source', 'From', ({ source }) => sources[source], {
    isMinor: true,
    tone: ({ source }) => (source === 'default' ? 'plain' : 'good'),
  }),
]

export function SettingsScreen() {
  const { data, problem } = useView<ShownSettings>('/settings')
  return (
    <>
      <PageHead about="Read at the start: the environment first, then .env, then the default." />
      <Problem message={problem.value} />
      {data.value?.notes.map((note) => (
        <p key={note} class="notice">
          <Text value={note} max={300} />
        </p>
      ))}
      <Table
        label="Settings"
        rows={data.value?.settings}
        columns={columns}
        keyOf={({ name }) => name}
        isWrapped
        empty="No setting is known."
      />
    </>
  )
}
