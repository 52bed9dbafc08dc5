/**
 * Spend guards, which stop or cap calls to a prefix: the present ones with the use of each cap, and
 * a new one.
 */
import { useSignal } from '@preact/signals'
import { useId } from 'preact/hooks'
import { send } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { SpendingCap } from '../api/views.ts'
import { momentColumn, moneyColumn, textColumn } from '../parts/columns.tsx'
import { Choice, Field, Flag, Reason, textIn, words } from '../parts/form.tsx'
import { moneyText } from '../parts/format.ts'
import { ListScreen, type Action } from '../parts/list.tsx'
import type { ManyRows } from '../parts/many-action.ts'
import { useFilled } from '../parts/prefill.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { useCustomerNames } from './names.ts'

const nameOf = ({ scope, scope_id, name }: SpendingCap): string =>
  `${scope} ${name ?? `#${scope_id}`}`

const prefixOf = ({ prefix }: SpendingCap): string => (prefix === '' ? 'all numbers' : `${prefix}…`)

const periods = { duration: 'in all', day: 'each day (UTC)' } as const

function effectOf({ action, amount_exact, currency, per }: SpendingCap): string {
  if (action === 'block') return 'blocked'
  const amount = moneyText(amount_exact, currency)
  return per === null ? `at most ${amount}` : `at most ${amount} ${periods[per]}`
}

const columns: readonly ShownColumn<SpendingCap>[] = [
  textColumn('who', 'Calls of', nameOf, {
    max: 80,
    also: ({ reason }) => reason,
    second: ({ reason }) => <Text value={reason} max={80} />,
  }),
  textColumn('prefix', 'To', prefixOf, { show: prefixOf }),
  textColumn('effect', 'Guard', effectOf, {
    tone: ({ action }) => (action === 'block' ? 'bad' : 'warn'),
  }),
  moneyColumn('left', 'Left', ({ left_exact: amount, currency }) => ({ amount, currency })),
  momentColumn('until', 'Until', (guard) => guard.expires_at),
]

export const SpendGuardsScreen = () => (
  <ListScreen<SpendingCap>
    label="Spend guards"
    about="Brakes on calls to expensive numbers."
    path="/spend-guards?limit=200"
    columns={columns}
    keyOf={({ guard_id }) => guard_id}
    empty="No guard is set."
    isWritable={may('guard:write')}
    create={create}
    nameOf={(guard) => `${nameOf(guard)} to ${prefixOf(guard)}`}
    many={() => manyGuards}
    actions={(guard) => [remove(guard)]}
  />
)

function removal({ guard_id: id }: SpendingCap, form: FormData) {
  const reason = encodeURIComponent(textIn(form, 'reason'))
  return send('DELETE', `/spend-guards/${encodeURIComponent(id)}?reason=${reason}`)
}

const manyGuards: ManyRows<SpendingCap> = {
  one: 'spend guard',
  many: 'spend guards',
  actions: [
    {
      text: 'Remove',
      done: 'removed',
      isDangerous: true,
      effect: 'calls are no longer stopped by them.',
      fields: <Reason />,
      send: removal,
    },
  ],
}

const remove = (guard: SpendingCap): Action => ({
  text: 'Remove',
  title: 'Remove this guard?',
  ask: (
    <>
      <p>
        Calls of <Text value={nameOf(guard)} max={80} /> to {prefixOf(guard)} are no longer stopped
        by it.
      </p>
      <Reason />
    </>
  ),
  onConfirm: (form) => removal(guard, form),
})

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

const scopes = words('customer', 'extension', 'tenant')
const effects = { block: 'no call', cap: 'calls up to an amount' } as const

/** The fields of a guard; those of an amount only where there is one. */
function GuardFields() {
  const list = useId()
  const customers = useCustomerNames()
  const scope = useSignal(useFilled('scope') ?? 'customer')
  const effect = useSignal(useFilled('action') ?? 'block')
  return (
    <>
      <Choice
        label="Calls of a"
        name="scope"
        value="customer"
        options={scopes}
        onChange={(value) => (scope.value = value)}
      />
      <Field
        label="Its id or name"
        name="who"
        required
        maxLength={300}
        autoComplete="off"
        list={list}
      />
      <datalist id={list}>
        {scope.value === 'customer' &&
          [...customers.values()]
            .slice(0, MAX_PROPOSALS)
            .map((name) => <option key={name} value={name} />)}
      </datalist>
      <Field
        label="First digits of the called number; empty for all numbers"
        name="prefix"
        maxLength={40}
        inputMode="tel"
        autoComplete="off"
      />
      <Choice
        label="What happens"
        name="action"
        value="block"
        options={effects}
        onChange={(value) => (effect.value = value)}
      />
      {effect.value === 'cap' && (
        <>
          <Field
            label="Amount of a cap, in the currency of the customer"
            name="amount"
            required
            maxLength={20}
            inputMode="decimal"
            autoComplete="off"
          />
          <Choice label="The amount is" name="per" value="duration" options={periods} />
        </>
      )}
      <Field
        label="Hours; 0 until it is removed"
        name="hours"
        type="number"
        min={0}
        max={720}
        defaultValue="12"
        required
      />
      <Flag label="End calls that are answered" name="end_live_calls" />
      <Reason />
    </>
  )
}

/** The browser finds among them by what is typed. */
const MAX_PROPOSALS = 500

const create: Action = {
  text: 'Set a guard',
  title: 'Set a spend guard?',
  confirm: 'Set',
  isDangerous: true,
  onConfirm: (form) => send('POST', '/spend-guards', bodyOf(form)),
  ask: <GuardFields />,
}
