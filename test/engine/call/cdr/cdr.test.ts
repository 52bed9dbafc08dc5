import { expect, test } from 'vitest'
import { beginCall } from '../../../../engine/call/call-machine/call.ts'
import { emptyWorld, type Call } from '../../../../engine/call/call-machine/state.ts'
import { callRecord, openCall } from '../../../../engine/call/cdr/cdr.ts'
import type { End } from '../../../../engine/call/cdr/end-reason.ts'
import { toColumns } from '../../../../schema/call-record.ts'
import { sampleStart } from '../../../support/call-machine.ts'

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
