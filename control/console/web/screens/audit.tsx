/** Who has changed what. */
import type { AuditEntry } from '../api/api-types.ts'
import { ListScreen } from '../parts/list-screen.tsx'
import type { ShownColumn } from '../parts/table.tsx'
import { Badge, Moment, Text } from '../parts/text.tsx'

const actorOf = ({ actor, actor_name }: AuditEntry): string => actor_name ?? actor

/** Tools are what AI agents call. */
const isOfAgent = ({ action }: AuditEntry): boolean => action.startsWith('tool ')

const columns: readonly ShownColumn<AuditEntry>[] = [
  {
    ...{ name: 'at', title: 'Time', value: (entry) => entry.at },
    show: (entry) => <Moment at={entry.at} />,
  },
  {
    ...{ name: 'actor', title: 'Who', value: actorOf },
    show: (entry) => <Text value={actorOf(entry)} max={60} />,
  },
  {
    ...{ name: 'action', title: 'Action', value: (entry) => entry.action },
    show: (entry) => (
      <>
        {isOfAgent(entry) && <Badge tone="warn">agent</Badge>}{' '}
        <Text value={entry.action} max={80} />
      </>
    ),
  },
  {
    ...{ name: 'target', title: 'Target', value: (entry) => entry.target },
    isMinor: true,
    show: (entry) => <Text value={entry.target} max={80} />,
  },
  {
    ...{ name: 'outcome', title: 'Outcome', value: (entry) => `${entry.outcome} ${entry.status}` },
    show: (entry) => (
      <Badge
        tone={entry.outcome === 'success' ? 'good' : entry.outcome === 'failed' ? 'bad' : 'warn'}
      >
        {entry.outcome} {entry.status}
      </Badge>
    ),
  },
  {
    ...{ name: 'address', title: 'From', value: (entry) => entry.address },
    isMinor: true,
    show: (entry) => <Text value={entry.address} max={60} />,
  },
]

export const AuditScreen = () => (
  <ListScreen
    label="Audit log"
    path="/audit?limit=200"
    columns={columns}
    keyOf={(entry) => entry.id}
    empty="Nothing has been changed yet."
  />
)
