/** Adds to the counts of keys: several nodes add to the same rows. */
import { sql, type RawBuilder } from 'kysely'
import type { Store } from '../../schema/open.ts'
import { prepare, type Prepared } from '../../schema/sql/prepared.ts'
import type { ApiHourTable, KeyAddressTable } from '../../schema/tables/causes.ts'

/** Written out: SQLite calls it `min`, PostgreSQL `least`. */
const earlier = (table: 'key_address' | 'api_hour'): RawBuilder<number> => {
  const known = sql.ref(`${table}.first_at`)
  return sql<number>`CASE WHEN excluded.first_at < ${known} THEN excluded.first_at ELSE ${known} END`
}

const later = (table: 'key_address' | 'api_hour'): RawBuilder<number> => {
  const known = sql.ref(`${table}.last_at`)
  return sql<number>`CASE WHEN excluded.last_at > ${known} THEN excluded.last_at ELSE ${known} END`
}

export const addAddress = (store: Store): Prepared<KeyAddressTable, unknown> =>
  prepare<KeyAddressTable, unknown>(store, (db, param) =>
    db
      .insertInto('key_address')
      .values({
        application_key_id: param('application_key_id'),
        address: param('address'),
        first_at: param('first_at'),
        last_at: param('last_at'),
        requests: param('requests'),
        denied: param('denied'),
      })
      .onConflict((conflict) =>
        conflict.columns(['application_key_id', 'address']).doUpdateSet((row) => ({
          first_at: earlier('key_address'),
          last_at: later('key_address'),
          requests: row('key_address.requests', '+', row.ref('excluded.requests')),
          denied: row('key_address.denied', '+', row.ref('excluded.denied')),
        })),
      ),
  )

export const addHour = (store: Store): Prepared<ApiHourTable, unknown> =>
  prepare<ApiHourTable, unknown>(store, (db, param) =>
    db
      .insertInto('api_hour')
      .values({
        hour: param('hour'),
        application_key_id: param('application_key_id'),
        route: param('route'),
        outcome: param('outcome'),
        requests: param('requests'),
        first_at: param('first_at'),
        last_at: param('last_at'),
      })
      .onConflict((conflict) =>
        conflict.columns(['hour', 'application_key_id', 'route', 'outcome']).doUpdateSet((row) => ({
          first_at: earlier('api_hour'),
          last_at: later('api_hour'),
          requests: row('api_hour.requests', '+', row.ref('excluded.requests')),
        })),
      ),
  )
