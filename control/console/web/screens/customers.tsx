/** Customers and what they have left. */
import { getAll } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { Customer } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { moneyColumn, textColumn } from '../parts/columns.tsx'
import { Filter } from '../parts/form.tsx'
import { figureText } from '../parts/format.ts'
import { List } from '../parts/list.tsx'
import { createOf } from '../parts/resource-screen.tsx'
import { useResource } from '../parts/resource.ts'
import { address } from '../parts/router.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { Text } from '../parts/text.tsx'
import { customerNoun, customerState } from './customer-form.tsx'

const REFRESH_MS = 10_000

const columns: readonly ShownColumn<Customer>[] = [
  textColumn('name', 'Name', ({ name }) => name, {
    max: 80,
    to: ({ id }) => pathOf('customers', String(id)),
    also: ({ numbers }) => numbers.join(', '),
    second: ({ numbers }) => <Text value={numbers.join(', ') || 'no number'} max={80} />,
  }),
  textColumn('state', 'State', (customer) => customerState(customer)[1], {
    tone: (customer) => customerState(customer)[0],
  }),
  moneyColumn('balance', 'Balance', ({ balance, currency }) => ({ amount: balance, currency })),
  textColumn('plan', 'Rate plan', (customer) => customer.rate_plan, {
    isMinor: true,
    show: ({ rate_plan: plan }) => <Text value={plan ?? 'none: no call has a price'} max={60} />,
  }),
  textColumn('tenant', 'Tenant', ({ tenant }) => tenant, { isMinor: true, max: 64 }),
]

/** Which are shown, by the address: `?show=low`. */
const choices = {
  '': ['all', () => true],
  low: ['with a low balance', (customer: Customer) => customer.is_balance_low],
  inactive: ['inactive', (customer: Customer) => !customer.is_active],
} as const

const choiceOf = (text: string): keyof typeof choices =>
  text === 'low' || text === 'inactive' ? text : ''

export function CustomersScreen() {
  const customers = useResource('customers', () => getAll<Customer>('/customers'), {
    everyMs: REFRESH_MS,
  })
  const listed = customers.data.value
  const { rows = [], total = 0 } = listed ?? {}
  const choice = choiceOf(address.value.query['show'] ?? '')
  const counted = Object.entries(choices).map(([name, [text, isShown]]): [string, string] => [
    name,
    `${text} (${figureText(rows.filter(isShown).length)})`,
  ])
  return (
    <>
      {rows.length < total && (
        <p class="notice">
          There are {figureText(total)} customers; the first {figureText(rows.length)} by name are
          here.
        </p>
      )}
      <List
        label="Customers"
        about="Who pays for calls, and from which numbers."
        rows={listed?.rows.filter(choices[choice][1])}
        columns={columns}
        keyOf={({ id }) => id}
        empty="There is no such customer."
        problem={customers.problem.value}
        reload={customers.reload}
        isWritable={may('customers:write')}
        create={createOf(customerNoun())}
        filters={<Filter label="Show" name="show" options={Object.fromEntries(counted)} />}
      />
    </>
  )
}
