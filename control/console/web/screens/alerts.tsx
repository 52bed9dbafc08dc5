/** The log of alerts: what happened, and who was told. */
import { may } from '../api/session.ts'
import type { LoggedAlert } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { momentColumn, textColumn } from '../parts/columns.tsx'
import { Filter, withAll, words } from '../parts/form.tsx'
import { ListScreen } from '../parts/list.tsx'
import { address } from '../parts/router.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { alertKindWords } from './alert-words.ts'

const toldOf = ({ deliveries }: LoggedAlert): string | null =>
  deliveries.length === 0
    ? null
    : deliveries
        .map(({ channel, tells, state, attempts, last_error: error }) => {
          const what = tells === 'opened' ? '' : ' (end)'
          const why = error === null ? '' : `, ${attempts} attempts, ${error}`
          return `${channel}${what}: ${state}${why}`
        })
        .join('; ')

const isFailed = ({ deliveries }: LoggedAlert): boolean =>
  deliveries.some(({ state }) => state === 'failed')

const isLate = ({ deliveries }: LoggedAlert): boolean =>
  deliveries.some(({ attempts, state }) => state === 'pending' && attempts > 0)

const tones = { waiting: 'plain', open: 'bad', closed: 'good' } as const

const columns: readonly ShownColumn<LoggedAlert>[] = [
  momentColumn('since', 'Since', ({ began_at }) => began_at),
  textColumn('state', 'State', ({ state }) => state, { tone: ({ state }) => tones[state] }),
  textColumn('text', 'What', ({ text }) => text, {
    max: 200,
    to: ({ path }) => path,
    also: ({ on, closed_because: why }) => why ?? alertKindWords[on],
  }),
  textColumn('severity', 'Severity', ({ severity }) => severity),
  momentColumn('until', 'Until', ({ closed_at }) => closed_at),
  textColumn('told', 'Told', toldOf, {
    max: 200,
    tone: (alert) => (isFailed(alert) ? 'bad' : isLate(alert) ? 'warn' : 'plain'),
  }),
  textColumn('rule', 'Rule', ({ rule }) => rule, {
    isMinor: true,
    to: () => pathOf('alert-rules'),
  }),
]

const states = words('open', 'closed', 'waiting')

export function AlertsScreen() {
  const asked = address.value.query['state'] ?? ''
  const filter = asked in states ? `&state=${asked}` : ''
  return (
    <ListScreen<LoggedAlert>
      label="Alerts"
      path={`/alerts?limit=200${filter}`}
      columns={columns}
      keyOf={({ id }) => id}
      about="What the alert rules have found, and who was told of it."
      isWrapped
      empty="There is no alert. Rules say of what you are told, and channels by which way."
      filters={<Filter label="State" name="state" options={withAll(states)} />}
      isWritable={may('webhooks:write')}
    />
  )
}
