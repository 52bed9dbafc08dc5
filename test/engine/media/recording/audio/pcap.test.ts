import fc from 'fast-check'
import { expect, test } from 'vitest'
import { endpointKey, PcapReader } from '../../../../../engine/media/recording/audio/convert.ts'
import '../../../../support/property-seed.ts'

interface Shape {
  readonly isLittleEndian?: boolean
  readonly isNano?: boolean
  readonly link?: number
}

const header = ({ isLittleEndian = true, isNano = false, link = 101 }: Shape = {}): Buffer => {
  const bytes = Buffer.alloc(24)
  const magic = isNano ? 0xa1b23c4d : 0xa1b2c3d4
  if (isLittleEndian) {
    bytes.writeUInt32LE(magic, 0)
    bytes.writeUInt32LE(link, 20)
  } else {
    bytes.writeUInt32BE(magic, 0)
    bytes.writeUInt32BE(link, 20)
  }
  return bytes
}

const record = (
  packet: Buffer,
  fraction: number,
  { isLittleEndian = true }: Shape = {},
): Buffer => {
  const bytes = Buffer.alloc(16)
  const values = [1_700_000_000, fraction, packet.length, packet.length]
  for (const [index, value] of values.entries())
    if (isLittleEndian) bytes.writeUInt32LE(value, index * 4)
    else bytes.writeUInt32BE(value, index * 4)
  return Buffer.concat([bytes, packet])
}

const udp = (port: number, payload: string): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeUInt16BE(port, 2)
  bytes.writeUInt16BE(8 + payload.length, 4)
  return Buffer.concat([bytes, Buffer.from(payload)])
}

const ipv4 = (payload: Buffer, changes: Record<number, number> = {}): Buffer => {
  const bytes = Buffer.from('4500000000000000401100007f0000010a000002', 'hex')
  for (const [at, byte] of Object.entries(changes)) bytes[Number(at)] = byte
  return Buffer.concat([bytes, payload])
}

const ipv6 = (payload: Buffer): Buffer =>
  Buffer.concat([
    Buffer.from('6000000000001140', 'hex'),
    Buffer.from('20010db8000000000000000000000001', 'hex'),
    Buffer.from('20010db8000000000000000000000002', 'hex'),
    payload,
  ])

const read = (...pieces: readonly Buffer[]) => {
  const reader = new PcapReader()
  const found = pieces.flatMap((piece) =>
    [...reader.read(piece)].map(({ at, to, payload }) => ({ at, to, text: payload.toString() })),
  )
  return { found, isDamaged: reader.isDamaged }
}

test('both byte orders, both clocks, IPv4, IPv6 and Ethernet are read', () => {
  const here = { at: 1_700_000_000_500, to: endpointKey('10.0.0.2', 4_000), text: 'audio' }
  const packet = ipv4(udp(4_000, 'audio'))
  for (const shape of [{}, { isLittleEndian: false }])
    expect(read(header(shape), record(packet, 500_000, shape)).found).toEqual([here])
  expect(read(header({ isNano: true }), record(packet, 500_000_000)).found).toEqual([here])
  const framed = Buffer.concat([Buffer.alloc(14), packet])
  expect(read(header({ link: 1 }), record(framed, 500_000)).found).toEqual([here])
  expect(read(header(), record(ipv6(udp(4_000, 'audio')), 500_000)).found).toEqual([
    { ...here, to: endpointKey('2001:DB8::2', 4_000) },
  ])
})

test('fragments, TCP, and lengths that lie are left out', () => {
  const packets = [
    ipv4(udp(1, 'fragment'), { 6: 0x20 }),
    ipv4(udp(1, 'tcp'), { 9: 6 }),
    ipv4(udp(1, 'header'), { 0: 0x4f }).subarray(0, 40),
    ipv4(udp(1, 'short').subarray(0, 10)),
    Buffer.alloc(0),
  ]
  const { found, isDamaged } = read(header(), ...packets.map((packet) => record(packet, 0)))
  expect([found, isDamaged]).toEqual([[], false])
})

test('what is no capture, or says that a packet is endless, ends the reading', () => {
  expect(read(Buffer.from('RIFF'.repeat(10))).isDamaged).toBe(true)
  expect(read(header({ link: 113 }), record(Buffer.alloc(4), 0)).isDamaged).toBe(true)
  const endless = record(Buffer.alloc(0), 0)
  endless.writeUInt32LE(0xffff_ffff, 8)
  const good = record(ipv4(udp(1, 'good')), 0)
  const { found, isDamaged } = read(header(), good, endless, good)
  expect([found.length, isDamaged]).toEqual([1, true])
})

test('however the file is cut into pieces, the same is read', () => {
  const file = Buffer.concat([
    header(),
    ...['one', 'two', 'three'].map((text, index) => record(ipv4(udp(index, text)), index)),
  ])
  const whole = read(file)
  fc.assert(
    fc.property(fc.array(fc.nat(file.length), { maxLength: 8 }), (cuts) => {
      const bounds = [0, ...cuts.toSorted((a, b) => a - b), file.length]
      const pieces = bounds.slice(1).map((end, index) => file.subarray(bounds[index], end))
      expect(read(...pieces)).toEqual(whole)
    }),
  )
})
