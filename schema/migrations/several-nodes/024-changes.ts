/**
 * Which tables have been changed lately, so that each process that shares a PostgreSQL database loads again what it
 * has in memory. One row for each transaction and table, so that writers do not wait for each other. `version` is the
 * number of the transaction; `detail` says which part has changed, and is empty for all. SQLite has its own counter,
 * and the table stays empty there.
 */
export const sql = `
CREATE TABLE change_counter (
  version INTEGER NOT NULL,
  topic TEXT NOT NULL,
  detail TEXT NOT NULL,
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (version, topic, detail)
) STRICT, WITHOUT ROWID;
CREATE INDEX change_counter_age ON change_counter (changed_at);
`

/** A change of other columns of these tables is none: what every request or call of a customer writes. */
const columns: Readonly<Record<string, string>> = {
  application_key:
    'uuid, kind, name, description, key_prefix, key_hash, scopes, rate_limit_rpm, expires_at, is_active, revoked_at, tenant_id, domain, allowed_ips, owner_username',
  wallet: 'customer_id, currency',
}

/** Beside `rate`. */
const noted = [
  'application_key',
  'application_key_previous',
  'user',
  'tenant',
  'tenant_domain',
  'tenant_number',
  'extension',
  'ai_agent',
  'dispatcher_set',
  'dispatcher_node',
  'carrier',
  'carrier_gateway',
  'outbound_route',
  'inbound_route',
  'customer',
  'customer_number',
  'wallet',
  'rate_plan',
  'webhook_endpoint',
]

export const forServer = `
CREATE FUNCTION note_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_change_of(TG_TABLE_NAME, '');
  RETURN NULL;
END $$;

CREATE FUNCTION note_change_of(changed_topic text, changed_detail text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE number bigint := pg_current_xact_id()::text::bigint;
BEGIN
  INSERT INTO change_counter (version, topic, detail, changed_at)
  VALUES (number, changed_topic, changed_detail, floor(extract(epoch FROM clock_timestamp()) * 1000))
  ON CONFLICT DO NOTHING;
  PERFORM pg_notify('tollgate_changes', number || ' ' || changed_topic || ' ' || changed_detail);
END $$;

CREATE FUNCTION note_change_of_rates() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE prefixes text[];
BEGIN
  IF TG_OP = 'UPDATE' THEN
    prefixes := ARRAY(SELECT rate_plan_id || '/' || prefix FROM changed
                UNION SELECT rate_plan_id || '/' || prefix FROM added LIMIT 9);
  ELSE
    prefixes := ARRAY(SELECT DISTINCT rate_plan_id || '/' || prefix FROM changed LIMIT 9);
  END IF;
  IF cardinality(prefixes) > 8 THEN prefixes := ARRAY['']; END IF;
  PERFORM note_change_of('rate', prefix) FROM unnest(prefixes) AS prefix;
  RETURN NULL;
END $$;

CREATE TRIGGER note_insert AFTER INSERT ON rate REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_change_of_rates();
CREATE TRIGGER note_update AFTER UPDATE ON rate REFERENCING OLD TABLE AS changed NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION note_change_of_rates();
CREATE TRIGGER note_delete AFTER DELETE ON rate REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_change_of_rates();
${noted
  .map(
    (table) => `
CREATE TRIGGER note_change AFTER INSERT OR DELETE OR UPDATE${columns[table] === undefined ? '' : ` OF ${columns[table]}`}
  ON "${table}" FOR EACH STATEMENT EXECUTE FUNCTION note_change();`,
  )
  .join('')}
`
