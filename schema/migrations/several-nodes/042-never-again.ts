/**
 * Ids that are not given again: what is stored of a removed tenant, customer or carrier names it by its id, and would be
 * taken for that of the next one. A PostgreSQL server never gives one again. Changes of carriers and customers name the
 * fields that they are about. Requests of keys in the last hour are counted by minute.
 */
import type { OnceOnly } from '../../rebuild.ts'

/** Tables whose rows are removed, and named by their ids elsewhere. */
export const onceOnly: OnceOnly = {
  tables: [
    'tenant',
    'customer',
    'wallet',
    'carrier',
    'carrier_gateway',
    'dispatcher_set',
    'dispatcher_node',
    'outbound_route',
    'inbound_route',
    'extension',
    'ai_agent',
    'rate_plan',
    'rate',
    'application_key',
    'user',
  ],
  // Ids of tenants that were removed before.
  given: {
    tenant: [
      'SELECT max(tenant_id) FROM cdr',
      'SELECT max(tenant_id) FROM audit_entry',
      'SELECT max(tenant_id) FROM change_entry',
      'SELECT max(tenant_id) FROM state_change',
    ],
  },
}

export const sql = `
UPDATE change_entry SET target_kind = 'customer' WHERE target_kind = 'customer_limits';
UPDATE change_entry
  SET state_before = CASE state_before WHEN '"active"' THEN '{"is_active":true}' ELSE '{"is_active":false}' END
  WHERE target_kind = 'carrier' AND state_before IN ('"active"', '"inactive"');
UPDATE change_entry
  SET state_after = CASE state_after WHEN '"active"' THEN '{"is_active":true}' ELSE '{"is_active":false}' END
  WHERE target_kind = 'carrier' AND state_after IN ('"active"', '"inactive"');

CREATE TABLE application_key_minute (
  application_key_id INTEGER NOT NULL,
  minute INTEGER NOT NULL,
  requests INTEGER NOT NULL,
  PRIMARY KEY (application_key_id, minute)
) STRICT, WITHOUT ROWID;
CREATE INDEX application_key_minute_age ON application_key_minute (minute);
`
