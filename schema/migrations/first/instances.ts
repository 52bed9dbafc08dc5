/**
 * Settings of the database, its instances, what they share (limits, money and bans), and notices of
 * changes.
 */
export const sql = `
-- Values that the program generated and must keep, such as the secret of its tokens.
CREATE TABLE setting (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO setting (name, value) VALUES ('database_id', lower(hex(randomblob(16))));

-- The processes that serve from a PostgreSQL database. An SQLite database has one, and no row.
-- longest_grant_seconds: what a node holds is not freed before the calls are over that it
-- paid for. away_ms: for so long the node grants without the server, and another disk does not
-- get its name.
CREATE TABLE node (
  name TEXT PRIMARY KEY,
  epoch INTEGER NOT NULL,
  install_id TEXT NOT NULL,
  address TEXT NOT NULL,
  sip_uri TEXT NOT NULL,
  version TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('starting', 'serving', 'draining', 'stopped')),
  live_calls INTEGER NOT NULL,
  started_at INTEGER NOT NULL,
  heartbeat_at INTEGER NOT NULL,
  longest_grant_seconds INTEGER NOT NULL DEFAULT 60,
  sip_addresses TEXT NOT NULL DEFAULT '',
  away_ms INTEGER NOT NULL DEFAULT 10000
) STRICT, WITHOUT ROWID;

-- What each process may use without asking of something that all nodes draw from. kind: a limit
-- (calls at once, calls in a second), requests of a client in a minute, a wallet, whose id is the
-- resource, or the cap of a spend guard in a period: its uuid and the start. process is one run of a node; a share of a cap
-- outlives it, as it counts as spent. request grows with each request of a process, version with
-- each change. SQLite has those of caps, of its one process.
CREATE TABLE share (
  kind TEXT NOT NULL CHECK (kind IN ('limit', 'request', 'wallet', 'cap')),
  resource TEXT NOT NULL,
  node TEXT NOT NULL,
  process TEXT NOT NULL,
  amount INTEGER NOT NULL CHECK (amount >= 0),
  request INTEGER NOT NULL,
  version INTEGER NOT NULL,
  PRIMARY KEY (kind, resource, node, process)
) STRICT, WITHOUT ROWID;
CREATE INDEX share_node ON share (node, kind, process);

-- Sources that no node listens to. On PostgreSQL, version is the number of the transaction that
-- has stored the ban, so that a node reads only those that are new to it. Empty on SQLite.
CREATE TABLE source_ban (
  source TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('operator', 'proven', 'claimed')),
  reason TEXT NOT NULL,
  since INTEGER NOT NULL,
  until INTEGER NOT NULL,
  version INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (kind, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX source_ban_age ON source_ban (until);
CREATE INDEX source_ban_version ON source_ban (version, kind, source);

-- Which tables have been changed lately, so that each process that shares a PostgreSQL database
-- loads again what it has in memory. One row for each transaction and table, so that writers do not
-- wait for each other. version is the number of the transaction. detail says which part has
-- changed, and is empty for all. Empty on SQLite, which has its own counter.
CREATE TABLE change_counter (
  version INTEGER NOT NULL,
  topic TEXT NOT NULL,
  detail TEXT NOT NULL,
  changed_at INTEGER NOT NULL,
  PRIMARY KEY (version, topic, detail)
) STRICT, WITHOUT ROWID;
CREATE INDEX change_counter_age ON change_counter (changed_at);
`

/** Changed rows of one statement that instances are told; with more, they read the whole table. */
const MAX_DETAILS = 100

