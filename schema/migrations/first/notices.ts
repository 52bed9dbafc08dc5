/**
 * Which tables have been changed lately, so that each process that shares a PostgreSQL database loads again what it has
 * in memory. SQLite has its own counter, and the table stays empty there.
 */

export const sql = `
-- One row for each transaction and table, so that writers do not wait for each other. version is the
-- number of the transaction. detail says which part has changed, and is empty for all.
CREATE TABLE change_counter (
  version INTEGER NOT NULL,
  topic TEXT NOT NULL,
  detail TEXT NOT NULL,
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (version, topic, detail)
) STRICT, WITHOUT ROWID;
CREATE INDEX change_counter_age ON change_counter (changed_at);
`

/** What is told of one statement; of more rows: nothing, and the whole table is read. */
const MAX_TOLD = 100

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
`

/** Nodes hear that the table has changed, or one of `columns`. */
export const noteAnyChange = (table: string, columns?: string): string => `
CREATE TRIGGER note_change AFTER INSERT OR DELETE OR UPDATE${columns === undefined ? '' : ` OF ${columns}`}
  ON "${table}" FOR EACH STATEMENT EXECUTE FUNCTION note_change();`

/** Nodes hear the values of `column` in the changed rows, and read these rows again. */
export const noteEachRow = (table: string, column: string): string => `
CREATE TRIGGER note_insert AFTER INSERT ON ${table} REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_changed_rows('${column}');
CREATE TRIGGER note_update AFTER UPDATE ON ${table} REFERENCING OLD TABLE AS changed NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION note_changed_rows('${column}');
CREATE TRIGGER note_delete AFTER DELETE ON ${table} REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_changed_rows('${column}');`
