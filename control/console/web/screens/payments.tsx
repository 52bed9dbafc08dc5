/**
 * Payments that need a person: those that are not credited, which are assigned here, and those that
 * were taken back.
 */
import { send } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { BillingAlert } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { momentColumn, moneyColumn, textColumn } from '../parts/columns.tsx'
import { Field, Filter, textIn } from '../parts/form.tsx'
import { moneyText } from '../parts/format.ts'
import { ListScreen, type Action } from '../parts/list.tsx'
import { address } from '../parts/router.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { useCustomerNames } from './names.ts'

const reasons: Readonly<Record<BillingAlert['kind'], string>> = {
  unknown_customer: 'not credited: whose it is, is not known',
  currency_mismatch: 'not credited: the wallet has another currency',
  balance_out_of_range: 'not credited: the balance would be too large',
  resolved_before: 'not credited: an earlier alert was resolved by hand, or it was refunded',
  unreadable_event: 'its event cannot be read',
  amount_mismatch: 'credited, and told with another amount',
  refund: 'refunded',
  dispute: 'disputed',
  subscription_ended: 'its subscription has ended',
}

const amountOf = ({ amount_exact, currency }: BillingAlert): string =>
  amount_exact === null ? '' : moneyText(amount_exact, currency)

const nameOf = ({ reference, event_id }: BillingAlert): string => reference ?? event_id

const stateOf = ({ resolved_at, resolved_by }: BillingAlert): string =>
  resolved_at === null ? 'open' : `resolved by ${resolved_by ?? ''}`

const columnsFor = (
  names: ReturnType<typeof useCustomerNames>,
): readonly ShownColumn<BillingAlert>[] => [
  momentColumn('at', 'When', (alert) => alert.created_at),
  textColumn('payment', 'Payment', nameOf, { max: 80 }),
  moneyColumn('amount', 'Amount', ({ amount_exact: amount, currency }) => ({ amount, currency })),
  textColumn('why', 'Why', ({ kind }) => reasons[kind], {
    tone: ({ assignable }) => (assignable ? 'bad' : 'plain'),
    also: ({ detail }) => detail,
    second: ({ detail }) => <Text value={detail} max={200} />,
  }),
  textColumn(
    'customer',
    'Customer',
    ({ customer_id: id }) => (id === null ? null : (names.get(id) ?? `customer ${id}`)),
    { to: ({ customer_id: id }) => pathOf('customers', `${id ?? ''}`) },
  ),
  textColumn('state', 'State', stateOf, { isMinor: true, max: 80 }),
]

/** The newest. */
const MAX_ALERTS = 200

export function PaymentsScreen() {
  const names = useCustomerNames()
  const state = address.value.query['state'] === 'resolved' ? 'resolved' : 'open'
  return (
    <ListScreen<BillingAlert>
      label="Payments that need attention"
      about="What was paid, and could not be credited."
      path={`/billing/alerts?state=${state}&limit=${MAX_ALERTS}`}
      events={/^payment\.alert$/}
      columns={columnsFor(names)}
      keyOf={({ id }) => `${id}`}
      empty={state === 'open' ? 'No payment needs attention.' : 'No alert was resolved.'}
      isWritable={may('wallets:write')}
      nameOf={(alert) => `payment ${nameOf(alert)}`}
      actions={actionsOf}
      filters={<Filter label="State" name="state" options={{ '': 'open', resolved: 'resolved' }} />}
    />
  )
}

function actionsOf(alert: BillingAlert): readonly Action[] {
  if (alert.resolved_at !== null) return []
  return alert.assignable ? [assign(alert), resolve(alert)] : [resolve(alert)]
}

const assign = (alert: BillingAlert): Action => ({
  text: 'Assign',
  title: 'Assign this payment?',
  confirm: 'Credit the customer',
  ask: (
    <>
      <p>
        The wallet of the customer is credited with {amountOf(alert)}, once. Whatever comes of{' '}
        <Text value={nameOf(alert)} max={80} /> later moves no money.
      </p>
      <Field
        label="Id or name of the customer"
        name="customer"
        required
        maxLength={100}
        autoComplete="off"
        defaultValue={alert.customer_id === null ? '' : `${alert.customer_id}`}
      />
      <Field
        label="Another amount, in the currency of the wallet"
        hint="empty: that of the payment"
        name="amount"
        inputMode="decimal"
        pattern="\d{1,9}(\.\d{1,6})?"
        autoComplete="off"
      />
    </>
  ),
  onConfirm: (form) => {
    const customer = textIn(form, 'customer')
    const amount = textIn(form, 'amount')
    return send('POST', `/billing/alerts/${alert.id}/assign`, {
      customer: /^[1-9]\d{0,14}$/.test(customer) ? Number(customer) : customer,
      ...(amount !== '' && { amount }),
    })
  },
  done: 'The payment is credited.',
})

const resolve = (alert: BillingAlert): Action => ({
  text: 'Resolve',
  title: 'Resolve this alert?',
  ask: (
    <p>
      No money moves. {alert.assignable && 'The payment is not credited by a later event, either. '}
      The alert of <Text value={nameOf(alert)} max={80} /> stays in the list of resolved ones.
    </p>
  ),
  onConfirm: () => send('POST', `/billing/alerts/${alert.id}/resolve`),
})
