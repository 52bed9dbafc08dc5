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

/** Of a call that has a record already (`wallet_id` null), of a debit without a record, or (without `ref`) of a wallet. */
interface Begun {
  readonly ref: string | null
  readonly wallet_id: number | null
  readonly amount: string | null
  readonly balance: string | null
  readonly is_depleted: 0 | 1 | null
}

/** JSON: `[ref, id]` of each entry; what was spent of each share. */
interface Charged {
  readonly entries: string
  readonly spent: string
}

const columns = `call_uuid, call_id, direction, caller_id_number, caller_id_name, destination_number,
  start_stamp, answer_stamp, end_stamp, post_dial_delay_ms, duration, billsec, disposition, sip_code,
  hangup_cause, hangup_by, denial_code, set_id, node, carrier, attempts, tenant_id, customer_id,
  rate_prefix, cost_micros, currency, source_address, mos_score, mos_source, jitter_ms,
  packet_loss_pct, media_quality, is_recovered, is_unauthorized_by_ocs, required_micros,
  available_micros, denial_text, instance`

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
    /**
     * Stores records and locks wallets, in this order, each in the order of their keys: two processes that store the same calls do
     * not wait for each other. A debit of a call that has no record yet cannot come from another process from then on.
     */
    begin: statement<Begun>(
      `WITH given AS MATERIALIZED (
         SELECT * FROM json_populate_recordset(NULL::cdr, CAST($1 AS json))
       ), inserted AS (
         INSERT INTO cdr (${columns}) SELECT ${columns} FROM given ORDER BY call_uuid
         ON CONFLICT (call_uuid) DO NOTHING RETURNING call_uuid
       ), locked AS MATERIALIZED (
         SELECT id, balance_micros, is_depleted FROM wallet
         WHERE id IN ${numbers('$2')} ORDER BY id FOR NO KEY UPDATE
       )
       SELECT call_uuid AS ref, CAST(NULL AS bigint) AS wallet_id, CAST(NULL AS text) AS amount,
         CAST(NULL AS text) AS balance, CAST(NULL AS bigint) AS is_depleted
       FROM given WHERE call_uuid NOT IN (SELECT call_uuid FROM inserted)
       UNION ALL
       SELECT ref, wallet_id, CAST(amount_micros AS text), CAST(balance_after_micros AS text), NULL
       FROM ledger_entry WHERE kind = 'debit' AND ref IN (SELECT call_uuid FROM inserted)
       UNION ALL
       SELECT NULL, id, NULL, CAST(balance_micros AS text), is_depleted FROM locked`,
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
    /**
     * After the lock: shares change with the lock of their wallet. What calls have cost is taken from the share that it was
     * promised from; what that does not have, from the wallet alone. The next process of this node may have
     * taken the share over.
     */
    charge: statement<Charged>(
      `WITH cost AS MATERIALIZED (
         SELECT * FROM json_to_recordset(CAST($3 AS json))
           AS t(id bigint, balance bigint, depleted bigint, cost bigint)
       ), held AS MATERIALIZED (
         SELECT DISTINCT ON (resource) resource, process, least(amount, cost.cost) AS taken
         FROM share JOIN cost ON CAST(cost.id AS text) = resource
         WHERE kind = 'wallet' AND node = $2 ORDER BY resource, process = $6 DESC
       ), entry AS (
         INSERT INTO ledger_entry
           (wallet_id, kind, amount_micros, balance_after_micros, ref, actor, note, created_at)
         SELECT wallet_id, kind, amount_micros, balance_after_micros, ref, actor, note, created_at
         FROM json_populate_recordset(NULL::ledger_entry, CAST($1 AS json)) RETURNING id, ref
       ), paid AS (
         UPDATE share SET amount = amount - taken, version = version + 1
         FROM held WHERE kind = 'wallet' AND share.resource = held.resource
           AND node = $2 AND share.process = held.process
         RETURNING held.resource, amount, version, taken AS spent
       ), changed AS (
         UPDATE wallet SET balance_micros = cost.balance, is_depleted = cost.depleted,
           updated_at = CAST($4 AS bigint),
           spent_micros = CASE WHEN wallet.spent_on >= CAST($5 AS bigint)
             THEN wallet.spent_micros + cost.cost ELSE cost.cost END,
           spent_on = greatest(wallet.spent_on, CAST($5 AS bigint))
         FROM cost WHERE wallet.id = cost.id
       )
       SELECT (SELECT coalesce(json_agg(json_build_array(ref, id)), '[]') FROM entry) AS entries,
         (SELECT coalesce(json_agg(paid), '[]') FROM paid) AS spent`,
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
