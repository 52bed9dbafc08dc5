/** Settlement in SQL for PostgreSQL: each statement takes many rows as JSON. */
import type { Store } from '../../../schema/open.ts'
import type { PreparedStatement } from '../../../schema/sql/statements.ts'

export interface Accepted {
  readonly call_uuid: string
  readonly billsec: number
  readonly cost_micros: number
  readonly balance_after: string | null
  readonly currency: string | null
}

export interface Recorded {
  readonly call_uuid: string
  readonly billsec: number
  readonly currency: string | null
  readonly debit_micros: string | null
  readonly debit_balance: string | null
  readonly debit_wallet: number | null
}

/** A debit that exists, or (without `ref`) a lease of this node. */
interface Known {
  readonly ref: string | null
  readonly wallet_id: number
  readonly amount: string
  readonly balance: string | null
  readonly version: number
}

const columns = `call_uuid, call_id, direction, caller_id_number, caller_id_name, destination_number,
  start_stamp, answer_stamp, end_stamp, post_dial_delay_ms, duration, billsec, disposition, sip_code,
  hangup_cause, hangup_by, denial_code, set_id, node, carrier, attempts, tenant_id, customer_id,
  rate_prefix, cost_micros, currency, source_address, mos_score, mos_source, jitter_ms,
  packet_loss_pct, media_quality, is_recovered, is_unauthorized_by_ocs, required_micros,
  available_micros`

const texts = (parameter: string): string =>
  `(SELECT value FROM json_array_elements_text(CAST(${parameter} AS json)))`
const numbers = (parameter: string): string =>
  `(SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST(${parameter} AS json)))`

export function serverStatements({ statements }: Store) {
  const statement = <R>(sql: string): PreparedStatement<R> => statements.prepare<R>(sql)
  return {
    find: statement<{ readonly call_uuid: string }>(
      `SELECT call_uuid FROM cdr WHERE call_uuid IN ${texts('$1')}`,
    ),
    /** In the order of their uuids: two processes that store the same calls do not wait for each other. */
    insert: statement<{ readonly call_uuid: string }>(
      `INSERT INTO cdr (${columns})
       SELECT ${columns} FROM json_populate_recordset(NULL::cdr, CAST($1 AS json)) ORDER BY call_uuid
       ON CONFLICT (call_uuid) DO NOTHING RETURNING call_uuid`,
    ),
    send: statement(
      `INSERT INTO cdr_outbox (call_uuid, body, attempts, next_attempt_at)
       SELECT call_uuid, body, 0, CAST($2 AS bigint)
       FROM json_to_recordset(CAST($1 AS json)) AS t(call_uuid text, body text)
       ON CONFLICT (call_uuid) DO NOTHING`,
    ),
    accepted: statement<Accepted>(
      `SELECT call_uuid, billsec, cost_micros, CAST(balance_after_micros AS text) AS balance_after, currency
       FROM ocs_report WHERE is_conflict = 0 AND call_uuid IN ${texts('$1')}`,
    ),
    recorded: statement<Recorded>(
      `SELECT cdr.call_uuid, cdr.billsec, cdr.currency, CAST(debit.amount_micros AS text) AS debit_micros,
         CAST(debit.balance_after_micros AS text) AS debit_balance, debit.wallet_id AS debit_wallet
       FROM cdr LEFT JOIN ledger_entry AS debit ON debit.kind = 'debit' AND debit.ref = cdr.call_uuid
       WHERE cdr.call_uuid IN ${texts('$1')}`,
    ),
    lock: statement<{ readonly id: number; readonly balance: string; readonly is_depleted: 0 | 1 }>(
      `SELECT id, CAST(balance_micros AS text) AS balance, is_depleted FROM wallet
       WHERE id IN ${numbers('$1')} ORDER BY id FOR NO KEY UPDATE`,
    ),
    /** After the lock: nothing of it changes any more. */
    known: statement<Known>(
      `SELECT ref, wallet_id, CAST(amount_micros AS text) AS amount,
         CAST(balance_after_micros AS text) AS balance, 0 AS version
       FROM ledger_entry WHERE kind = 'debit' AND ref IN ${texts('$1')}
       UNION ALL
       SELECT NULL, wallet_id, CAST(amount_micros AS text), NULL, version
       FROM wallet_lease WHERE wallet_id IN ${numbers('$2')} AND node = $3`,
    ),
    charge: statement<{ readonly id: number; readonly ref: string }>(
      `WITH entry AS (
         INSERT INTO ledger_entry
           (wallet_id, kind, amount_micros, balance_after_micros, ref, actor, note, created_at)
         SELECT wallet_id, kind, amount_micros, balance_after_micros, ref, actor, note, created_at
         FROM json_populate_recordset(NULL::ledger_entry, CAST($1 AS json)) RETURNING id, ref
       ), lease AS (
         UPDATE wallet_lease SET amount_micros = t.amount, version = t.version
         FROM json_to_recordset(CAST($2 AS json)) AS t(wallet_id bigint, amount bigint, version bigint)
         WHERE wallet_lease.wallet_id = t.wallet_id AND wallet_lease.node = $3
       ), changed AS (
         UPDATE wallet SET balance_micros = t.balance, is_depleted = t.depleted,
           leased_micros = wallet.leased_micros - t.taken, updated_at = CAST($5 AS bigint),
           spent_micros = CASE WHEN wallet.spent_on >= CAST($6 AS bigint)
             THEN wallet.spent_micros + t.cost ELSE t.cost END,
           spent_on = greatest(wallet.spent_on, CAST($6 AS bigint))
         FROM json_to_recordset(CAST($4 AS json))
           AS t(id bigint, balance bigint, depleted bigint, cost bigint, taken bigint)
         WHERE wallet.id = t.id
       )
       SELECT id, ref FROM entry`,
    ),
    keep: statement(
      `INSERT INTO ocs_report (call_uuid, billsec, is_conflict, cost_micros, balance_after_micros,
         currency, body, reported_at)
       SELECT call_uuid, billsec, is_conflict, cost_micros, balance_after_micros, currency, body, reported_at
       FROM json_populate_recordset(NULL::ocs_report, CAST($1 AS json))
       ON CONFLICT (call_uuid, billsec) DO NOTHING`,
    ),
  }
}
