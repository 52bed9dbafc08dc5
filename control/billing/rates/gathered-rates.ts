/**
 * Stages many rates in a temporary table, which needs no lock, so that the one transaction that puts them
 * into force is short.
 */
import { type MaybeLocal, sqliteOf } from '../../../schema/sql/handle.ts'
import type { rateColumns } from './rate-store.ts'

export interface GatheredRate extends ReturnType<typeof rateColumns> {
  readonly rate_plan_id: number
}

const identity = ['rate_plan_id', 'prefix', 'effective_from_at'] as const
const terms = [
  ...(['description', 'rate_per_minute_micros', 'connect_fee_micros', 'is_blocked'] as const),
  ...(['first_increment_seconds', 'first_rate_per_minute_micros', 'increment_seconds'] as const),
  'effective_to_at',
] as const
const columns = [...identity, ...terms]

let tables = 0

/** Creates a table of this connection, outside the database file. Each import has its own. */
export function gatherRates(store: MaybeLocal) {
  const sqlite = sqliteOf(store)
  const table = `temp.gathered_rates_${(tables += 1)}`
  sqlite.exec(`CREATE TABLE ${table} (${columns.join(', ')})`)
  const insert = sqlite.prepare(
    `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map((name) => `@${name}`).join(', ')})`,
  )
  const addAll = sqlite.transaction((rates: readonly GatheredRate[]) => {
    for (const rate of rates) insert.run(rate)
  })
  return {
    add: addAll,
    /** Replaces the placeholder of a plan that did not exist yet. */
    setPlan: (placeholder: number, planId: number): void => {
      sqlite
        .prepare(`UPDATE ${table} SET rate_plan_id = ? WHERE rate_plan_id = ?`)
        .run(planId, placeholder)
    },
    /** Upserts the staged rates, inside the open transaction. Returns how many rows are new or changed. */
    take: (): number =>
      sqlite
        .prepare(
          `INSERT INTO rate (${columns.join(', ')}) SELECT ${columns.join(', ')} FROM ${table} WHERE true
         ON CONFLICT (rate_plan_id, prefix, ifnull(effective_from_at, -1))
         DO UPDATE SET ${terms.map((name) => `${name} = excluded.${name}`).join(', ')}
         WHERE ${terms.map((name) => `rate.${name} IS NOT excluded.${name}`).join(' OR ')}`,
        )
        .run().changes,
    drop: () => sqlite.exec(`DROP TABLE ${table}`),
  }
}
