/** Who has changed what: filtered by the server, by what the address says. */
import { pathOf } from '../parts/address.ts'
import { address, setQuery } from '../parts/router.ts'
import type { AuditEntry } from '../api/views.ts'
import { textIn } from '../parts/form.ts'
import { ListScreen } from '../parts/list-screen.tsx'
import type { ShownColumn } from '../parts/table.tsx'
import { Badge, Moment, Text } from '../parts/text.tsx'
import { auditQuery } from './audit-query.ts'
import { Choice, words } from './list.tsx'

const actorOf = ({ actor, actor_name }: AuditEntry): string => actor_name ?? actor

const columns: readonly ShownColumn<AuditEntry>[] = [
  {
    name: 'at',
    title: 'Time',
    value: (entry) => entry.at,
    show: (entry) => <Moment at={entry.at} />,
  },
  {
    name: 'actor',
    title: 'Who',
    value: actorOf,
    show: (entry) => (
      <>
        {entry.is_agent && <Badge tone="warn">agent</Badge>}{' '}
        <a href={pathOf('audit', undefined, { ...address.value.query, actor: entry.actor })}>
          <Text value={actorOf(entry)} max={60} />
        </a>
      </>
    ),
  },
  {
    name: 'action',
    title: 'Action',
    value: (entry) => entry.action,
    show: (entry) => <Text value={entry.action} max={80} />,
  },
  {
    name: 'target',
    title: 'Object',
    value: (entry) => entry.target,
    isMinor: true,
    show: (entry) => <Text value={entry.target} max={80} />,
  },
  {
    name: 'outcome',
    title: 'Outcome',
    value: (entry) => `${entry.outcome} ${entry.status}`,
    show: (entry) => (
      <Badge
        tone={entry.outcome === 'success' ? 'good' : entry.outcome === 'failed' ? 'bad' : 'warn'}
      >
        {entry.outcome} {entry.status}
      </Badge>
    ),
  },
  {
    name: 'address',
    title: 'From',
    value: (entry) => entry.address,
    isMinor: true,
    show: (entry) => <Text value={entry.address} max={60} />,
  },
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

const fields = { actor: 'Who', action: 'Action', target: 'Object' } as const

function Filters() {
  const { query } = address.value
  const search = (event: SubmitEvent): void => {
    event.preventDefault()
    if (!(event.currentTarget instanceof HTMLFormElement)) return
    const form = new FormData(event.currentTarget)
    const names = [...Object.keys(fields), 'outcome', 'by', 'from', 'to']
    setQuery(Object.fromEntries(names.map((name) => [name, textIn(form, name)])))
  }
  return (
    <form class="tools" onSubmit={search} role="search" key={JSON.stringify(query)}>
      {Object.entries(fields).map(([name, text]) => (
        <label key={name}>
          {text} <input name={name} defaultValue={query[name] ?? ''} maxLength={200} size={12} />
        </label>
      ))}
      <label>
        Outcome{' '}
        <Choice
          name="outcome"
          value={query['outcome'] ?? ''}
          options={{ '': 'all', ...words('success', 'refused', 'failed') }}
        />
      </label>
      <label>
        By{' '}
        <Choice
          name="by"
          value={query['by'] ?? ''}
          options={{ '': 'all', agents: 'agents', others: 'people and programs' }}
        />
      </label>
      <label>
        From <input name="from" type="datetime-local" defaultValue={query['from'] ?? ''} />
      </label>
      <label>
        To <input name="to" type="datetime-local" defaultValue={query['to'] ?? ''} />
      </label>
      <button class="primary">Filter</button>
    </form>
  )
}
