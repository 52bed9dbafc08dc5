/** Spend guards in the database, and what is taken of their caps. */
import { sql, type RawBuilder } from 'kysely'
import type { Store } from '../../../schema/open.ts'
import { all, execute, first } from '../../../schema/sql/query.ts'
import type { SpendGuard } from '../../../schema/contracts/limits.ts'
import type { Meter } from './meter.ts'

/** Those that have not ended; an expired one is among them. */
export async function loadGuards(store: Store, at: number): Promise<readonly SpendGuard[]> {
  const rows = await all(
    store,
    store.db
      .selectFrom('spend_guard')
      .leftJoin('extension', 'extension.id', 'spend_guard.extension_id')
      .selectAll('spend_guard')
      .select(['extension.extension as number', 'extension.tenant_id as owner'])
      .where('ended_at', 'is', null)
      .where(({ or, eb }) => or([eb('expires_at', 'is', null), eb('expires_at', '>', at)]))
      .orderBy('created_at')
      .orderBy('guard_uuid'),
  )
  return rows.map((row) => ({
    guardUuid: row.guard_uuid,
    ...scopeOf(row),
    prefix: row.prefix,
    action: row.action,
    amountMicros: row.amount_micros,
    currency: row.currency,
    per: row.per,
    startsAt: row.created_at,
    expiresAt: row.expires_at,
    endsCallsBefore: row.ends_calls_before,
    extension:
      row.number === null || row.owner === null
        ? null
        : { number: row.number, tenantId: row.owner },
  }))
}

interface ScopeColumns {
  readonly customer_id: number | null
  readonly extension_id: number | null
  readonly tenant_id: number | null
}

function scopeOf({ customer_id, extension_id, tenant_id }: ScopeColumns) {
  if (customer_id !== null) return { scope: 'customer', scopeId: customer_id } as const
  if (extension_id !== null) return { scope: 'extension', scopeId: extension_id } as const
  return { scope: 'tenant', scopeId: tenant_id ?? 0 } as const
}

/** What was taken of caps in periods that begin at `since` or later. */
export function loadUse(store: Store, since: number) {
  const used = store.db.selectFrom('spend_guard_use')
  const columns = ['guard_uuid', 'period_start', 'taken_micros'] as const
  return all(store, used.select(columns).where('period_start', '>=', since))
}

interface Taken {
  readonly given_micros: number
  readonly taken_micros: number
}

/**
 * Takes so much of a cap, or what is left of it. One statement on one row: processes that ask at once get one after the
 * other, and never more than the cap in all. An answer that is lost is taken all the same, and not granted: a cap is then
 * used up sooner, never exceeded. A server that has lost commits is told what this process has taken before. Undefined: the
 * guard is not in force any more.
 */
export function take(store: Store, meter: Meter, micros: number): Promise<Taken | undefined> {
  const { guard, periodStart } = meter
  const use = 'spend_guard_use'
  const own = whole(meter.ownMicros)
  const beyond = sql<number>`${sql.ref('amount_micros')} - ${own}`
  const wanted = lesser(whole(micros), positive(beyond))
  const asked = store.db
    .selectFrom('spend_guard')
    .select([
      'guard_uuid',
      whole(periodStart).as('period_start'),
      'amount_micros',
      sql<number>`${own} + ${wanted}`.as('taken_micros'),
      wanted.as('given_micros'),
    ])
    .where('guard_uuid', '=', guard.guardUuid)
    .where('action', '=', 'cap')
    .where('ended_at', 'is', null)
  const known = sql<number>`excluded.taken_micros - excluded.given_micros`
  const before = greater(sql.ref(`${use}.taken_micros`), known)
  const room = positive(sql<number>`excluded.amount_micros - ${before}`)
  const given = lesser(room, sql.ref('excluded.given_micros'))
  return first(
    store,
    store.db
      .insertInto(use)
      .columns(['guard_uuid', 'period_start', 'amount_micros', 'taken_micros', 'given_micros'])
      .expression(asked)
      .onConflict((conflict) =>
        conflict.columns(['guard_uuid', 'period_start']).doUpdateSet({
          amount_micros: sql`excluded.amount_micros`,
          given_micros: given,
          taken_micros: sql`${before} + ${given}`,
        }),
      )
      .returning(['given_micros', 'taken_micros']),
  )
}

/** Gives back what no call of this process needs. */
export function giveBack(store: Store, { guard, periodStart }: Meter, micros: number) {
  const taken = sql<number>`CASE WHEN taken_micros > ${whole(micros)} THEN taken_micros - ${whole(micros)} ELSE 0 END`
  return execute(
    store,
    store.db
      .updateTable('spend_guard_use')
      .set({ taken_micros: taken })
      .where('guard_uuid', '=', guard.guardUuid)
      .where('period_start', '=', periodStart),
  )
}

const whole = (number: number): RawBuilder<number> => sql<number>`CAST(${number} AS bigint)`

const positive = (number: RawBuilder<unknown>): RawBuilder<number> => greater(number, sql`0`)

const greater = (one: RawBuilder<unknown>, other: RawBuilder<unknown>): RawBuilder<number> =>
  sql<number>`CASE WHEN ${one} > ${other} THEN ${one} ELSE ${other} END`

const lesser = (one: RawBuilder<unknown>, other: RawBuilder<unknown>): RawBuilder<number> =>
  sql<number>`CASE WHEN ${one} < ${other} THEN ${one} ELSE ${other} END`
