import { expect, test } from 'vitest'
import { type EndedCall, RecentCalls } from '../../../../engine/call/active-calls.ts'

/** As far as it is read. */
const ended = (callUuid: string, endedAt: number) =>
  ({ record: { callUuid, endedAt } }) as EndedCall

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
