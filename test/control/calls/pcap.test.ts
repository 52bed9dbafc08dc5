import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { pcapOf } from '../../../control/calls/pcap.ts'
import type { TraceMessage } from '../../../schema/contracts/calls.ts'
import { startOfTime } from '../../support/control.ts'
import { temporaryFolder } from '../../support/temporary-folder.ts'

const folder = temporaryFolder()

/** The fields of each packet as Wireshark's tshark reads them, checksums verified. */
function dissected(entries: readonly TraceMessage[]): string[][] {
  const file = join(folder, 'call.pcap')
  writeFileSync(file, pcapOf({ entries }))
  const verified = ['-o', 'udp.check_checksum:TRUE', '-o', 'ip.check_checksum:TRUE']
  const fields = ['frame.time_epoch', 'ip.src', 'ipv6.src', 'udp.srcport', 'ip.dst', 'ipv6.dst']
  const names = [...fields, 'udp.dstport', 'sip.Method', 'sip.Status-Code', '_ws.expert.message']
  const words = names.flatMap((name) => ['-e', name])
  const text = execFileSync(
    'tshark',
    ['-r', file, '-n', '-T', 'fields', '-E', 'separator=;', ...verified, ...words],
    { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] },
  )
  return text
    .trimEnd()
    .split('\n')
    .map((line) => line.split(';'))
}

const head = 'Via: SIP/2.0/UDP 10.0.0.8:5060;branch=z9hG4bK1\r\nFrom: <sip:a@x>;tag=1\r\n'
const rest = 'To: <sip:b@x>\r\nCall-ID: a\r\nCSeq: 1 INVITE\r\nContent-Length: 0\r\n\r\n'

const message = (
  direction: TraceMessage['direction'],
  address: string,
  start: string,
  other: Partial<TraceMessage> = {},
): TraceMessage => ({
  kind: 'message',
  at: startOfTime + 1,
  direction,
  leg: 'a',
  transport: 'udp',
  address,
  text: `${start}\r\n${head}${rest}`,
  ...other,
})

const invite = 'INVITE sip:b@x SIP/2.0'

test('each message is a SIP packet between the peer of its leg and us, at its time', () => {
  const packets = dissected([
    message('received', '10.0.0.8:5070', invite),
    message('sent', '10.0.0.1:5080', 'SIP/2.0 486 Busy Here'),
    message('sent', '10.0.0.1:5080', invite, { leg: 'b', at: startOfTime + 2_500 }),
  ])
  const at = (ms: number) => `${((startOfTime + ms) / 1_000).toFixed(3)}000000`
  const caller = ['10.0.0.8', '', '5070']
  const own = ['10.0.0.1', '', '5080']
  expect(packets.map((packet) => packet.slice(0, 9))).toEqual([
    [at(1), ...caller, ...own, 'INVITE', ''],
    [at(1), ...own, ...caller, '', '486'],
    // The peer of this leg has said nothing.
    [at(2_500), ...own, '0.0.0.0', '', '5060', 'INVITE', ''],
  ])
  expect(packets.flatMap((packet) => packet.slice(9)).join()).not.toMatch(/bad|illegal|malformed/i)
})

test('addresses of both families, names, streams and messages longer than a datagram are captured, too', () => {
  const long = `${invite}\r\n${head}Subject: ${'x'.repeat(70_000)}\r\n${rest}`
  const packets = dissected([
    message('received', '[2001:db8::1]:5062', invite, { transport: 'tcp' }),
    message('sent', '[2001:db8::1]:5062', 'SIP/2.0 200 OK', { transport: 'tcp' }),
    message('received', 'phone.example:5064', invite, { leg: 'b' }),
    message('sent', '192.0.2.1:5060', long, { leg: 'c' }),
  ])
  expect(packets.map((packet) => packet.slice(1, 7))).toEqual([
    ['', '2001:db8::1', '5062', '', '::ffff:192.0.2.1', '5060'],
    ['', '::ffff:192.0.2.1', '5060', '', '2001:db8::1', '5062'],
    ['0.0.0.0', '', '5064', '192.0.2.1', '', '5060'],
    ['192.0.2.1', '', '5060', '0.0.0.0', '', '5060'],
  ])
})

test('a call without messages is an empty capture', () => {
  expect(pcapOf({ entries: [] })).toHaveLength(24)
})
