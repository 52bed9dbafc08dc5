/** A spend guard as the API shows it. */
import { z } from 'zod'
import { DAY_MS } from '../../../schema/clock.ts'
import { moneyToDecimal, timeToText } from '../../../schema/columns.ts'
import { guardActions, guardPeriods, guardScopes } from '../../../schema/contracts/spend-guards.ts'
import type { GuardRow, GuardStore } from './guard-store.ts'

const guardStates = ['active', 'expired', 'removed'] as const

export const guardView = z.strictObject({
  guard_id: z.string(),
  scope: z.enum(guardScopes),
  scope_id: z.int(),
  name: z.string().nullable(),
  prefix: z.string(),
  action: z.enum(guardActions),
  amount_exact: z.string().nullable(),
  currency: z.string().nullable(),
  per: z.enum(guardPeriods).nullable(),
  used_exact: z.string().nullable().describe('Of a cap: spent, or granted to live calls.'),
  left_exact: z.string().nullable(),
  state: z.enum(guardStates),
  set_by: z.enum(['platform', 'tenant']).describe('A tenant cannot change those of the platform.'),
  reason: z.string(),
  created_by: z.string(),
  created_at: z.string(),
  expires_at: z.string().nullable(),
  ends_calls_before: z.string().nullable(),
  removed_at: z.string().nullable(),
})

export type GuardView = z.output<typeof guardView>

/** What a view needs of a row. */
export type ShownGuard = Omit<GuardRow, 'changed_at' | 'ended_by'>

/** With what was used of the caps in the period of `at`. */
export async function viewsOf(
  guards: GuardStore,
  rows: readonly ShownGuard[],
  at: number,
): Promise<readonly GuardView[]> {
  const caps = rows.filter(({ action }) => action === 'cap').map(({ guard_uuid }) => guard_uuid)
  const used = await guards.used(caps)
  return rows.map((row) => {
    const start = periodOf(row, at)
    const taken = used.find(
      (use) => use.guard_uuid === row.guard_uuid && use.period_start === start,
    )
    return viewOf(row, taken?.taken_micros ?? 0, at)
  })
}

const periodOf = ({ per, created_at }: Pick<GuardRow, 'per' | 'created_at'>, at: number): number =>
  per === 'day' ? Math.max(created_at, at - (at % DAY_MS)) : created_at

function viewOf(row: ShownGuard, usedMicros: number, at: number): GuardView {
  const isCap = row.action === 'cap'
  return {
    guard_id: row.guard_uuid,
    ...scopeOf(row),
    prefix: row.prefix,
    action: row.action,
    currency: row.currency,
    per: row.per,
    amount_exact: isCap ? moneyToDecimal(row.amount_micros) : null,
    used_exact: isCap ? moneyToDecimal(usedMicros) : null,
    left_exact: isCap ? moneyToDecimal(Math.max(0, row.amount_micros - usedMicros)) : null,
    state: stateAt(row, at),
    set_by: row.set_by_tenant_id === null ? 'platform' : 'tenant',
    reason: row.reason,
    created_by: row.created_by,
    created_at: timeToText(row.created_at),
    expires_at: textOrNull(row.expires_at),
    ends_calls_before: textOrNull(row.ends_calls_before),
    removed_at: textOrNull(row.ended_at),
  }
}

const textOrNull = (at: number | null): string | null => (at === null ? null : timeToText(at))

function stateAt(
  { ended_at, expires_at }: Pick<GuardRow, 'ended_at' | 'expires_at'>,
  at: number,
): GuardView['state'] {
  if (ended_at !== null) return 'removed'
  return expires_at !== null && expires_at <= at ? 'expired' : 'active'
}

type Named = Pick<
  GuardRow,
  'customer_id' | 'extension_id' | 'tenant_id' | 'customer' | 'number' | 'domain' | 'tenant'
>

export function scopeOf(row: Named): Pick<GuardView, 'scope' | 'scope_id' | 'name'> {
  const { customer_id, extension_id, tenant_id, number, domain } = row
  if (customer_id !== null) return { scope: 'customer', scope_id: customer_id, name: row.customer }
  if (extension_id !== null)
    return { scope: 'extension', scope_id: extension_id, name: `${number ?? ''}@${domain ?? ''}` }
  return { scope: 'tenant', scope_id: tenant_id ?? 0, name: row.tenant }
}
