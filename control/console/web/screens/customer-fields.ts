/** A customer in words, and what can be set of it: as fields of a form and as a body for the API. */
import type { Customer } from '../api/views.ts'
import type { Tone } from '../parts/format.ts'

/** What an operator has to know first. */
export function customerState({
  is_active,
  is_balance_low,
}: Pick<Customer, 'is_active' | 'is_balance_low'>): readonly [Tone, string] {
  if (!is_active) return ['plain', 'inactive']
  return is_balance_low ? ['warn', 'low balance'] : ['good', 'active']
}

export interface CustomerField {
  readonly name: keyof Customer
  readonly label: string
  readonly kind: 'text' | 'email' | 'money' | 'count' | 'lines' | 'flag'
  readonly hint?: string
  readonly isRequired?: boolean
}

export const customerFields: readonly CustomerField[] = [
  { name: 'name', label: 'Name', kind: 'text', isRequired: true },
  { name: 'rate_plan', label: 'Rate plan', kind: 'text', hint: 'none: no call has a price' },
  { name: 'numbers', label: 'Numbers', kind: 'lines', hint: 'one a line' },
  { name: 'email', label: 'E-mail', kind: 'email' },
  { name: 'credit_limit', label: 'Credit limit', kind: 'money' },
  { name: 'low_balance_threshold', label: 'Low balance below', kind: 'money' },
  { name: 'max_daily_spend', label: 'Spend a day', kind: 'money', hint: '0: no limit' },
  { name: 'max_concurrent_calls', label: 'Calls at once', kind: 'count', hint: '0: no limit' },
  { name: 'max_cps', label: 'Calls per second', kind: 'count', hint: '0: no limit' },
  { name: 'max_call_seconds', label: 'Seconds a call', kind: 'count', hint: '0: no limit' },
  { name: 'is_active', label: 'May call', kind: 'flag' },
]

/** As the form shows it. */
export function fieldText(field: CustomerField, customer: Customer | undefined): string {
  if (customer === undefined) return field.kind === 'flag' ? 'on' : ''
  const value = customer[field.name]
  if (field.kind === 'flag') return value === true ? 'on' : ''
  return Array.isArray(value) ? value.join('\n') : String(value ?? '')
}

/**
 * The fields that differ from what the form showed at first: what others have changed meanwhile stays.
 * `textOf`: what the form has now, '' where it has nothing.
 */
export function changedFields(
  customer: Customer | undefined,
  textOf: (name: string) => string,
): Readonly<Record<string, unknown>> {
  const changed = customerFields.filter(
    (field) => textOf(field.name).trim() !== fieldText(field, customer),
  )
  return Object.fromEntries(
    changed.map((field) => [field.name, valueOf(field, textOf(field.name))]),
  )
}

function valueOf({ kind, isRequired }: CustomerField, text: string): unknown {
  const trimmed = text.trim()
  switch (kind) {
    case 'flag':
      return trimmed === 'on'
    case 'lines':
      return trimmed.split(/[\s,]+/).filter(Boolean)
    case 'money':
      return trimmed === '' ? '0' : trimmed
    case 'count':
      return Number(trimmed)
    case 'text':
    case 'email':
      return trimmed === '' && isRequired !== true ? null : trimmed
  }
}
