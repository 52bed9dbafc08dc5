/**
 * Bans get the number of the transaction that has stored them, so that a node reads only those that are new to it. What
 * is told of a change is `added`, or the sources that were lifted; of many, nothing: then all are read again. A ban that
 * is removed when it is over tells nothing.
 */
export const sql = `
ALTER TABLE source_ban ADD COLUMN version INTEGER NOT NULL DEFAULT 0;
CREATE INDEX source_ban_version ON source_ban (version, kind, source);
`

export const forServer = `
ALTER TABLE source_ban ALTER COLUMN version SET DEFAULT CAST(CAST(pg_current_xact_id() AS text) AS bigint);

DROP TRIGGER note_change ON source_ban;

CREATE FUNCTION note_added_bans() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM note_change_of('source_ban', 'added');
  RETURN NULL;
END $$;

CREATE FUNCTION note_lifted_bans() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  lifted text[] := ARRAY(
    SELECT DISTINCT source FROM removed
    WHERE until > floor(extract(epoch FROM clock_timestamp()) * 1000) LIMIT 9);
BEGIN
  IF cardinality(lifted) > 8 THEN lifted := ARRAY['']; END IF;
  PERFORM note_change_of('source_ban', source) FROM unnest(lifted) AS source;
  RETURN NULL;
END $$;

CREATE TRIGGER note_insert AFTER INSERT ON source_ban
  FOR EACH STATEMENT EXECUTE FUNCTION note_added_bans();
CREATE TRIGGER note_update AFTER UPDATE ON source_ban
  FOR EACH STATEMENT EXECUTE FUNCTION note_added_bans();
CREATE TRIGGER note_delete AFTER DELETE ON source_ban REFERENCING OLD TABLE AS removed
  FOR EACH STATEMENT EXECUTE FUNCTION note_lifted_bans();
`
