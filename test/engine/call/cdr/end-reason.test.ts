import { expect, test } from 'vitest'
import { type End, reasonHeader, summarize } from '../../../../engine/call/cdr/end-reason.ts'

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
