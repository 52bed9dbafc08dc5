/**
 * What each of several nodes may use of a limit without asking (calls at once, calls in a second), and which sources
 * none of them listens to. `process` is one run of a node: two of them serve during an upgrade. `request` grows with
 * each request of a process. On SQLite, which one process serves, both tables stay empty.
 */
export const sql = `
CREATE TABLE limit_share (
  resource TEXT NOT NULL,
  node TEXT NOT NULL,
  process TEXT NOT NULL,
  slots INTEGER NOT NULL CHECK (slots >= 0),
  request INTEGER NOT NULL,
  PRIMARY KEY (resource, node, process)
) STRICT, WITHOUT ROWID;
CREATE INDEX limit_share_node ON limit_share (node, process);

CREATE TABLE source_ban (
  source TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('operator', 'proven', 'claimed')),
  reason TEXT NOT NULL,
  since INTEGER NOT NULL,
  until INTEGER NOT NULL,
  PRIMARY KEY (kind, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX source_ban_age ON source_ban (until);
`

/**
 * Sets the shares of one process. It gets `base`, and up to `extra` of a fair part of what is free beyond, never more
 * than the others have left of the limit, and never less than it uses: that is so already. One caller of a resource at
 * a time. A request that was overtaken by a later one of its process changes nothing, and is not among the answers.
 */
export const forServer = `
CREATE FUNCTION take_shares(asked json, of_node text, of_process text, number bigint, nodes bigint)
RETURNS TABLE (of_resource text, granted bigint, elsewhere bigint) LANGUAGE plpgsql AS $$
DECLARE
  one record;
  room bigint;
BEGIN
  FOR one IN
    SELECT t.*, hashtextextended(t.name, 11) AS lock FROM json_to_recordset(asked)
      AS t(name text, used bigint, base bigint, extra bigint, at_most bigint) ORDER BY lock
  LOOP
    PERFORM pg_advisory_xact_lock(one.lock);
    SELECT coalesce(sum(slots), 0) INTO elsewhere FROM limit_share
      WHERE resource = one.name AND NOT (node = of_node AND process = of_process);
    room := greatest(one.at_most - elsewhere, 0);
    granted := greatest(one.used,
      least(room, one.base + least(one.extra, greatest(room - one.base, 0) / nodes)));
    INSERT INTO limit_share AS share (resource, node, process, slots, request)
      VALUES (one.name, of_node, of_process, granted, number)
      ON CONFLICT (resource, node, process) DO UPDATE SET slots = excluded.slots, request = excluded.request
        WHERE share.request < excluded.request;
    IF FOUND THEN
      of_resource := one.name;
      RETURN NEXT;
    END IF;
  END LOOP;
END $$;

CREATE TRIGGER note_change AFTER INSERT OR DELETE OR UPDATE ON source_ban
  FOR EACH STATEMENT EXECUTE FUNCTION note_change();
`
