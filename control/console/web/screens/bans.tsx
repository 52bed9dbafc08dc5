/**
 * Banned sources of SIP, and accounts that are locked at a source: the reason, since when and until
 * when.
 */
import { type ConsoleAnswer, send } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { Ban } from '../api/views.ts'
import { figureColumn, momentColumn, textColumn } from '../parts/columns.tsx'
import { Field, textIn } from '../parts/form.tsx'
import { ListScreen, type Action } from '../parts/list.tsx'
import type { ManyRows } from '../parts/many-action.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'

const reasons = {
  password_guessing: 'guessed passwords',
  unknown_calls: 'called as a stranger',
  operator: 'banned by an operator',
  wrong_passwords: 'locked after wrong passwords',
} as const

const columns: readonly ShownColumn<Ban>[] = [
  textColumn('source', 'Source', ({ source }) => source, {
    also: ({ account }) => account,
    second: ({ account }) => account !== null && <Text value={account} max={60} />,
  }),
  textColumn('reason', 'Why', ({ reason }) => reasons[reason], {
    tone: ({ reason }) => (reason === 'operator' ? 'plain' : 'bad'),
  }),
  momentColumn('since', 'Since', ({ since }) => since),
  momentColumn('until', 'Until', ({ until }) => until),
  figureColumn('dropped', 'Dropped', (ban) => ban.dropped_packets, { isMinor: true }),
]

export const BansScreen = () => (
  <ListScreen<Ban>
    label="Bans"
    path="/guard/bans"
    about="Addresses whose packets are not read, and accounts locked after wrong passwords."
    columns={columns}
    keyOf={({ source, account, reason }) => `${source} ${reason} ${account ?? ''}`}
    empty="No source is banned, and no account is locked."
    isWritable={may('guard:write')}
    create={ban}
    nameOf={({ source, account }) => (account === null ? source : `${account} at ${source}`)}
    many={() => manyBans}
    actions={({ source, account }) => [account === null ? lift(source) : unlock(source, account)]}
  />
)

const unban = (source: string) => send('DELETE', `/guard/bans/${encodeURIComponent(source)}`)

const manyBans: ManyRows<Ban> = {
  one: 'ban',
  many: 'bans',
  actions: [
    {
      text: 'Lift',
      done: 'lifted',
      effect:
        'packets of these sources are read again, and passwords from there are checked again. ' +
        'It cannot be undone, but an address can be banned again.',
      // One request ends all of a source.
      spared: (bans) => {
        const sources = new Set<string>()
        const twice = bans.filter(({ source }) => sources.size === sources.add(source).size)
        return Promise.resolve(new Map(twice.map((ban) => [ban, 'it ends with another one'])))
      },
      send: ({ source }) => unban(source),
    },
  ],
}

const lift = (source: string): Action => ({
  text: 'Lift',
  title: 'Lift this ban?',
  ask: (
    <p>
      Packets of <Text value={source} max={60} /> are read again.
    </p>
  ),
  onConfirm: () => unban(source),
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
  onConfirm: () => unban(source),
})

const ban: Action = {
  text: 'Ban an address',
  title: 'Ban an address?',
  confirm: 'Ban',
  isDangerous: true,
  ask: (
    <>
      <Field
        label="IP address"
        hint="several with commas"
        name="address"
        required
        maxLength={500}
        autoComplete="off"
      />
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
  onConfirm: async (form) => {
    const addresses = textIn(form, 'address')
      .split(/[\s,;]+/)
      .filter(Boolean)
    const seconds = Number(textIn(form, 'minutes')) * 60
    let answer: ConsoleAnswer<unknown> = { kind: 'ok', data: undefined, meta: undefined }
    // One after the other: a second attempt may ban the same address again, which changes nothing.
    for (const address of addresses) {
      answer = await send('POST', '/guard/bans', { address, duration_seconds: seconds })
      if (answer.kind !== 'ok') return named(answer, address)
    }
    return answer
  },
}

/** Says which of several addresses was refused: those before it are banned. */
const named = (answer: ConsoleAnswer<unknown>, address: string): ConsoleAnswer<unknown> =>
  answer.kind === 'failed' ? { ...answer, message: `${address}: ${answer.message}` } : answer
