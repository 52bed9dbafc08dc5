/** Statements for the records, reports and shares of a batch of calls. */
import { cdrColumns } from '../../../schema/records/stored-record.ts'
import type { Store } from '../../../schema/storage/store.ts'

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

export interface HeldShare {
  readonly resource: string
  readonly process: string
  readonly amount: number
  readonly version: number
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

const outboxColumns = ['call_uuid', 'body', 'attempts', 'next_attempt_at']

export function settlementStatements({ statements }: Pick<Store, 'statements'>) {
  const insert = <R>(table: string, columns: readonly string[], then: string) =>
    statements.prepareRows<R>({
      table,
      columns,
      sql: `INSERT INTO ${table} (${columns.join()})
        SELECT ${columns.join()} FROM given WHERE true ${then}`,
    })
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
    records: statements.prepareRows<RecordRow>({
      table: 'cdr',
      columns: ['call_uuid'],
      sql: `SELECT call_uuid, billsec, currency FROM cdr
        WHERE call_uuid IN (SELECT call_uuid FROM given)`,
    }),
    acceptedReports: statements.prepareRows<ReportRow>({
      table: 'ocs_report',
      columns: ['call_uuid'],
      sql: `SELECT call_uuid, billsec, cost_micros,
          CAST(balance_after_micros AS TEXT) AS balance_after, currency
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
  }
}
