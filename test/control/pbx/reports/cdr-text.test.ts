import { expect, test } from 'vitest'
import { CdrStore } from '../../../../control/pbx/reports/cdr-store.ts'
import { CdrText } from '../../../../control/pbx/reports/cdr-text.ts'
import { viewOf } from '../../../../control/pbx/reports/cdr-view.ts'
import { insertCallRecord, type CallRecord } from '../../../../schema/call-record.ts'
import { first } from '../../../../schema/query.ts'
import { openControl, startOfTime } from '../../../support/control.ts'

const odd = '"quoted", back\\slash, new\r\nline, \u0000, \u2028, \ud800, ü€😀 and ,"startedAt":1'

const plain: CallRecord = {
  ...{ callUuid: 'u-1', callId: 'c', direction: 'inbound', callerNumber: '1', callerName: null },
  ...{ calledNumber: '2', startedAt: startOfTime, answeredAt: null, postDialDelayMs: null },
  ...{ endedAt: startOfTime + 86_399_999, billsec: 0, disposition: 'FAILED', sipCode: 503 },
  ...{ hangupCause: 'X', hangupBy: 'system', denialCode: null, setId: null, node: null },
  ...{ carrier: null, attempts: [], tenantId: null, customerId: null, ratePrefix: null },
  ...{ currency: null, sourceAddress: '', isRecovered: false, isUnauthorizedByOcs: false },
}

const attempt = (reason: string, startedAt: number) => ({
  ...{ destination: `sip:${odd}`, status: 503, reason, startedAt, endedAt: startedAt + 1_007 },
})

const records: readonly [string, Partial<CallRecord>, number][] = [
  ['with nothing that may be missing', {}, 0],
  [
    'with everything',
    {
      ...{ answeredAt: startOfTime + 1, postDialDelayMs: 150, billsec: 60, setId: 3, node: 'n' },
      ...{ carrier: 'c', customerId: 7, currency: 'EUR', denialCode: 'no_credit', tenantId: 1 },
      ...{ isRecovered: true, isUnauthorizedByOcs: true },
      attempts: [attempt('OK', startOfTime), attempt('Busy', startOfTime + 999)],
    },
    641_700,
  ],
  [
    'with texts that JSON has to escape',
    {
      ...{ callerNumber: odd, calledNumber: odd, callId: odd, node: odd, carrier: odd },
      ...{ hangupCause: odd, denialCode: odd },
      attempts: [attempt(odd, startOfTime), attempt('},"endedAt":2}', startOfTime)],
    },
    1,
  ],
]

test.each(records)('a record %s is written as its view says', (_which, change, costMicros) => {
  const { store, tenant } = openControl()
  tenant('acme')
  insertCallRecord(store)(
    { ...plain, ...change },
    { costMicros, currency: change.currency ?? null },
  )
  const filter = { tenantId: null, from: 0, before: Infinity, disposition: undefined }
  const cdrs = new CdrStore(store, { ...filter, before: startOfTime + 1 })
  const row = cdrs.rows(cdrs.beginning, 1)[0]
  const view = store.db
    .selectFrom('cdr')
    .leftJoin('tenant', 'tenant.id', 'cdr.tenant_id')
    .selectAll('cdr')
    .select('tenant.slug as tenant_slug')
  const expected = first(store, view)
  if (row === undefined || expected === undefined) throw new Error('no record')
  const text = new CdrText(cdrs.slugs()).json(row)
  expect(JSON.parse(text)).toEqual(viewOf(expected))
  expect(Object.keys(JSON.parse(text) as object)).toEqual(Object.keys(viewOf(expected)))
})
