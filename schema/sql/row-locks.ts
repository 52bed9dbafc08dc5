/**
 * How long statements on PostgreSQL wait for rows that other transactions have locked, and which
 * wallets are locked.
 */

/**
 * An expression that bounds the wait for each lock until the end of the transaction: error 55P03
 * after it.
 */
export const lockWait = (waitMs: number): string => `set_config('lock_timeout', '${waitMs}', true)`

/**
 * Wallets of a JSON array (`$1`) that another transaction has locked. Waits for none.
 */
export const lockedWallets = `WITH asked AS MATERIALIZED (
    SELECT CAST(value AS bigint) AS id FROM json_array_elements_text(CAST($1 AS json))
  ), free AS MATERIALIZED (
    SELECT id FROM wallet WHERE id IN (SELECT id FROM asked) FOR NO KEY UPDATE SKIP LOCKED
  )
  SELECT id FROM wallet
  WHERE id IN (SELECT id FROM asked) AND id NOT IN (SELECT id FROM free)`
