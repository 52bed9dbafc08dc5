/** Call records to report on. */
import type { CallRecord } from '../../schema/contracts/call-record.ts'
import { openControl, startOfTime } from './control.ts'
import { readRow, runSql } from './stored.ts'
import { storeCall } from './stored-calls.ts'

const hour = 3_600_000
export const reportPath = '/api/v1/reports/cdrs'

export const answeredCall: CallRecord = {
  callUuid: '00000000-0000-4000-8000-000000000001',
  callId: 'c1@caller',
  direction: 'inbound',
  callerNumber: '15550001111',
  callerName: null,
  calledNumber: '18005551212',
  startedAt: startOfTime + hour,
  answeredAt: startOfTime + hour + 2_000,
  endedAt: startOfTime + hour + 12_500,
  postDialDelayMs: 150,
  billsec: 11,
  disposition: 'ANSWERED',
  sipCode: 200,
  hangupCause: 'NORMAL_CLEARING',
  hangupBy: 'caller',
  denialCode: null,
  setId: 1,
  node: 'sip:10.0.0.1:5060;transport=udp',
  carrier: 'trunk',
  attempts: [
    {
      destination: 'sip:10.0.0.1:5060;transport=udp',
      status: 200,
      reason: 'OK',
      startedAt: startOfTime + hour,
      endedAt: startOfTime + hour + 2_000,
    },
  ],
  tenantId: null,
  customerId: null,
  ratePrefix: '1',
  currency: 'USD',
  sourceAddress: '203.0.113.7',
  isRecovered: false,
  isUnauthorizedByOcs: false,
}

/** The `call_uuid` of the n-th stored call. */
export const uuidOf = (n: number): string =>
  `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`

type Filling = Partial<CallRecord> & { readonly from?: number; readonly stepMs?: number }

/** The control API over a real database, and a way to store call records in it. */
export async function openReportRig() {
  const control = await openControl()
  const token = await control.key({ scopes: ['cdrs:read'] })
  let calls = 0
  const store = async (change: Partial<CallRecord> = {}, costMicros = 110_000): Promise<void> => {
    calls += 1
    await storeCall(
      control.store,
      { ...answeredCall, callUuid: uuidOf(calls), ...change },
      { costMicros, currency: 'USD' },
    )
  }
  /** Calls at equal distances: copies of one, since thousands of statements take seconds. */
  const fill = async (
    count: number,
    { from = startOfTime, stepMs = 1, ...change }: Filling = {},
  ): Promise<void> => {
    await store({ startedAt: from, ...change })
    const row = await readRow(control.store, 'SELECT * FROM cdr WHERE call_uuid = ?', uuidOf(calls))
    const others = Object.keys(row ?? {})
      .filter((name) => !['id', 'call_uuid', 'start_stamp'].includes(name))
      .join(', ')
    await runSql(
      control.store,
      `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count - 1})
         INSERT INTO cdr (call_uuid, start_stamp, ${others})
         SELECT '00000000-0000-4000-8000-' || substr(CAST(1000000000000 + ${calls} + i AS TEXT), 2),
           ${from} + CAST(i AS bigint) * ${stepMs}, ${others} FROM n, cdr WHERE cdr.call_uuid = ?`,
      uuidOf(calls),
    )
    calls += count - 1
  }
  const day = 'start_date=2026-01-01T00:00:00Z&end_date=2026-01-02T00:00:00Z'
  const get = (query = day, headers = {}) =>
    control.request(`${reportPath}?${query}`, { token, headers })
  return { ...control, database: control.store, store, fill, get, day, token }
}
