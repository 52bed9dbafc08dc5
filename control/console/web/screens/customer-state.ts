/** What an operator has to know of a customer first. */
import type { Customer } from '../api/views.ts'
import type { Tone } from '../parts/tone.ts'

export function customerState({
  is_active,
  is_balance_low,
}: Pick<Customer, 'is_active' | 'is_balance_low'>): readonly [Tone, string] {
  if (!is_active) return ['plain', 'inactive']
  return is_balance_low ? ['warn', 'low balance'] : ['good', 'active']
}
