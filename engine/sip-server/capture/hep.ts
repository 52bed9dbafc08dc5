/** HEP version 3, by which Homer takes copies of messages. Pure. */
import { isIPv6 } from 'node:net'
import { encodeMessage } from '../message/decode.ts'

export interface Captured {
  readonly from: { readonly address: string; readonly port: number }
  readonly to: { readonly address: string; readonly port: number }
  readonly isDatagram: boolean
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly message: string | Uint8Array
}

/** A datagram holds no more. */
const maxBytes = 65_000

const sip = 1
const ipv4Family = 2
const ipv6Family = 10
const udp = 17
const tcp = 6

/** One packet; undefined: the message is too long for one. `agentId`: by which number Homer knows us. */
export function hepPacket(captured: Captured, agentId: number): Buffer | undefined {
  const { from, to, isDatagram, now, message } = captured
  const payload = typeof message === 'string' ? encodeMessage(message) : message
  if (payload.length > maxBytes) return undefined
  const isV6 = isIPv6(from.address) || isIPv6(to.address)
  const chunks = [
    chunk(1, number(1, isV6 ? ipv6Family : ipv4Family)),
    chunk(2, number(1, isDatagram ? udp : tcp)),
    chunk(isV6 ? 5 : 3, isV6 ? ipv6Bytes(from.address) : ipv4Bytes(from.address)),
    chunk(isV6 ? 6 : 4, isV6 ? ipv6Bytes(to.address) : ipv4Bytes(to.address)),
    chunk(7, number(2, from.port)),
    chunk(8, number(2, to.port)),
    chunk(9, number(4, Math.floor(now / 1_000))),
    chunk(10, number(4, Math.floor((now % 1_000) * 1_000))),
    chunk(11, number(1, sip)),
    chunk(12, number(4, agentId)),
    chunk(15, payload),
  ]
  const length = chunks.reduce((sum, { byteLength }) => sum + byteLength, 6)
  return Buffer.concat([Buffer.from('HEP3', 'latin1'), number(2, length), ...chunks])
}

/** Vendor 0: a field of the protocol itself. */
const chunk = (type: number, value: Uint8Array): Buffer =>
  Buffer.concat([number(2, 0), number(2, type), number(2, 6 + value.length), value])

function number(size: number, value: number): Buffer {
  const bytes = Buffer.alloc(size)
  bytes.writeUIntBE(value, 0, size)
  return bytes
}

const ipv4Bytes = (address: string): Uint8Array => {
  const parts = address.split('.').map(Number)
  return Uint8Array.from({ length: 4 }, (_, at) => parts[at] ?? 0)
}

/** An IPv4 address is mapped. */
function ipv6Bytes(address: string): Uint8Array {
  const bytes = Buffer.alloc(16)
  const dotted = /(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address)
  if (dotted !== null) {
    bytes.writeUInt16BE(0xff_ff, 10)
    bytes.set(ipv4Bytes(dotted[0]), 12)
    return bytes
  }
  const [head = '', tail = ''] = (address.split('%', 1)[0] ?? '').split('::')
  const [first, last] = [groups(head), groups(tail)]
  for (const [at, group] of first.entries()) bytes.writeUInt16BE(group, at * 2)
  for (const [at, group] of last.entries()) bytes.writeUInt16BE(group, 16 - (last.length - at) * 2)
  return bytes
}

const groups = (text: string): readonly number[] =>
  text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16))
