/** The statements that settle a batch of calls. */
import { cdrColumns } from '../../../schema/records/stored-record.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { lockedWallets, lockWait } from '../../../schema/sql/row-locks.ts'
import type { Flag } from '../../../schema/columns.ts'

/** A batch waits for so long at a locked wallet. */
const LOCK_WAIT_MS = 200

export interface ReportRow {
  readonly call_uuid: string
  readonly billsec: number
  readonly cost_micros: number
  readonly balance_after: string | null
  readonly currency: string | null
}

export interface RecordRow {
  readonly call_uuid: string
  readonly billsec: number
  readonly currency: string | null
}

export interface DebitRow {
  readonly ref: string
  readonly wallet_id: number
  readonly amount_micros: number
  readonly balance: string
}

export interface WalletRow {
  readonly id: number
  readonly balance: string
  readonly is_depleted: Flag
}

export interface HeldShare {
  readonly resource: string
  readonly process: string
  readonly amount: number
  readonly version: number
}

interface EntryRow {
  readonly id: number
  readonly ref: string
}

const reportColumns = [
  'call_uuid',
  'billsec',
  'is_conflict',
  'cost_micros',
  'balance_after_micros',
  'currency',
  'body',
  'reported_at',
]

const entryColumns = [
  'wallet_id',
  'kind',
  'amount_micros',
  'balance_after_micros',
  'ref',
  'actor',
  'note',
  'created_at',
]

const walletColumns = [
  'id',
  'balance_micros',
  'is_depleted',
  'spent_micros',
  'spent_on',
  'updated_at',
]

const outboxColumns = ['call_uuid', 'body', 'attempts', 'next_attempt_at']

export function settlementStatements({ statements }: Pick<Store, 'statements'>) {
  const insert = <R>(table: string, columns: readonly string[], then: string) =>
    statements.prepareRows<R>({
      table,
      columns,
      sql: `INSERT INTO ${table} (${columns.join()}) SELECT ${columns.join()} FROM given WHERE true ${then}`,
    })
  // On SQLite nobody asks for it.
  const locked = statements.isShared
    ? statements.prepare<{ readonly id: number }>(lockedWallets)
    : undefined
  return {
    /** Returns those that had no record. */
    insertRecords: insert<{ readonly call_uuid: string }>(
      'cdr',
      cdrColumns,
      'ON CONFLICT (call_uuid) DO NOTHING RETURNING call_uuid',
    ),
    insertReports: insert(
      'ocs_report',
      reportColumns,
      'ON CONFLICT (call_uuid, billsec) DO NOTHING',
    ),
    insertOutgoing: insert('cdr_outbox', outboxColumns, 'ON CONFLICT (call_uuid) DO NOTHING'),
    insertEntries: insert<EntryRow>('ledger_entry', entryColumns, 'RETURNING id, ref'),
    /**
     * A wallet that stays locked fails the batch, which holds the others meanwhile: no long wait.
     */
    lockWallets: statements.prepareRows<WalletRow>({
      table: 'wallet',
      columns: ['id'],
      sql: `SELECT id, CAST(balance_micros AS TEXT) AS balance, is_depleted FROM wallet
        WHERE id IN (SELECT id FROM given)
          ${statements.isShared ? `AND (SELECT ${lockWait(LOCK_WAIT_MS)}) IS NOT NULL` : ''} ORDER BY id`,
      locks: true,
    }),
    lockedWallets: (ids: readonly number[]): Promise<readonly { readonly id: number }[]> =>
      locked?.all([JSON.stringify(ids)]) ?? Promise.resolve([]),
    records: statements.prepareRows<RecordRow>({
      table: 'cdr',
      columns: ['call_uuid'],
      sql: `SELECT call_uuid, billsec, currency FROM cdr
        WHERE call_uuid IN (SELECT call_uuid FROM given)`,
    }),
    debits: statements.prepareRows<DebitRow>({
      table: 'ledger_entry',
      columns: ['ref'],
      sql: `SELECT ref, wallet_id, amount_micros, CAST(balance_after_micros AS TEXT) AS balance
        FROM ledger_entry WHERE kind = 'debit' AND ref IN (SELECT ref FROM given)`,
    }),
    acceptedReports: statements.prepareRows<ReportRow>({
      table: 'ocs_report',
      columns: ['call_uuid'],
      sql: `SELECT call_uuid, billsec, cost_micros, CAST(balance_after_micros AS TEXT) AS balance_after, currency
        FROM ocs_report WHERE is_conflict = 0 AND call_uuid IN (SELECT call_uuid FROM given)`,
    }),
    /** Shares change with the lock of their wallet. */
    shares: statements.prepareRows<HeldShare>({
      table: 'share',
      columns: ['resource', 'node'],
      sql: `SELECT share.resource, share.process, share.amount, share.version FROM share JOIN given
        ON share.resource = given.resource AND share.node = given.node WHERE share.kind = 'wallet'`,
    }),
    changeShares: statements.prepareRows({
      table: 'share',
      columns: ['resource', 'node', 'process', 'amount', 'version'],
      sql: `UPDATE share SET amount = given.amount, version = given.version FROM given
        WHERE share.kind = 'wallet' AND share.resource = given.resource AND share.node = given.node
          AND share.process = given.process`,
    }),
    /** `spent_micros`: what the calls have cost. */
    changeWallets: statements.prepareRows({
      table: 'wallet',
      columns: walletColumns,
      sql: `UPDATE wallet SET balance_micros = given.balance_micros, is_depleted = given.is_depleted,
          updated_at = given.updated_at,
          spent_micros = CASE WHEN wallet.spent_on >= given.spent_on THEN wallet.spent_micros ELSE 0 END
            + given.spent_micros,
          spent_on = CASE WHEN wallet.spent_on >= given.spent_on THEN wallet.spent_on ELSE given.spent_on END
        FROM given WHERE wallet.id = given.id`,
    }),
  }
}
