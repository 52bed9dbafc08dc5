import { expect, test } from 'vitest'
import { hepPacket } from '../../../../engine/sip-server/capture/hep.ts'

const hello = {
  from: { address: '192.0.2.1', port: 5_060 },
  to: { address: '198.51.100.2', port: 5_080 },
  isDatagram: true,
  now: 1_700_000_000_123.5,
  message: 'OPTIONS',
}

/** Values by type, as hexadecimal digits. */
function chunksOf(packet: Buffer): Record<number, string> {
  expect(packet.subarray(0, 4).toString()).toBe('HEP3')
  expect(packet.readUInt16BE(4)).toBe(packet.length)
  const chunks: Record<number, string> = {}
  for (let at = 6; at < packet.length; at += packet.readUInt16BE(at + 4)) {
    expect(packet.readUInt16BE(at)).toBe(0)
    const end = at + packet.readUInt16BE(at + 4)
    chunks[packet.readUInt16BE(at + 2)] = packet.subarray(at + 6, end).toString('hex')
  }
  return chunks
}

const packetOf = (captured: typeof hello) => chunksOf(hepPacket(captured, 258) ?? Buffer.alloc(0))

test('a packet has the chunks of HEP 3', () => {
  expect(packetOf(hello)).toEqual({
    1: '02',
    2: '11',
    3: 'c0000201',
    4: 'c6336402',
    7: '13c4',
    8: '13d8',
    9: (1_700_000_000).toString(16),
    10: '0001e26c',
    11: '01',
    12: '00000102',
    15: Buffer.from('OPTIONS').toString('hex'),
  })
})

test('streams, and IPv6', () => {
  const from = { address: '2001:db8::1:2', port: 1 }
  const to = { address: '::', port: 2 }
  const chunks = packetOf({ ...hello, from, to, isDatagram: false })
  expect(chunks).toMatchObject({ 1: '0a', 2: '06', 5: '20010db8000000000000000000010002' })
  expect(chunks[6]).toBe('0'.repeat(32))
  const mapped = packetOf({ ...hello, from, to: { address: '192.0.2.1', port: 2 } })
  expect(mapped[6]).toBe('00000000000000000000ffffc0000201')
})

test('a message that no datagram holds is left out', () => {
  expect(hepPacket({ ...hello, message: 'x'.repeat(65_001) }, 1)).toBeUndefined()
})
