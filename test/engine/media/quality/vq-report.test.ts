import fc from 'fast-check'
import { expect, test } from 'vitest'
import { readVqReport } from '../../../../engine/media/quality/quality.ts'
import { vqReport } from '../../../support/vq-report.ts'
import '../../../support/property-seed.ts'

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

test('any text is read', () => {
  const lines = fc.array(
    fc.oneof(
      fc.constantFrom('LocalMetrics:', 'RemoteMetrics:', 'CallID: c', 'Delay: IAJ=-1 RTD=1e9'),
      fc.string({ unit: 'binary' }).map((text) => `PacketLoss:${text}`),
      fc.integer().map((value) => `QualityEst: MOSLQ=${value} MOSCQ=${value / 7}`),
    ),
  )
  fc.assert(
    fc.property(lines, (each) => {
      const { local, remote } = readVqReport(['VQSessionReport', ...each].join('\n')) ?? {}
      for (const stream of [local, remote])
        expect((stream?.mos ?? 1) >= 1 && (stream?.mos ?? 1) <= 5).toBe(true)
    }),
  )
})
