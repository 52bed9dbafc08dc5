/** What the process was started with, and where each setting comes from. */
import { get } from '../api/api.ts'
import type { Setting, Settings } from '../api/views.ts'
import { useResource } from '../parts/resource.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Badge, Problem, Text } from '../parts/text.tsx'

const sources = { environment: 'environment', file: '.env file', default: 'default' } as const

const valueOf = ({ value, is_set, is_secret, when_unset }: Setting): string => {
  if (is_secret) return is_set ? 'set, not shown' : `unset: ${when_unset}`
  return value ?? `unset: ${when_unset}`
}

const columns: readonly ShownColumn<Setting>[] = [
  {
    name: 'name',
    title: 'Setting',
    value: (setting) => setting.name,
    show: ({ name }) => <code>{name}</code>,
  },
  {
    name: 'value',
    title: 'Value',
    value: valueOf,
    show: (setting) => <Text value={valueOf(setting)} max={120} />,
  },
  {
    name: 'source',
    title: 'From',
    value: (setting) => sources[setting.source],
    show: ({ source }) => (
      <Badge tone={source === 'default' ? 'plain' : 'good'}>{sources[source]}</Badge>
    ),
  },
  {
    name: 'meaning',
    title: 'Meaning',
    value: (setting) => setting.meaning,
    isMinor: true,
    show: ({ meaning, allowed }) => <span title={`Allowed: ${allowed}`}>{meaning}</span>,
  },
]

export function SettingsScreen() {
  const { data, problem } = useResource('settings', () => get<Settings>('/settings'))
  return (
    <>
      <p>They are read at the start: the environment first, then .env, then the default.</p>
      <Problem message={problem.value} />
      {data.value?.notes.map((note) => (
        <p key={note} class="notice">
          <Text value={note} max={300} />
        </p>
      ))}
      <Table
        label="Settings"
        rows={data.value?.settings ?? []}
        columns={columns}
        keyOf={({ name }) => name}
        empty={data.value === undefined ? 'Loading …' : 'No setting is known.'}
      />
    </>
  )
}
