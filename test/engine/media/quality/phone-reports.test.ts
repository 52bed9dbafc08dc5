import { expect, test } from 'vitest'
import { Deadlines } from '../../../../engine/call/deadlines.ts'
import type { CallParties } from '../../../../engine/call/call-parties.ts'
import { PhoneReports } from '../../../../engine/media/quality/phone-reports.ts'
import { ManualTime } from '../../../support/manual-time.ts'

test('a phone that reports its call again and again takes no room from other calls', () => {
  const time = new ManualTime(0)
  const reports = new PhoneReports({
    calls: { parties: () => undefined, note: () => undefined },
    deadlines: new Deadlines(time),
    now: time.now,
  })
  const report = (callUuid: string): void => {
    const parties = { callUuid, legs: { caller: 'a', callee: 'b' } } as CallParties
    reports.take(parties, 'caller', undefined, undefined)
  }
  for (let call = 0; call < 10_001; call += 1) report(String(call))
  expect(reports.size).toBe(10_000)
  for (let repeated = 0; repeated < 50; repeated += 1) report('5000')
  expect(reports.size).toBe(10_000)
})
