/** The changes of operators and agents, and their undoing. */
import { send } from '../api/api.ts'
import { mayWrite } from '../api/session.ts'
import type { Change } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { momentColumn, textColumn } from '../parts/columns.tsx'
import { Reason, textIn } from '../parts/form.tsx'
import { ListScreen, type Action } from '../parts/list.tsx'
import { address } from '../parts/router.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { actorText } from './actor-words.ts'

const tones = {
  pending: 'warn',
  made: 'good',
  unconfirmed: 'bad',
  undone: 'plain',
  expired: 'plain',
  superseded: 'plain',
} as const

/** On one line. */
export const actorOf = ({ actor, actor_name: name }: Change): string =>
  actorText(actor, name).replace(' ', '\u00a0')

const columns: readonly ShownColumn<Change>[] = [
  momentColumn('at', 'Time', ({ at }) => at),
  textColumn('effect', 'Change', ({ effect }) => effect, {
    max: 300,
    also: ({ reason }) => reason,
    second: ({ reason }) => reason !== null && <Text value={reason} max={300} />,
  }),
  textColumn('state', 'State', ({ state }) => state, { tone: ({ state }) => tones[state] }),
  textColumn('actor', 'Who', actorOf, {
    show: (change) => (
      <>
        <Text value={actorOf(change)} max={60} />
        {change.proposal_id !== null && (
          <>
            {' '}
            <a href={pathOf('proposals', change.proposal_id)}>proposed</a>
          </>
        )}
      </>
    ),
  }),
  momentColumn('until', 'Until', (change) => change.expires_at, { isMinor: true }),
]

/** All changes, or those of the thing that the address names. */
export function ChangesScreen() {
  const { target_kind: kind, target, named } = address.value.query
  const isOfOne = kind !== undefined && target !== undefined
  const words = new URLSearchParams({ limit: '200', ...(isOfOne && { target_kind: kind, target }) })
  return (
    <ListScreen<Change>
      label="Changes"
      path={`/changes?${words}`}
      about={
        isOfOne ? (
          <>
            Only those of <Text value={named ?? `${kind} ${target}`} max={120} />.{' '}
            <a href={pathOf('changes')}>All changes</a>
          </>
        ) : (
          'What was changed, and what of it can be undone.'
        )
      }
      events={/^proposal\./}
      columns={columns}
      keyOf={({ change_id }) => change_id}
      empty="Nothing was changed."
      isWritable={mayWrite()}
      isWrapped
      nameOf={({ effect }) => effect}
      actions={(change) => (change.is_reversible && change.state === 'made' ? [undo(change)] : [])}
    />
  )
}

/**
 * The server refuses it where something came later, and where the user may not make such a change.
 */
const undo = ({ change_id, effect, before }: Change): Action => ({
  text: 'Undo',
  title: 'Undo this change?',
  ask: (
    <>
      <p>
        <Text value={effect} max={600} />
      </p>
      <p>
        {before === null
          ? 'What it has created is removed; a key is revoked.'
          : 'What it has changed gets back the state that it had before.'}
      </p>
      <Reason />
    </>
  ),
  onConfirm: (form) =>
    send('POST', `/changes/${encodeURIComponent(change_id)}/undo`, {
      reason: textIn(form, 'reason'),
    }),
})
