/** Which node has the way to a phone: its connection, or the socket that a NAT lets answer. */
export const sql = `
ALTER TABLE binding ADD COLUMN node TEXT NOT NULL DEFAULT '';
`

/** A changed extension is told with its id, so that other nodes read that one and not all of them. */
export const forServer = `
DROP TRIGGER note_change ON extension;
CREATE FUNCTION note_change_of_extensions() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE ids text[];
BEGIN
  ids := ARRAY(SELECT id::text FROM changed LIMIT 9);
  IF cardinality(ids) > 8 THEN ids := ARRAY['']; END IF;
  PERFORM note_change_of('extension', id) FROM unnest(ids) AS id;
  RETURN NULL;
END $$;
CREATE TRIGGER note_insert AFTER INSERT ON extension REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_change_of_extensions();
CREATE TRIGGER note_update AFTER UPDATE ON extension REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_change_of_extensions();
CREATE TRIGGER note_delete AFTER DELETE ON extension REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_change_of_extensions();
`
