import { expect, test } from 'vitest'
import { beginCall } from '../../../../engine/call/call-machine/call.ts'
import { emptyWorld, type Call } from '../../../../engine/call/call-machine/state.ts'
import { callRecord, openCall } from '../../../../engine/call/cdr/cdr.ts'
import { type End, reasonHeader, summarize } from '../../../../engine/call/cdr/end-reason.ts'
import { toColumns } from '../../../../schema/records/stored-record.ts'
import { sampleStart } from '../../../support/call-machine.ts'
import { type RecentCall, RecentCalls } from '../../../../engine/call/recent-calls.ts'

const bye: End = { kind: 'hung-up', by: 'caller' }

const newCall = (): Call =>
  beginCall(emptyWorld('sbc-1'), {
    start: { ...sampleStart(), startedAt: 1_000 },
    stampOffsetMs: 0,
  })

function answeredCall(grantedSeconds: number | null = null): Call {
  const call = newCall()
  call.firstProgressAt = 1_250
  call.answeredAt = 5_000
  call.grantedSeconds = grantedSeconds
  return call
}

test.each([
  [5_000, 1],
  [5_001, 1],
  [6_000, 1],
  [6_001, 2],
  [4_000, 1],
])('answered at 5000 and ended at %i: %i s are charged', (endedAt, billsec) => {
  expect(callRecord(answeredCall(), bye, endedAt)).toMatchObject({ billsec, postDialDelayMs: 250 })
})

const ends: readonly End[] = [
  bye,
  { kind: 'hung-up', by: 'callee' },
  { kind: 'cancelled' },
  { kind: 'no-answer' },
  { kind: 'refused', status: 500, reason: 'Server Internal Error', code: 'fault' },
  { kind: 'rejected', status: 486, reason: 'Busy Here', headers: {} },
  { kind: 'cut', by: 'api', cause: 16, code: null },
  { kind: 'cut', by: 'system', cause: 21, code: 'insufficient_funds' },
  { kind: 'cut', by: 'system', cause: 31, code: 'shutdown' },
]

test.each(ends)(
  'an answered call is charged a second at least, however soon it ends: $kind',
  (end) => {
    for (const granted of [null, 60, 1, 0.5, 0]) {
      const record = callRecord(answeredCall(granted), end, 5_000)
      expect(record).toMatchObject({ billsec: 1, disposition: 'ANSWERED' })
    }
  },
)

test('never more is charged than was granted', () => {
  expect(callRecord(answeredCall(60), bye, 65_050).billsec).toBe(60)
})

test('the record of a call that was refused for money says what it needed and what there was', () => {
  const lack = { requiredMicros: 600_000, availableMicros: 5 }
  const end: End = {
    kind: 'refused',
    status: 402,
    reason: 'Payment Required',
    code: 'insufficient_funds',
    lack,
  }
  const record = callRecord(newCall(), end, 9_000)
  expect(toColumns(record, { costMicros: 0, currency: null })).toMatchObject({
    denial_code: 'insufficient_funds',
    required_micros: 600_000,
    available_micros: 5,
  })
  const cancelled = callRecord(newCall(), { kind: 'cancelled' }, 9_000)
  expect(toColumns(cancelled, { costMicros: 0, currency: null })).toMatchObject({
    required_micros: null,
    available_micros: null,
  })
})

test('a call that was not answered costs nothing', () => {
  const record = callRecord(newCall(), { kind: 'cancelled' }, 9_000)
  expect(record).toMatchObject({ billsec: 0, answeredAt: null, postDialDelayMs: null })
})

test('a record never ends before it began', () => {
  expect(callRecord(answeredCall(), bye, 4_000).endedAt).toBe(5_000)
})

test('the journal has an answered call as its record will have it', () => {
  const call = answeredCall()
  call.account = {
    customerId: 7,
    tenantId: 3,
    ratePrefix: '1',
    currency: 'USD',
    isUnauthorizedByOcs: true,
  }
  const open = openCall(call, 5_000)
  expect(callRecord(call, bye, 9_000)).toMatchObject(open)
  expect(open).toMatchObject({ customerId: 7, isUnauthorizedByOcs: true })
})

const rejected = (status: number): End => ({ kind: 'rejected', status, reason: '', headers: {} })
const refused = (status: number, code: string): End => ({
  kind: 'refused',
  status,
  reason: '',
  code,
})
const cut = (by: 'system' | 'api', cause: number, code: string | null): End => ({
  kind: 'cut',
  by,
  cause,
  code,
})

