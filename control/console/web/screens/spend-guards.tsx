/** What stops or caps calls to a prefix: which guards stand, how much of each cap is used, and a new one. */
import { send, type Answer } from '../api/api.ts'
import type { SpendGuard } from '../api/views.ts'
import { may } from '../api/session.ts'
import { Dialog } from '../parts/dialog.tsx'
import { textIn } from '../parts/form.ts'
import { moneyText } from '../parts/format.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Badge, Moment, Problem, Text } from '../parts/text.tsx'
import { actionsColumn, Choice, useList, words } from './list.tsx'

const nameOf = ({ scope, scope_id, name }: SpendGuard): string =>
  `${scope} ${name ?? `#${scope_id}`}`

const prefixOf = ({ prefix }: SpendGuard): string => (prefix === '' ? 'all numbers' : `${prefix}…`)

const periods = { duration: 'in all', day: 'each day (UTC)' } as const

function effectOf({ action, amount_exact, currency, per }: SpendGuard): string {
  if (action === 'block') return 'blocked'
  const amount = moneyText(amount_exact, currency)
  return per === null ? `at most ${amount}` : `at most ${amount} ${periods[per]}`
}

const columns: readonly ShownColumn<SpendGuard>[] = [
  {
    name: 'who',
    title: 'Calls of',
    value: nameOf,
    show: (guard) => <Text value={nameOf(guard)} max={80} />,
  },
  { name: 'prefix', title: 'To', value: prefixOf, show: prefixOf },
  {
    name: 'effect',
    title: 'Guard',
    value: effectOf,
    show: (guard) => (
      <Badge tone={guard.action === 'block' ? 'bad' : 'warn'}>{effectOf(guard)}</Badge>
    ),
  },
  {
    name: 'left',
    title: 'Left',
    value: ({ left_exact }) => Number(left_exact ?? 0),
    isFigure: true,
    show: ({ left_exact, currency }) =>
      left_exact === null ? '' : moneyText(left_exact, currency),
  },
  {
    name: 'until',
    title: 'Until',
    value: (each) => each.expires_at,
    show: (each) => <Moment at={each.expires_at} />,
  },
  {
    name: 'reason',
    title: 'Why',
    value: ({ reason }) => reason,
    isMinor: true,
    show: ({ reason }) => <Text value={reason} max={100} />,
  },
]

export function SpendGuardsScreen() {
  const list = useList<SpendGuard>('/spend-guards?limit=200')
  const { data, dialog, close } = list
  const remove = (guard: SpendGuard) => {
    dialog.value = (
      <Dialog
        title="Remove this guard?"
        action="Remove"
        onConfirm={(form) => removed(guard, textIn(form, 'reason'))}
        onClose={close}
      >
        <p>
          Calls of <Text value={nameOf(guard)} max={80} /> to {prefixOf(guard)} are no longer
          stopped by it.
        </p>
        <Reason />
      </Dialog>
    )
  }
  const actions = actionsColumn<SpendGuard>(
    (guard) => `${nameOf(guard)} to ${prefixOf(guard)}`,
    (guard) => [{ text: 'Remove', open: () => remove(guard) }],
  )
  const isWriter = may('guard:write')
  return (
    <>
      <Problem message={list.problem.value} />
      {isWriter && (
        <p>
          <button
            type="button"
            class="primary"
            onClick={() => (dialog.value = <GuardForm onClose={close} />)}
          >
            Set a guard
          </button>
        </p>
      )}
      <Table
        label="Spend guards"
        rows={data.value ?? []}
        columns={isWriter ? [...columns, actions] : columns}
        keyOf={({ guard_id }) => guard_id}
        empty={data.value === undefined ? 'Loading …' : 'No guard is set.'}
      />
      {dialog.value}
    </>
  )
}

const removed = ({ guard_id }: SpendGuard, reason: string): Promise<Answer<unknown>> =>
  send(
    'DELETE',
    `/spend-guards/${encodeURIComponent(guard_id)}?reason=${encodeURIComponent(reason)}`,
  )

const SECONDS_PER_HOUR = 3_600

/** The server says what does not fit together, such as an amount of a guard that blocks. */
function bodyOf(form: FormData): Readonly<Record<string, unknown>> {
  const who = textIn(form, 'who')
  const amount = textIn(form, 'amount')
  const hours = Number(textIn(form, 'hours'))
  const isCap = textIn(form, 'action') === 'cap'
  return {
    [textIn(form, 'scope')]: /^[1-9]\d{0,14}$/.test(who) ? Number(who) : who,
    prefix: textIn(form, 'prefix'),
    action: isCap ? 'cap' : 'block',
    ...(amount !== '' && { amount }),
    ...(isCap && { per: textIn(form, 'per') }),
    ...(hours > 0 && { duration: hours * SECONDS_PER_HOUR }),
    end_live_calls: form.get('end_live_calls') !== null,
    reason: textIn(form, 'reason'),
  }
}

const GuardForm = ({ onClose }: { onClose: () => void }) => (
  <Dialog
    title="Set a spend guard?"
    action="Set"
    isDangerous
    onConfirm={(form) => send('POST', '/spend-guards', bodyOf(form))}
    onClose={onClose}
  >
    <label>
      Calls of a
      <Choice name="scope" value="customer" options={words('customer', 'extension', 'tenant')} />
    </label>
    <label>
      Its id or name
      <input name="who" required maxLength={300} autoComplete="off" />
    </label>
    <label>
      First digits of the called number; empty for all numbers
      <input name="prefix" maxLength={40} inputMode="tel" autoComplete="off" />
    </label>
    <label>
      What happens
      <Choice
        name="action"
        value="block"
        options={{ block: 'no call', cap: 'calls up to an amount' }}
      />
    </label>
    <label>
      Amount of a cap, in the currency of the customer
      <input name="amount" maxLength={20} inputMode="decimal" autoComplete="off" />
    </label>
    <label>
      The amount is
      <Choice name="per" value="duration" options={periods} />
    </label>
    <label>
      Hours; 0 until it is removed
      <input name="hours" type="number" min={0} max={720} defaultValue="12" required />
    </label>
    <label class="flag">
      <input name="end_live_calls" type="checkbox" /> End calls that are answered
    </label>
    <Reason />
  </Dialog>
)

const Reason = () => (
  <label>
    Reason
    <input name="reason" required minLength={3} maxLength={500} autoComplete="off" />
  </label>
)
