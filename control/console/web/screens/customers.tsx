/** Customers and what they have left. */
import { useSignal } from '@preact/signals'
import { getAll } from '../api/api.ts'
import type { Customer } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { address, setQuery } from '../parts/router.ts'
import { may } from '../api/session.ts'
import { figureText, moneyText } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Badge, Problem, Text } from '../parts/text.tsx'
import { CustomerForm } from './customer-form.tsx'
import { customerState } from './customer-state.ts'

const REFRESH_MS = 10_000

const columns: readonly ShownColumn<Customer>[] = [
  {
    name: 'name',
    title: 'Name',
    value: (customer) => customer.name,
    show: (customer) => (
      <a href={pathOf('customers', String(customer.id))}>
        <Text value={customer.name} max={80} />
      </a>
    ),
  },
  {
    name: 'balance',
    title: 'Balance',
    value: (customer) => customer.balance_number,
    isFigure: true,
    show: (customer) => moneyText(customer.balance, customer.currency),
  },
  {
    name: 'state',
    title: 'State',
    value: (customer) => customerState(customer)[1],
    show: (customer) => {
      const [tone, text] = customerState(customer)
      return <Badge tone={tone}>{text}</Badge>
    },
  },
  {
    name: 'plan',
    title: 'Rate plan',
    value: (customer) => customer.rate_plan,
    isMinor: true,
    show: (customer) => <Text value={customer.rate_plan} max={60} />,
  },
  {
    name: 'numbers',
    title: 'Numbers',
    value: (customer) => customer.numbers.join(' '),
    isMinor: true,
    show: (customer) => <Text value={customer.numbers.join(', ')} max={60} />,
  },
  {
    name: 'tenant',
    title: 'Tenant',
    value: (customer) => customer.tenant,
    isMinor: true,
    show: (customer) => <Text value={customer.tenant} />,
  },
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
  const isMaking = useSignal(false)
  const { rows = [], total = 0 } = customers.data.value ?? {}
  const choice = choiceOf(address.value.query['show'] ?? '')
  return (
    <>
      <Problem message={customers.problem.value} />
      {rows.length < total && (
        <p class="notice">
          There are {figureText(total)} customers; the first {figureText(rows.length)} by name are
          here.
        </p>
      )}
      <Table
        label="Customers"
        rows={rows.filter(choices[choice][1])}
        columns={columns}
        keyOf={(customer) => customer.id}
        empty={customers.data.value === undefined ? 'Loading …' : 'There is no such customer.'}
        filters={
          <>
            <label>
              Show{' '}
              <select
                value={choice}
                onChange={(event) => setQuery({ show: event.currentTarget.value })}
              >
                {Object.entries(choices).map(([name, [text, isShown]]) => (
                  <option key={name} value={name}>
                    {text} ({figureText(rows.filter(isShown).length)})
                  </option>
                ))}
              </select>
            </label>
            {may('customers:write') && (
              <button type="button" onClick={() => (isMaking.value = true)}>
                New customer
              </button>
            )}
          </>
        }
      />
      {isMaking.value && (
        <CustomerForm
          customer={undefined}
          onClose={() => {
            isMaking.value = false
            customers.reload()
          }}
        />
      )}
    </>
  )
}
