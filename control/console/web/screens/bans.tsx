/** Sources of SIP that are not heard: why, since when and until when. */
import { send } from '../api/api.ts'
import type { Ban } from '../api/views.ts'
import { may } from '../api/session.ts'
import { Dialog } from '../parts/dialog.tsx'
import { textIn } from '../parts/form.ts'
import { figureText } from '../parts/format.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Badge, Moment, Problem, Text } from '../parts/text.tsx'
import { actionsColumn, useList } from './list.tsx'

const reasons = {
  password_guessing: 'guessed passwords',
  unknown_calls: 'called as a stranger',
  operator: 'banned by an operator',
} as const

const columns: readonly ShownColumn<Ban>[] = [
  {
    name: 'source',
    title: 'Source',
    value: (ban) => ban.source,
    show: (ban) => <Text value={ban.source} max={60} />,
  },
  {
    name: 'reason',
    title: 'Why',
    value: (ban) => reasons[ban.reason],
    show: (ban) => (
      <Badge tone={ban.reason === 'operator' ? 'plain' : 'bad'}>{reasons[ban.reason]}</Badge>
    ),
  },
  {
    name: 'since',
    title: 'Since',
    value: (ban) => ban.since,
    show: (ban) => <Moment at={ban.since} />,
  },
  {
    name: 'until',
    title: 'Until',
    value: (ban) => ban.until,
    show: (ban) => <Moment at={ban.until} />,
  },
  {
    name: 'dropped',
    title: 'Dropped packets',
    value: (ban) => ban.dropped_packets,
    isFigure: true,
    isMinor: true,
    show: (ban) => figureText(ban.dropped_packets),
  },
]

export function BansScreen() {
  const list = useList<Ban>('/guard/bans')
  const { data, dialog, close } = list
  const lift = ({ source }: Ban) => {
    dialog.value = (
      <Dialog
        title="Lift this ban?"
        action="Lift"
        onConfirm={() => send('DELETE', `/guard/bans/${encodeURIComponent(source)}`)}
        onClose={close}
      >
        <p>
          Packets of <Text value={source} max={60} /> are read again.
        </p>
      </Dialog>
    )
  }
  const actions = actionsColumn<Ban>(
    ({ source }) => source,
    (ban) => [{ text: 'Lift', open: () => lift(ban) }],
  )
  return (
    <>
      <Problem message={list.problem.value} />
      {may('guard:write') && (
        <p>
          <button
            type="button"
            class="primary"
            onClick={() => (dialog.value = <BanForm onClose={close} />)}
          >
            Ban an address
          </button>
        </p>
      )}
      <Table
        label="Bans"
        rows={data.value ?? []}
        columns={may('guard:write') ? [...columns, actions] : columns}
        keyOf={({ source }) => source}
        empty={data.value === undefined ? 'Loading …' : 'No source is banned.'}
      />
      {dialog.value}
    </>
  )
}

const BanForm = ({ onClose }: { onClose: () => void }) => (
  <Dialog
    title="Ban an address?"
    action="Ban"
    isDangerous
    onConfirm={(form) =>
      send('POST', '/guard/bans', {
        address: textIn(form, 'address'),
        duration_seconds: Number(textIn(form, 'minutes')) * 60,
      })
    }
    onClose={onClose}
  >
    <label>
      IP address
      <input name="address" required maxLength={45} autoComplete="off" />
    </label>
    <label>
      Minutes
      <input name="minutes" type="number" min={1} max={43_200} defaultValue="60" required />
    </label>
  </Dialog>
)
