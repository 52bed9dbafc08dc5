/**
 * Banned sources of SIP, and accounts that are locked at a source: the reason, since when and until
 * when.
 */
import { send } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { Ban } from '../api/views.ts'
import { figureColumn, momentColumn, textColumn } from '../parts/columns.tsx'
import { Field, textIn } from '../parts/form.tsx'
import { ListScreen, type Action } from '../parts/list.tsx'
import type { ShownColumn } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'

const reasons = {
  password_guessing: 'guessed passwords',
  unknown_calls: 'called as a stranger',
  operator: 'banned by an operator',
  wrong_passwords: 'locked after wrong passwords',
} as const

const columns: readonly ShownColumn<Ban>[] = [
  textColumn('source', 'Source', ({ source }) => source),
  textColumn('account', 'Account', ({ account }) => account ?? ''),
  textColumn('reason', 'Why', ({ reason }) => reasons[reason], {
    tone: ({ reason }) => (reason === 'operator' ? 'plain' : 'bad'),
  }),
  momentColumn('since', 'Since', ({ since }) => since),
  momentColumn('until', 'Until', ({ until }) => until),
  figureColumn('dropped', 'Dropped packets', (ban) => ban.dropped_packets, { isMinor: true }),
]

export const BansScreen = () => (
  <ListScreen<Ban>
    label="Bans"
    path="/guard/bans"
    columns={columns}
    keyOf={({ source, account, reason }) => `${source} ${reason} ${account ?? ''}`}
    empty="No source is banned, and no account is locked."
    isWritable={may('guard:write')}
    create={ban}
    nameOf={({ source, account }) => (account === null ? source : `${account} at ${source}`)}
    actions={({ source, account }) => [account === null ? lift(source) : unlock(source, account)]}
  />
)

const lift = (source: string): Action => ({
  text: 'Lift',
  title: 'Lift this ban?',
  ask: (
    <p>
      Packets of <Text value={source} max={60} /> are read again.
    </p>
  ),
  onConfirm: () => send('DELETE', `/guard/bans/${encodeURIComponent(source)}`),
})

const unlock = (source: string, account: string): Action => ({
  text: 'Unlock',
  title: 'Unlock this account?',
  ask: (
    <p>
      Passwords of <Text value={account} max={90} /> are checked again when they come from{' '}
      <Text value={source} max={60} />, and so are those of other accounts there. A ban of this
      source ends, too.
    </p>
  ),
  onConfirm: () => send('DELETE', `/guard/bans/${encodeURIComponent(source)}`),
})

const ban: Action = {
  text: 'Ban an address',
  title: 'Ban an address?',
  confirm: 'Ban',
  isDangerous: true,
  ask: (
    <>
      <Field label="IP address" name="address" required maxLength={45} autoComplete="off" />
      <Field
        label="Minutes"
        name="minutes"
        type="number"
        min={1}
        max={43_200}
        defaultValue="60"
        required
      />
    </>
  ),
  onConfirm: (form) =>
    send('POST', '/guard/bans', {
      address: textIn(form, 'address'),
      duration_seconds: Number(textIn(form, 'minutes')) * 60,
    }),
}