test.each<[End, boolean, string]>([
  [{ kind: 'cancelled' }, false, 'CANCELED 487 ORIGINATOR_CANCEL caller null'],
  [{ kind: 'no-answer' }, false, 'NO ANSWER 480 NO_ANSWER system null'],
  [{ kind: 'hung-up', by: 'caller' }, true, 'ANSWERED 200 NORMAL_CLEARING caller null'],
  [{ kind: 'hung-up', by: 'callee' }, true, 'ANSWERED 200 NORMAL_CLEARING callee null'],
  [rejected(404), false, 'FAILED 404 UNALLOCATED_NUMBER callee null'],
  [rejected(408), false, 'NO ANSWER 408 NO_USER_RESPONSE callee null'],
  [rejected(480), false, 'NO ANSWER 480 NO_ANSWER callee null'],
  [rejected(486), false, 'BUSY 486 USER_BUSY callee null'],
  [rejected(487), false, 'CANCELED 487 ORIGINATOR_CANCEL callee null'],
  [rejected(488), false, 'FAILED 488 INCOMPATIBLE_DESTINATION callee null'],
  [rejected(500), false, 'FAILED 500 NORMAL_TEMPORARY_FAILURE callee null'],
  [rejected(503), false, 'CONGESTION 503 NORMAL_TEMPORARY_FAILURE callee null'],
  [rejected(600), false, 'BUSY 600 USER_BUSY callee null'],
  [rejected(603), false, 'FAILED 603 CALL_REJECTED callee null'],
  [rejected(606), false, 'FAILED 606 CALL_REJECTED callee null'],
  [rejected(499), false, 'FAILED 499 INTERWORKING callee null'],
  [refused(402, 'no_rate'), false, 'FAILED 402 CALL_REJECTED system no_rate'],
  [refused(403, 'unknown_source'), false, 'FAILED 403 CALL_REJECTED system unknown_source'],
  [
    refused(503, 'no_candidate'),
    false,
    'CONGESTION 503 NORMAL_TEMPORARY_FAILURE system no_candidate',
  ],
  [cut('api', 31, null), true, 'ANSWERED 200 NORMAL_UNSPECIFIED api null'],
  [cut('api', 16, null), false, 'CANCELED 480 NORMAL_CLEARING api null'],
  [cut('api', 99, null), false, 'CANCELED 480 Q850_99 api null'],
  [cut('system', 31, 'shutdown'), false, 'FAILED 503 NORMAL_UNSPECIFIED system shutdown'],
  [
    cut('system', 21, 'insufficient_funds'),
    true,
    'ANSWERED 200 CALL_REJECTED system insufficient_funds',
  ],
])('%j, answered: %s → %s', (end, wasAnswered, words) => {
  const { disposition, sipCode, hangupCause, hangupBy, denialCode } = summarize(end, wasAnswered)
  expect(`${disposition} ${sipCode} ${hangupCause} ${hangupBy} ${denialCode}`).toBe(words)
})

test('only an empty wallet is named in Reason', () => {
  const reason = 'Q.850;cause=21;text="Insufficient Funds"'
  expect(reasonHeader({ by: 'system', cause: 21 })).toBe(reason)
  expect(reasonHeader({ by: 'api', cause: 21 })).toBe('Q.850;cause=21;text="CALL REJECTED"')
})

/** As far as it is read. */
const ended = (callUuid: string, endedAt: number) =>
  ({ record: { callUuid, endedAt }, stampOffsetMs: 0 }) as RecentCall

test('a call that ended is found for a quarter of an hour', () => {
  let now = 0
  const recent = new RecentCalls(() => now)
  recent.add(ended('old', now))
  expect(recent.find('old')?.record.callUuid).toBe('old')
  now = 15 * 60_000 + 1
  recent.add(ended('new', now))
  expect([recent.find('old'), recent.size]).toEqual([undefined, 1])
})

test('only the last calls are kept, 2,000 by default', () => {
  const few = new RecentCalls(() => 0, 2)
  for (const call of ['one', 'two', 'three']) few.add(ended(call, 0))
  expect([few.size, few.find('one')]).toEqual([2, undefined])
  const recent = new RecentCalls(() => 0)
  for (let call = 0; call < 2_100; call++) recent.add(ended(`call ${call}`, 0))
  expect(recent.size).toBe(2_000)
  expect([recent.find('call 99'), recent.find('call 100')?.record.callUuid]).toEqual([
    undefined,
    'call 100',
  ])
})
