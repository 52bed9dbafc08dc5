import { expect, test } from 'vitest'
import { openSyslog, syslogMessage } from '../../../../engine/sip-server/program/syslog.ts'
import { datagramSink } from '../../../support/datagram-sink.ts'

const from = { facility: 6, hostName: 'sbc1', pid: 42 }
const now = Date.UTC(2026, 10, 23, 1, 2, 3, 4)

test.each([
  ['debug', 183],
  ['info', 182],
  ['warn', 180],
  ['error', 179],
] as const)('%s has priority %i in facility local6 (RFC 5424 §6.2.1)', (level, priority) => {
  expect(syslogMessage(from, now, level, 'it is\nso', { a: 1 }).toString()).toBe(
    `<${priority}>1 2026-11-23T01:02:03.004Z sbc1 tollgate-sip-server 42 - - it is so {"a":1}`,
  )
})

test('a long line is cut', () => {
  expect(syslogMessage(from, now, 'info', 'x'.repeat(10_000))).toHaveLength(2_048)
})

test('lines arrive by UDP', async () => {
  const sink = await datagramSink()
  const syslog = openSyslog({ ...from, host: '127.0.0.1', port: sink.port }, () => now)
  await expect
    .poll(() => {
      syslog.log('info', 'hello')
      return sink.received[0]?.toString()
    })
    .toContain(' - - hello')
  syslog.stop()
})
