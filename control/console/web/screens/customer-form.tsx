/** How a customer is made, changed and deleted. */
import { may } from '../api/session.ts'
import type { Customer } from '../api/views.ts'
import type { Tone } from '../parts/format.ts'
import { callerForm } from './caller-form.ts'
import { lossForm } from './loss-form.ts'
import type { Use } from '../parts/many-of.ts'
import type { ScreenNoun } from '../parts/resource-screen.tsx'
import type { SchemaForm } from '../parts/forms.tsx'

const customerForm = (): SchemaForm => ({
  path: '/customers',
  names: ['name', 'rate_plan', 'numbers', ...(may('wallets:write') ? ['balance'] : []), 'tenant'],
  more: [
    'default_number',
    ...callerForm.names,
    'credit_limit',
    'low_balance_threshold',
    'max_daily_spend',
    'max_concurrent_calls',
    'max_cps',
    'max_call_seconds',
    'time_zone',
    ...lossForm.names,
    'email',
    'password',
    'is_active',
  ],
  labels: {
    ...callerForm.labels,
    ...lossForm.labels,
    default_number: 'Number outside',
    email: 'E-mail',
    password: 'Password of its login',
    low_balance_threshold: 'Low balance below',
    max_daily_spend: 'Spend a day',
    max_concurrent_calls: 'Calls at once',
    max_cps: 'Calls per second',
    max_call_seconds: 'Seconds a call',
    is_active: 'May call',
    balance: 'Opening balance',
  },
  words: { ...callerForm.words, ...lossForm.words },
  when: { ...lossForm.when },
  hints: {
    ...callerForm.hints,
    ...lossForm.hints,
    default_number: 'Its calls show it outside, unless an extension has its own.',
    rate_plan: 'None: no call has a price.',
    numbers: 'One a line: calls from these numbers are charged to it.',
    max_daily_spend: '0: no limit.',
    max_concurrent_calls: '0: no limit.',
    max_cps: '0: no limit.',
    max_call_seconds: '0: no limit.',
    time_zone: 'Such as Europe/Berlin. Empty: that of the tenant, else UTC.',
    email: 'With it, the customer signs in at the customer edge.',
    password: 'Empty: it stays as it is.',
    balance: '',
  },
})

const use = (path: string, one: string, name?: string): Use<Customer> => ({
  path,
  one,
  many: `${one}s`,
  isUse: (other, { id }) => other['customer_id'] === id,
  ...(name !== undefined && { name }),
})

export const customerNoun = (): ScreenNoun<Customer> => ({
  one: 'customer',
  many: 'Customers',
  scope: 'customers',
  about: '',
  effect:
    'Its numbers and its wallet are gone. A customer with calls or payments cannot be ' +
    'deleted: set “May call” off instead.',
  nameOf: ({ name }) => name,
  uses: [
    use('/pbx/extensions/details', 'extension', 'extension'),
    use('/routing/carriers', 'carrier'),
    use('/outbound-routes', 'outbound route'),
  ],
  columns: [],
  form: customerForm(),
})

/** Facts that an operator must know first. */
export function customerState({
  is_active,
  is_balance_low,
}: Pick<Customer, 'is_active' | 'is_balance_low'>): readonly [Tone, string] {
  if (!is_active) return ['plain', 'inactive']
  return is_balance_low ? ['warn', 'low balance'] : ['good', 'active']
}

/** Why its calls may be refused, and what to do; undefined: nothing is to be done. */
export function customerAdvice({
  is_active: isActive,
  is_balance_low: isLow,
  rate_plan_id: plan,
}: Pick<Customer, 'is_active' | 'is_balance_low' | 'rate_plan_id'>): string | undefined {
  if (!isActive) return 'It may not call: “Change” has the switch “May call”.'
  if (plan === null)
    return 'It has no rate plan, so its calls have no price: choose one in “Change”.'
  return isLow
    ? 'Calls are refused when its balance is used up: top it up, or give it a credit limit.'
    : undefined
}
