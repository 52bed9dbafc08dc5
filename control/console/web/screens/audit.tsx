/** Who has changed what: filtered by the server, by what the address says. */
import type { AuditEntry } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { momentColumn, textColumn } from '../parts/columns.tsx'
import { Choice, Field, onForm, textIn, withAll, words } from '../parts/form.tsx'
import { ListScreen } from '../parts/list.tsx'
import { address, setQuery } from '../parts/router.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { Badge, Text } from '../parts/text.tsx'
import { auditQuery } from './audit-query.ts'

const actorOf = ({ actor, actor_name }: AuditEntry): string => actor_name ?? actor

const tones = { success: 'good', failed: 'bad', refused: 'warn' } as const

const columns: readonly ShownColumn<AuditEntry>[] = [
  momentColumn('at', 'Time', (entry) => entry.at),
  textColumn('actor', 'Who', actorOf, {
    show: (entry) => (
      <>
        {entry.is_agent && <Badge tone="warn">agent</Badge>}{' '}
        <a href={pathOf('audit', undefined, { ...address.value.query, actor: entry.actor })}>
          <Text value={actorOf(entry)} max={60} />
        </a>
      </>
    ),
  }),
  textColumn('action', 'Action', (entry) => entry.action, { max: 80 }),
  textColumn('target', 'Object', (entry) => entry.target, { max: 80, isMinor: true }),
  textColumn('outcome', 'Outcome', ({ outcome, status }) => `${outcome} ${status}`, {
    tone: ({ outcome }) => tones[outcome],
  }),
  textColumn('address', 'From', (entry) => entry.address, { isMinor: true }),
]

export const AuditScreen = () => (
  <>
    <Filters />
    <ListScreen
      label="Audit log"
      path={`/audit?limit=200${auditQuery(address.value.query)}`}
      columns={columns}
      keyOf={(entry) => entry.id}
      empty="There is no such entry."
    />
  </>
)

const texts = { actor: 'Who', action: 'Action', target: 'Object' } as const
const times = { from: 'From', to: 'To' } as const

function Filters() {
  const { query } = address.value
  const search = onForm((form) => {
    const names = [...Object.keys(texts), 'outcome', 'by', ...Object.keys(times)]
    setQuery(Object.fromEntries(names.map((name) => [name, textIn(form, name)])))
  })
  const entered = (name: string) => ({ name, defaultValue: query[name] ?? '' })
  return (
    <form class="tools" onSubmit={search} role="search" key={JSON.stringify(query)}>
      {Object.entries(texts).map(([name, text]) => (
        <Field key={name} {...entered(name)} label={text} maxLength={200} size={12} />
      ))}
      <Choice
        label="Outcome"
        name="outcome"
        value={query['outcome'] ?? ''}
        options={withAll(words('success', 'refused', 'failed'))}
      />
      <Choice
        label="By"
        name="by"
        value={query['by'] ?? ''}
        options={withAll({ agents: 'agents', others: 'people and programs' })}
      />
      {Object.entries(times).map(([name, text]) => (
        <Field key={name} {...entered(name)} label={text} type="datetime-local" />
      ))}
      <button class="primary">Filter</button>
    </form>
  )
}
