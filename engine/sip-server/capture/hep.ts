/** HEP version 3, by which Homer takes copies of messages. Pure. */
import { isIPv6 } from 'node:net'

export interface CapturedMessage {
  readonly from: { readonly address: string; readonly port: number }
  readonly to: { readonly address: string; readonly port: number }
  readonly isDatagram: boolean
  /** Milliseconds since the epoch. */
  readonly now: number
  readonly payload: Uint8Array
  /** The id of the call at Homer; absent: the message belongs to none. */
  readonly correlationId?: string | undefined
}

/** The sender of packets. */
export interface CaptureAgent {
  /** Number by which Homer knows us. */
  readonly agentId: number
  /** The authenticate key. */
  readonly password?: string | undefined
}

/** A datagram holds no more. */
const maxBytes = 65_000

const sip = 1
const ipv4Family = 2
const ipv6Family = 10
const udp = 17
const tcp = 6

/** One packet; undefined: the message is too long for one. */
export function hepPacket(captured: CapturedMessage, { agentId, password }: CaptureAgent) {
  const { from, to, isDatagram, now, payload, correlationId } = captured
  const isV6 = isIPv6(from.address) || isIPv6(to.address)
  const bytesOf = isV6 ? ipv6Bytes : ipv4Bytes
  const packet = new Packet(
    ROOM + payload.length + 3 * ((password?.length ?? 0) + (correlationId?.length ?? 0)),
  )
  packet.number(1, 1, isV6 ? ipv6Family : ipv4Family)
  packet.number(2, 1, isDatagram ? udp : tcp)
  packet.bytes(isV6 ? 5 : 3, bytesOf(from.address))
  packet.bytes(isV6 ? 6 : 4, bytesOf(to.address))
  packet.number(7, 2, from.port)
  packet.number(8, 2, to.port)
  packet.number(9, 4, Math.floor(now / 1_000))
  packet.number(10, 4, Math.floor((now % 1_000) * 1_000))
  packet.number(11, 1, sip)
  packet.number(12, 4, agentId)
  if (password !== undefined) packet.bytes(14, Buffer.from(password))
  if (correlationId !== undefined) packet.bytes(17, Buffer.from(correlationId))
  packet.bytes(15, payload)
  return packet.end()
}

/** More than all chunks take but those of variable length. */
const ROOM = 256

/** A packet of chunks of vendor 0: the fields of the protocol itself. */
class Packet {
  readonly #buffer: Buffer
  #length = 6

  constructor(room: number) {
    this.#buffer = Buffer.allocUnsafe(room)
    this.#buffer.write('HEP3', 'latin1')
  }

  number(type: number, size: number, value: number): void {
    this.#buffer.writeUIntBE(value, this.#head(type, size), size)
  }

  bytes(type: number, value: Uint8Array): void {
    this.#buffer.set(value, this.#head(type, value.length))
  }

  end(): Buffer | undefined {
    if (this.#length > maxBytes) return undefined
    this.#buffer.writeUInt16BE(this.#length, 4)
    return this.#buffer.subarray(0, this.#length)
  }

  /** Returns the position of the value. */
  #head(type: number, size: number): number {
    const at = this.#length
    this.#buffer.writeUInt16BE(0, at)
    this.#buffer.writeUInt16BE(type, at + 2)
    this.#buffer.writeUInt16BE((6 + size) & 0xff_ff, at + 4)
    this.#length += 6 + size
    return at + 6
  }
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