export const forServer = `
-- Sets the shares of one process. It gets base, and up to extra of a fair part of what is free
-- beyond, never more than the others have left of the bound, and never less than it uses: that is
-- so already. The bound of a wallet is its money, or what the limit of the day leaves; what is used
-- of it may have been spent meanwhile, and counts only as far as it is stored. One caller of a
-- resource at a time: settlement locks wallets in the same order. A process that is alone has what
-- others of its node had. A request that was overtaken by a later one of its process changes
-- nothing, and is not among the answers.
CREATE FUNCTION take_shares(asked json, of_kind text, of_node text, of_process text, number bigint,
  nodes bigint, is_alone bigint, now_ms bigint)
RETURNS TABLE (of_resource text, granted bigint, elsewhere bigint, stored_as bigint, is_of_day boolean)
LANGUAGE plpgsql AS $$
DECLARE
  one record;
  bound bigint;
  own bigint;
  room bigint;
BEGIN
  FOR one IN
    SELECT t.*, CASE of_kind WHEN 'wallet' THEN CAST(t.name AS bigint)
      ELSE hashtextextended(t.name, 11) END AS lock
    FROM json_to_recordset(asked)
      AS t(name text, used bigint, base bigint, extra bigint, at_most bigint, version bigint) ORDER BY lock
  LOOP
    bound := one.at_most;
    is_of_day := FALSE;
    IF of_kind = 'wallet' THEN
      SELECT least(money, day), coalesce(day < money, FALSE) INTO bound, is_of_day FROM (
        SELECT balance_micros + credit_limit_micros AS money,
          CASE WHEN max_daily_spend_micros > 0 THEN max_daily_spend_micros -
            CASE WHEN spent_on >= now_ms - now_ms % 86400000 THEN spent_micros ELSE 0 END END AS day
        FROM wallet JOIN customer ON customer.id = customer_id
        WHERE wallet.id = one.lock FOR NO KEY UPDATE OF wallet
      ) AS locked;
      CONTINUE WHEN NOT FOUND;
    ELSE
      PERFORM pg_advisory_xact_lock(one.lock);
    END IF;
    SELECT coalesce(sum(amount) FILTER (WHERE is_own), 0), coalesce(sum(amount) FILTER (WHERE NOT is_own), 0)
      INTO own, elsewhere
      FROM (SELECT amount, node = of_node AND (is_alone = 1 OR process = of_process) AS is_own
        FROM share WHERE kind = of_kind AND resource = one.name) AS shares;
    room := greatest(bound - elsewhere, 0);
    granted := greatest(
      CASE of_kind WHEN 'wallet' THEN least(one.used, own) ELSE one.used END,
      least(room, one.base + least(one.extra, greatest(room - one.base, 0) / nodes)));
    elsewhere := least(elsewhere, 9007199254740991);
    INSERT INTO share AS known (kind, resource, node, process, amount, request, version)
      VALUES (of_kind, one.name, of_node, of_process, granted, number, one.version + 1)
      ON CONFLICT (kind, resource, node, process) DO UPDATE
        SET amount = excluded.amount, request = excluded.request,
          version = greatest(known.version, one.version) + 1
        WHERE known.request < excluded.request
      RETURNING version INTO stored_as;
    IF FOUND THEN
      IF is_alone = 1 THEN
        DELETE FROM share
          WHERE kind = of_kind AND resource = one.name AND node = of_node AND process <> of_process;
      END IF;
      of_resource := one.name;
      RETURN NEXT;
    END IF;
  END LOOP;
END $$;

ALTER TABLE source_ban ALTER COLUMN version SET DEFAULT CAST(CAST(pg_current_xact_id() AS text) AS bigint);

-- Nodes hear that bans were added, or which sources were lifted. They hear nothing of a ban that is
-- removed when it is over.
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
  EXECUTE format('SELECT ARRAY(SELECT DISTINCT * FROM (%s) r LIMIT ${MAX_DETAILS + 1})', rows) INTO ids;
  IF cardinality(ids) > ${MAX_DETAILS} THEN ids := ARRAY['']; END IF;
  PERFORM note_change_of(TG_TABLE_NAME, id) FROM unnest(ids) AS id;
  RETURN NULL;
END $$;
`

/** A trigger that notifies instances when the table, or one of `columns`, has changed. */
export const noteAnyChange = (table: string, columns?: string): string => `
CREATE TRIGGER note_change AFTER INSERT OR DELETE OR UPDATE${columns === undefined ? '' : ` OF ${columns}`}
  ON "${table}" FOR EACH STATEMENT EXECUTE FUNCTION note_change();`

/**
 * A trigger that notifies instances of the values of `column` in the changed rows, so that they
 * read only these.
 */
export const noteEachRow = (table: string, column: string): string => `
CREATE TRIGGER note_insert AFTER INSERT ON ${table} REFERENCING NEW TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_changed_rows('${column}');
CREATE TRIGGER note_update AFTER UPDATE ON ${table} REFERENCING OLD TABLE AS changed NEW TABLE AS added
  FOR EACH STATEMENT EXECUTE FUNCTION note_changed_rows('${column}');
CREATE TRIGGER note_delete AFTER DELETE ON ${table} REFERENCING OLD TABLE AS changed
  FOR EACH STATEMENT EXECUTE FUNCTION note_changed_rows('${column}');`
