/** The dialog that makes or changes a customer. */
import { getRows } from '../api/api.ts'
import { may } from '../api/session.ts'
import type { Customer, RatePlan } from '../api/views.ts'
import type { Tone } from '../parts/format.ts'
import { Dialog } from '../parts/dialog.tsx'
import { useResource } from '../parts/resource.ts'
import { saveForm, SchemaFields, type SchemaForm } from '../parts/schema-form.tsx'

const customerForm = (): SchemaForm => ({
  path: '/customers',
  names: [
    'name',
    'rate_plan',
    'numbers',
    'email',
    'credit_limit',
    'low_balance_threshold',
    'max_daily_spend',
    'max_concurrent_calls',
    'max_cps',
    'max_call_seconds',
    'is_active',
    ...(may('wallets:write') ? ['balance'] : []),
    'tenant',
  ],
  labels: {
    email: 'E-mail',
    low_balance_threshold: 'Low balance below',
    max_daily_spend: 'Spend a day',
    max_concurrent_calls: 'Calls at once',
    max_cps: 'Calls per second',
    max_call_seconds: 'Seconds a call',
    is_active: 'May call',
    balance: 'Opening balance',
  },
  hints: {
    rate_plan: 'None: no call has a price.',
    numbers: 'One a line.',
    max_daily_spend: '0: no limit.',
    max_concurrent_calls: '0: no limit.',
    max_cps: '0: no limit.',
    max_call_seconds: '0: no limit.',
  },
})

interface CustomerFormProps {
  /** Undefined: a new one. */
  readonly customer: Customer | undefined
  readonly onClose: () => void
}

export function CustomerForm({ customer, onClose }: CustomerFormProps) {
  const plans = useResource('rate plans', () => getRows<RatePlan>('/rate-plans?limit=200'))
  const isNew = customer === undefined
  const form = customerForm()
  return (
    <Dialog
      title={isNew ? 'New customer' : 'Change this customer'}
      action={isNew ? 'Create' : 'Save'}
      onConfirm={(entered) => saveForm(form, entered, customer)}
      onClose={onClose}
    >
      <SchemaFields
        form={form}
        row={customer}
        suggestions={{ rate_plan: plans.data.value?.rows.map(({ name }) => name) ?? [] }}
      />
    </Dialog>
  )
}

/** Facts that an operator must know first. */
export function customerState({
  is_active,
  is_balance_low,
}: Pick<Customer, 'is_active' | 'is_balance_low'>): readonly [Tone, string] {
  if (!is_active) return ['plain', 'inactive']
  return is_balance_low ? ['warn', 'low balance'] : ['good', 'active']
}
