/**
 * Each changed row is told with its id, or with that of the row that owns it, so that the nodes read that one and not
 * the whole table. Of more than eight prefixes of rates, their plans are told.
 */
export const sql = ''

/** What is told of a row; beyond so many rows of one statement: nothing, and the whole table is read. */
const MAX_TOLD = 100

/** By table: the column whose values are told. `extension` has its own trigger since 028. */
const told: Readonly<Record<string, string>> = {
  tenant: 'id',
  tenant_domain: 'tenant_id',
  tenant_number: 'tenant_id',
  ai_agent: 'id',
  carrier: 'id',
  carrier_gateway: 'carrier_id',
  outbound_route: 'id',
  inbound_route: 'id',
  customer: 'id',
  customer_number: 'customer_id',
  dispatcher_set: 'id',
  dispatcher_node: 'dispatcher_set_id',
  rate_plan: 'id',
}

const triggersOf = ([table, column]: readonly [string, string]): string => `
DROP TRIGGER note_change ON ${table};
CREATE TRIGGER note_insert AFTER INSERT ON ${table} REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_changed_rows('${column}');
CREATE TRIGGER note_update AFTER UPDATE ON ${table} REFERENCING OLD TABLE AS changed NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION note_changed_rows('${column}');
CREATE TRIGGER note_delete AFTER DELETE ON ${table} REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_changed_rows('${column}');
`

export const forServer = `
CREATE FUNCTION note_changed_rows() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  rows text := format('SELECT %I::text FROM changed', TG_ARGV[0]);
  ids text[];
BEGIN
  IF TG_OP = 'UPDATE' THEN rows := rows || format(' UNION SELECT %I::text FROM added', TG_ARGV[0]); END IF;
  EXECUTE format('SELECT ARRAY(SELECT DISTINCT * FROM (%s) r LIMIT ${MAX_TOLD + 1})', rows) INTO ids;
  IF cardinality(ids) > ${MAX_TOLD} THEN ids := ARRAY['']; END IF;
  PERFORM note_change_of(TG_TABLE_NAME, id) FROM unnest(ids) AS id;
  RETURN NULL;
END $$;
${Object.entries(told).map(triggersOf).join('')}
CREATE OR REPLACE FUNCTION note_change_of_rates() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE parts text[];
BEGIN
  IF TG_OP = 'UPDATE' THEN
    parts := ARRAY(SELECT rate_plan_id || '/' || prefix FROM changed
             UNION SELECT rate_plan_id || '/' || prefix FROM added LIMIT 9);
  ELSE
    parts := ARRAY(SELECT DISTINCT rate_plan_id || '/' || prefix FROM changed LIMIT 9);
  END IF;
  IF cardinality(parts) > 8 AND TG_OP = 'UPDATE' THEN
    parts := ARRAY(SELECT rate_plan_id::text FROM changed UNION SELECT rate_plan_id::text FROM added LIMIT 9);
  ELSIF cardinality(parts) > 8 THEN
    parts := ARRAY(SELECT DISTINCT rate_plan_id::text FROM changed LIMIT 9);
  END IF;
  IF cardinality(parts) > 8 THEN parts := ARRAY['']; END IF;
  PERFORM note_change_of('rate', part) FROM unnest(parts) AS part;
  RETURN NULL;
END $$;
DROP TRIGGER note_change ON wallet;
CREATE FUNCTION note_changed_wallet() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_change_of('wallet', coalesce(NEW.customer_id, OLD.customer_id)::text);
  RETURN NULL;
END $$;
CREATE TRIGGER note_change AFTER INSERT OR DELETE OR UPDATE OF customer_id, currency ON wallet
  FOR EACH ROW EXECUTE FUNCTION note_changed_wallet();
`
