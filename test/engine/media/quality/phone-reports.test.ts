import { expect, test } from 'vitest'
import fc from 'fast-check'
import { CallDeadlines } from '../../../../engine/call/deadlines.ts'
import type { CallParties } from '../../../../engine/call/call-parties.ts'
import { PhoneReports, readRtpStat } from '../../../../engine/media/quality/phone-reports.ts'
import { ManualTime } from '../../../support/manual-time.ts'
import '../../../support/property-seed.ts'
import { readVqReport } from '../../../../engine/media/quality/quality.ts'
import { vqReport } from '../../../support/vq-report.ts'

test('a phone that reports its call again and again takes no room from other calls', () => {
  const time = new ManualTime(0)
  const reports = new PhoneReports({
    calls: { parties: () => undefined, note: () => undefined },
    deadlines: new CallDeadlines(time),
    now: time.now,
  })
  const report = (callUuid: string): void => {
    const parties = {
      callUuid,
      legs: { caller: 'a', callee: 'b' },
      peers: { caller: '192.0.2.1:5060' },
    } as CallParties
    reports.take(parties, 'caller', undefined, undefined)
  }
  for (let call = 0; call < 10_001; call += 1) report(String(call))
  expect(reports.size).toBe(10_000)
  for (let repeated = 0; repeated < 50; repeated += 1) report('5000')
  expect(reports.size).toBe(10_000)
})

test.each([
  [
    'Poly',
    'PS=1234,OS=34560,PR=1236,OR=24720,JI=1,DU=1230,PL=0,EN=G711U,DE=G711U,MOS=4.0',
    { packets: 1_236, packetLossPct: 0, jitterMs: 1, mos: 4, mosSource: 'reported' },
  ],
  [
    'Cisco',
    'PS=0, OS=0, PR=5429, OR=955504, PL=120, JI=3, LA=0, DU=108',
    { packets: 5_429, packetLossPct: 2.2, jitterMs: 3, mos: 3.1, mosSource: 'computed' },
  ],
  [
    'baresip',
    'EX=BareSip;CS=2;CD=0;PR=101;PS=105;ER=0;ES=0;PL=40,9;PD=0,0;JI=0.0,2.5;IP=10.0.0.1,10.0.0.2',
    { packets: 101, packetLossPct: 8.2, jitterMs: 2.5 },
  ],
])('the format of %s is read: what the phone has received', (_maker, value, expected) => {
  expect(readRtpStat({ 'X-RTP-Stat': value })).toMatchObject(expected)
  expect(readRtpStat({ via: 'SIP/2.0/UDP h', 'P-RTP-Stat': value })).toMatchObject(expected)
  expect(readRtpStat({ 'x-rtp-stat': value })).toMatchObject(expected)
})

test.each([
  ['no such header', {}],
  ['nothing received', { 'X-RTP-Stat': 'PS=10,PR=0,PL=0,JI=0' }],
  ['nothing documented', { 'X-RTP-Stat': 'Dur=7,Pkt=337,LostPkt=0' }],
  ['no numbers', { 'X-RTP-Stat': 'PR=-1;PL=x' }],
  ['too long', { 'X-RTP-Stat': `PR=10;PL=0;JI=1;${'A'.repeat(2_000)}` }],
])('%s: nothing is known', (_why, headers) => {
  expect(readRtpStat(headers)).toBeUndefined()
})

test('whatever the header says, what is read of it is in its range', () => {
  const value = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 1_200 }),
    fc
      .array(
        fc.tuple(
          fc.constantFrom('PR', 'PL', 'JI', 'MOS', 'EX', 'DE', 'LA', '__proto__'),
          fc.oneof(fc.string(), fc.integer().map(String), fc.double().map(String)),
        ),
      )
      .map((pairs) => pairs.map((pair) => pair.join('=')).join(';')),
  )
  fc.assert(
    fc.property(value, (text) => {
      const stat = readRtpStat({ 'X-RTP-Stat': text })
      if (stat === undefined) return
      const { mos, jitterMs, packetLossPct, packets } = stat
      expect(packets).toBeGreaterThan(0)
      if (mos !== null) expect(mos >= 1 && mos <= 5).toBe(true)
      if (jitterMs !== null) expect(jitterMs >= 0 && jitterMs <= 60_000).toBe(true)
      if (packetLossPct !== null) expect(packetLossPct >= 0 && packetLossPct <= 100).toBe(true)
    }),
  )
})

test('the report of RFC 6035 is read: what the phone heard, and what the other party did', () => {
  expect(readVqReport(vqReport('6dg37f1890463'))).toEqual({
    callId: '6dg37f1890463',
    local: {
      mos: 4.2,
      mosSource: 'reported',
      jitterMs: 2,
      packetLossPct: 7,
      roundTripMs: 200,
      packets: 0,
    },
    remote: {
      mos: 4.3,
      mosSource: 'reported',
      jitterMs: 10,
      packetLossPct: 5,
      roundTripMs: 200,
      packets: 0,
    },
  })
})

test('what stands for unknown is not known', () => {
  const report = readVqReport(vqReport('c').replace('MOSLQ=4.2 MOSCQ=4.3', 'MOSLQ=127 MOSCQ=127'))
  expect(report?.local).toMatchObject({ mosSource: 'computed' })
})

test.each([
  ['no report', 'v=0'],
  ['no Call-ID', 'VQSessionReport: CallTerm\r\nLocalMetrics:\r\n'],
  ['too long', vqReport('c') + 'x'.repeat(9_000)],
  ['empty', ''],
])('%s: it is none', (_why, body) => {
  expect(readVqReport(body)).toBeUndefined()
})
