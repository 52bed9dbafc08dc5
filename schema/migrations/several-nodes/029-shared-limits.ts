/**
 * What several nodes decide together: how many requests of a client they admit, and which of them carries out a
 * request with an `Idempotency-Key`. On SQLite, which one process serves, both tables stay empty.
 */
export const sql = `
CREATE TABLE rate_grant (
  id INTEGER PRIMARY KEY,
  bucket TEXT NOT NULL,
  permits INTEGER NOT NULL,
  ends_at INTEGER NOT NULL
) STRICT;
CREATE INDEX rate_grant_bucket ON rate_grant (bucket, ends_at);
CREATE INDEX rate_grant_age ON rate_grant (ends_at);

CREATE TABLE idempotent_claim (
  actor TEXT NOT NULL,
  operation TEXT NOT NULL,
  key_hash BLOB NOT NULL CHECK (length(key_hash) = 32),
  request_hash BLOB NOT NULL CHECK (length(request_hash) = 32),
  claim BLOB NOT NULL,
  claimed_until INTEGER NOT NULL,
  PRIMARY KEY (actor, operation, key_hash)
) STRICT, WITHOUT ROWID;
`

/**
 * Grants up to `wanted` permits of a bucket that has `at_most` in each window, by the server's clock: the clocks
 * of nodes differ. One caller of a bucket at a time, so that the sum is exact. After a crash of the server the
 * windows are empty: their table is not logged.
 */
export const forServer = `
ALTER TABLE rate_grant SET UNLOGGED;

CREATE FUNCTION take_permits(of_bucket text, at_most bigint, wanted bigint, window_ms bigint)
RETURNS TABLE (granted bigint, used bigint, opens_in_ms bigint) LANGUAGE plpgsql AS $$
DECLARE
  now_ms bigint;
  first_end bigint;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(of_bucket, 7));
  now_ms := floor(extract(epoch FROM clock_timestamp()) * 1000);
  DELETE FROM rate_grant WHERE bucket = of_bucket AND ends_at <= now_ms;
  SELECT coalesce(sum(permits), 0), min(ends_at) INTO used, first_end
    FROM rate_grant WHERE bucket = of_bucket;
  granted := least(wanted, greatest(at_most - used, 0));
  IF granted > 0 THEN
    INSERT INTO rate_grant (bucket, permits, ends_at) VALUES (of_bucket, granted, now_ms + window_ms);
  END IF;
  used := used + granted;
  opens_in_ms := coalesce(first_end - now_ms, window_ms);
  RETURN NEXT;
END $$;
`
