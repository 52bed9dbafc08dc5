import { expect, test } from 'vitest'
import { CallTotals } from '../../engine/call-totals.ts'
import type { CallRecord } from '../../schema/call-record.ts'

const record: CallRecord = {
  ...{ callUuid: 'u', callId: 'c', direction: 'inbound', callerNumber: '1', callerName: null },
  ...{ calledNumber: '2', startedAt: 0, answeredAt: 1_000, endedAt: 31_000, postDialDelayMs: 200 },
  ...{ billsec: 30, disposition: 'ANSWERED', sipCode: 200, hangupCause: 'NORMAL_CLEARING' },
  ...{ hangupBy: 'caller', denialCode: null, setId: 1, node: null, carrier: null, attempts: [] },
  ...{ tenantId: null, customerId: null, ratePrefix: null, currency: null, sourceAddress: '' },
  ...{ isRecovered: false, isUnauthorizedByOcs: false },
}

test('calls are counted by disposition, seconds and delays are summed', () => {
  const totals = new CallTotals()
  totals.add(record)
  totals.add(record)
  totals.add({ ...record, disposition: 'NO ANSWER', billsec: 0, postDialDelayMs: null })
  expect(totals.snapshot()).toEqual({
    calls_total: 3,
    billed_seconds_total: 60,
    post_dial_delay_ms_sum: 400,
    post_dial_delay_count: 2,
    calls_answered_total: 2,
    calls_no_answer_total: 1,
  })
})
