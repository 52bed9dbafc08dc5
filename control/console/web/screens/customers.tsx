/** Customers and what they have left. */
import { get } from '../api/api.ts'
import type { Customer } from '../api/api-types.ts'
import { pathOf } from '../app/address.ts'
import { moneyText } from '../parts/format.ts'
import { useResource } from '../parts/resource.ts'
import { Table, type ShownColumn } from '../parts/table.tsx'
import { Badge, Problem, Text } from '../parts/text.tsx'

const MAX_CUSTOMERS = 200

const columns: readonly ShownColumn<Customer>[] = [
  {
    ...{ name: 'name', title: 'Name', value: (customer) => customer.name },
    show: (customer) => (
      <a href={pathOf('customers', String(customer.id))}>
        <Text value={customer.name} max={80} />
      </a>
    ),
  },
  {
    ...{ name: 'balance', title: 'Balance', value: (customer) => customer.balance_number },
    isFigure: true,
    show: (customer) => moneyText(customer.balance, customer.currency),
  },
  {
    ...{ name: 'state', title: 'State', value: stateOf },
    show: (customer) => (
      <Badge tone={!customer.is_active ? 'plain' : customer.is_balance_low ? 'warn' : 'good'}>
        {stateOf(customer)}
      </Badge>
    ),
  },
  {
    ...{ name: 'plan', title: 'Rate plan', value: (customer) => customer.rate_plan },
    isMinor: true,
    show: (customer) => <Text value={customer.rate_plan} max={60} />,
  },
  {
    ...{ name: 'numbers', title: 'Numbers', value: (customer) => customer.numbers.join(' ') },
    isMinor: true,
    show: (customer) => <Text value={customer.numbers.join(', ')} max={60} />,
  },
  {
    ...{ name: 'tenant', title: 'Tenant', value: (customer) => customer.tenant },
    isMinor: true,
    show: (customer) => <Text value={customer.tenant} />,
  },
]

function stateOf({ is_active, is_balance_low }: Customer): string {
  if (!is_active) return 'inactive'
  return is_balance_low ? 'low balance' : 'active'
}

export function CustomersScreen() {
  const customers = useResource(
    'customers',
    () => get<Customer[]>(`/customers?limit=${MAX_CUSTOMERS}`),
    {
      everyMs: 10_000,
    },
  )
  return (
    <>
      <Problem message={customers.problem.value} />
      <Table
        label="Customers"
        rows={customers.data.value ?? []}
        columns={columns}
        keyOf={(customer) => customer.id}
        empty={customers.data.value === undefined ? 'Loading …' : 'There is no customer.'}
      />
    </>
  )
}
