/** What operators and agents have changed, and the way back. */
import { send } from '../api/api.ts'
import type { Change } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { mayWrite } from '../api/session.ts'
import { Dialog } from '../parts/dialog.tsx'
import { textIn } from '../parts/form.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Badge, Moment, Problem, Text } from '../parts/text.tsx'
import { actionsColumn, useList } from './list.tsx'

const tones = {
  pending: 'warn',
  made: 'good',
  unconfirmed: 'bad',
  undone: 'plain',
  expired: 'plain',
  superseded: 'plain',
} as const

const actorOf = ({ actor, actor_name }: Change): string => actor_name ?? actor

const columns: readonly ShownColumn<Change>[] = [
  { name: 'at', title: 'Time', value: ({ at }) => at, show: ({ at }) => <Moment at={at} /> },
  {
    name: 'effect',
    title: 'Change',
    value: ({ effect }) => effect,
    show: ({ effect }) => <Text value={effect} max={140} />,
  },
  {
    name: 'state',
    title: 'State',
    value: ({ state }) => state,
    show: ({ state }) => <Badge tone={tones[state]}>{state}</Badge>,
  },
  {
    name: 'actor',
    title: 'Who',
    value: actorOf,
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
  },
  {
    name: 'reason',
    title: 'Why',
    value: ({ reason }) => reason,
    isMinor: true,
    show: ({ reason }) => <Text value={reason} max={100} />,
  },
  {
    name: 'until',
    title: 'Until',
    value: (each) => each.expires_at,
    isMinor: true,
    show: (each) => <Moment at={each.expires_at} />,
  },
]

export function ChangesScreen() {
  const list = useList<Change>('/changes?limit=200', /^proposal\./)
  const { data, dialog, close } = list
  const actions = actionsColumn<Change>(
    ({ effect }) => effect,
    (change) =>
      change.is_reversible && change.state === 'made'
        ? [{ text: 'Undo', open: () => (dialog.value = <Undo change={change} onClose={close} />) }]
        : [],
  )
  return (
    <>
      <Problem message={list.problem.value} />
      <Table
        label="Changes"
        rows={data.value ?? []}
        columns={mayWrite() ? [...columns, actions] : columns}
        keyOf={({ change_id }) => change_id}
        empty={data.value === undefined ? 'Loading …' : 'Nothing was changed.'}
      />
      {dialog.value}
    </>
  )
}

/** The server refuses it where something came later, and where the user may not make such a change. */
const Undo = ({ change, onClose }: { change: Change; onClose: () => void }) => (
  <Dialog
    title="Undo this change?"
    action="Undo"
    onConfirm={(form) =>
      send('POST', `/changes/${encodeURIComponent(change.change_id)}/undo`, {
        reason: textIn(form, 'reason'),
      })
    }
    onClose={onClose}
  >
    <p>
      <Text value={change.effect} max={600} />
    </p>
    <p>
      {change.before === null
        ? 'What it has created is removed; a key is revoked.'
        : 'What it has changed gets back the state that it had before.'}
    </p>
    <label>
      Reason
      <input name="reason" required minLength={3} maxLength={500} autoComplete="off" />
    </label>
  </Dialog>
)
