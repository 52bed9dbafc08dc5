/**
 * The messages of a trace as a packet capture (libpcap's file format, raw IP packets). The trace
 * has no packets: each message becomes one UDP datagram, whatever carried it, and an address that
 * the trace does not have is 0.0.0.0.
 */
import { parseHostPort } from '../../schema/sip/index.ts'
import type { Trace, TraceMessage } from '../../schema/contracts/calls.ts'
import { parseAddress } from '../../schema/net/ip-address.ts'

const MAGIC = 0xa1b2c3d4
const VERSION = [2, 4] as const
/** The most bytes of one packet. */
const SNAP_LENGTH = 65_535
/** LINKTYPE_RAW: packets begin with their IP header. */
const LINK_TYPE = 101

const FILE_HEADER_BYTES = 24
const RECORD_HEADER_BYTES = 16
const IPV4_HEADER_BYTES = 20
const IPV6_HEADER_BYTES = 40
const UDP_HEADER_BYTES = 8
const UDP = 17
const HOP_LIMIT = 64
const SIP_PORT = 5060
/** A longer message is cut: no datagram has more. */
const MAX_PAYLOAD = SNAP_LENGTH - IPV6_HEADER_BYTES - UDP_HEADER_BYTES

interface Endpoint {
  /** 4 bytes, or 16. */
  readonly address: Buffer
  readonly port: number
}

export function pcapOf({ entries }: Pick<Trace, 'entries'>): Buffer<ArrayBuffer> {
  const messages = entries.filter((entry) => entry.kind === 'message')
  const records = messages.map((message) => recordOf(message, endsOf(message, messages)))
  return Buffer.concat([fileHeader(), ...records])
}

function fileHeader(): Buffer {
  const header = Buffer.alloc(FILE_HEADER_BYTES)
  header.writeUInt32BE(MAGIC, 0)
  header.writeUInt16BE(VERSION[0], 4)
  header.writeUInt16BE(VERSION[1], 6)
  header.writeUInt32BE(SNAP_LENGTH, 16)
  header.writeUInt32BE(LINK_TYPE, 20)
  return header
}

interface EndpointPair {
  readonly from: Endpoint
  readonly to: Endpoint
}

/** A message has one of its addresses; the other one is that of messages on the same leg. */
function endsOf(message: TraceMessage, messages: readonly TraceMessage[]): EndpointPair {
  const ofLeg = messages.filter(({ leg }) => leg === message.leg)
  const own = endpointOf(ofLeg.find(showsOurs) ?? messages.find(showsOurs))
  const peer = endpointOf(showsOurs(message) ? ofLeg.find((other) => !showsOurs(other)) : message)
  return message.direction === 'received' ? { from: peer, to: own } : { from: own, to: peer }
}

const showsOurs = ({ direction, transport }: TraceMessage): boolean =>
  direction === 'sent' && transport === 'udp'

/** A name is no address: the file has numbers only. */
function endpointOf(message: TraceMessage | undefined): Endpoint {
  const { host = '', port = 0 } = (message && parseHostPort(message.address)) ?? {}
  return { address: addressBytes(host), port: port || SIP_PORT }
}

function addressBytes(text: string): Buffer {
  const { words } = parseAddress(text) ?? { words: [0] }
  const bytes = Buffer.alloc(words.length * 4)
  words.forEach((word, index) => bytes.writeUInt32BE(word >>> 0, index * 4))
  return bytes
}

function recordOf(message: TraceMessage, ends: EndpointPair): Buffer {
  const packet = packetOf(Buffer.from(message.text), ends)
  const header = Buffer.alloc(RECORD_HEADER_BYTES)
  header.writeUInt32BE(Math.floor(message.at / 1_000), 0)
  header.writeUInt32BE(Math.floor(message.at % 1_000) * 1_000, 4)
  header.writeUInt32BE(packet.length, 8)
  header.writeUInt32BE(packet.length, 12)
  return Buffer.concat([header, packet])
}

/**
 * RFC 791 or RFC 8200, then RFC 768. Addresses of both families in one packet are written as IPv6
 * (RFC 4291 §2.5.5.2).
 */
function packetOf(text: Buffer, { from, to }: EndpointPair): Buffer {
  const isMixed = from.address.length !== to.address.length
  const [source, target] = isMixed
    ? [mapped(from.address), mapped(to.address)]
    : [from.address, to.address]
  const payload = text.subarray(0, MAX_PAYLOAD)
  const udp = Buffer.alloc(UDP_HEADER_BYTES)
  udp.writeUInt16BE(from.port, 0)
  udp.writeUInt16BE(to.port, 2)
  udp.writeUInt16BE(udp.length + payload.length, 4)
  const pseudoHeader = Buffer.concat([source, target, Buffer.of(0, UDP), udp.subarray(4, 6)])
  udp.writeUInt16BE(checksum([pseudoHeader, udp, payload]) || 0xffff, 6)
  const ip = source.length === 4 ? ipv4Header : ipv6Header
  return Buffer.concat([ip(source, target, udp.length + payload.length), udp, payload])
}

function ipv4Header(source: Buffer, target: Buffer, length: number): Buffer {
  const header = Buffer.alloc(IPV4_HEADER_BYTES)
  header.writeUInt8(0x45, 0)
  header.writeUInt16BE(IPV4_HEADER_BYTES + length, 2)
  header.writeUInt8(HOP_LIMIT, 8)
  header.writeUInt8(UDP, 9)
  source.copy(header, 12)
  target.copy(header, 16)
  header.writeUInt16BE(checksum([header]), 10)
  return header
}

function ipv6Header(source: Buffer, target: Buffer, length: number): Buffer {
  const header = Buffer.alloc(IPV6_HEADER_BYTES)
  header.writeUInt8(0x60, 0)
  header.writeUInt16BE(length, 4)
  header.writeUInt8(UDP, 6)
  header.writeUInt8(HOP_LIMIT, 7)
  source.copy(header, 8)
  target.copy(header, 24)
  return header
}

const mapped = (address: Buffer): Buffer =>
  address.length === 16 ? address : Buffer.concat([Buffer.alloc(10), Buffer.of(255, 255), address])

/** The ones' complement sum of RFC 1071; of the parts only the last may have an odd length. */
function checksum(parts: readonly Buffer[]): number {
  let sum = 0
  for (const part of parts)
    for (let index = 0; index < part.length; index += 2)
      sum += ((part[index] ?? 0) << 8) | (part[index + 1] ?? 0)
  while (sum > 0xffff) sum = (sum & 0xffff) + Math.floor(sum / 0x10000)
  return ~sum & 0xffff
}
