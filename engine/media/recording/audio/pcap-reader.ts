import { parseAddress } from '../../../../schema/net/ip-address.ts'

interface CapturedDatagram {
  /** Milliseconds UTC by the clock of the relay, with fractions. */
  readonly at: number
  /** `endpointKey` of the receiver. */
  readonly to: string
  /** Valid until the next step. */
  readonly payload: Buffer
}

const FILE_HEADER = 24
const RECORD_HEADER = 16

/** The largest IP packet, and room for an Ethernet header. */
const MAX_PACKET = 65_535 + 18

const UDP = 17

const linkTypes: Readonly<Record<number, number | undefined>> = {
  /** Ethernet (`--recording-format=eth`): the bytes before the IP header. */
  1: 14,
  /** IP without anything before it. */
  101: 0,
}

interface Format {
  readonly isLittleEndian: boolean
  /** Fractions of a second per millisecond. */
  readonly perMs: number
  readonly skip: number
}

/**
 * Reads the UDP datagrams of a capture file, piece by piece (pure). The file comes from outside,
 * and may end in the middle of a packet: rtpengine was killed, or the disk was full. Reading ends
 * at the damage.
 */
export class PcapReader {
  #rest: Buffer = Buffer.alloc(0)
  #format: Format | undefined
  #isDamaged = false

  /** The file is not a capture, or is damaged here. */
  get isDamaged(): boolean {
    return this.#isDamaged
  }

  /** Yields the datagrams that these bytes complete. All must be read before the next call. */
  *read(bytes: Buffer): Generator<CapturedDatagram, void> {
    if (this.#isDamaged) return
    const all = this.#rest.length === 0 ? bytes : Buffer.concat([this.#rest, bytes])
    const at = yield* this.#readAll(all)
    // A copy: the reader of the file uses its buffer again.
    this.#rest = this.#isDamaged ? Buffer.alloc(0) : Buffer.from(all.subarray(at))
  }

  /** Returns how much was read. */
  *#readAll(all: Buffer): Generator<CapturedDatagram, number> {
    if (this.#format !== undefined) return yield* this.#readRecords(all, 0, this.#format)
    if (all.length < FILE_HEADER) return 0
    this.#format = formatOf(all)
    if (this.#format !== undefined) return yield* this.#readRecords(all, FILE_HEADER, this.#format)
    this.#isDamaged = true
    return 0
  }

  *#readRecords(all: Buffer, start: number, format: Format): Generator<CapturedDatagram, number> {
    const word = wordsOf(all, format)
    for (let at = start; ;) {
      if (at + RECORD_HEADER > all.length) return at
      const size = word(at + 8)
      this.#isDamaged = size > MAX_PACKET
      const packet = at + RECORD_HEADER
      if (this.#isDamaged || packet + size > all.length) return at
      const datagram = datagramOf(all.subarray(packet + format.skip, packet + size))
      if (datagram) yield { at: word(at) * 1_000 + word(at + 4) / format.perMs, ...datagram }
      at = packet + size
    }
  }
}

const wordsOf =
  (bytes: Buffer, { isLittleEndian }: Pick<Format, 'isLittleEndian'>) =>
  (at: number): number =>
    isLittleEndian ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at)

const MICROSECONDS = 0xa1b2c3d4
const NANOSECONDS = 0xa1b23c4d

function formatOf(bytes: Buffer): Format | undefined {
  for (const isLittleEndian of [true, false]) {
    const word = wordsOf(bytes, { isLittleEndian })
    const magic = word(0)
    if (magic !== MICROSECONDS && magic !== NANOSECONDS) continue
    const skip = linkTypes[word(20)]
    const perMs = magic === MICROSECONDS ? 1_000 : 1_000_000
    return skip === undefined ? undefined : { isLittleEndian, perMs, skip }
  }
  return undefined
}

/** Undefined: no UDP, or a fragment. */
function datagramOf(packet: Buffer): Omit<CapturedDatagram, 'at'> | undefined {
  const version = (packet[0] ?? 0) >> 4
  const ip = version === 4 ? ipv4(packet) : version === 6 ? ipv6(packet) : undefined
  if (ip === undefined || packet.length < ip.end + 8) return undefined
  const port = packet.readUInt16BE(ip.end + 2)
  const size = packet.readUInt16BE(ip.end + 4)
  if (size < 8 || ip.end + size > packet.length) return undefined
  return { to: keyOf(ip.words, port), payload: packet.subarray(ip.end + 8, ip.end + size) }
}

interface IpHeader {
  readonly end: number
  /** The address of the receiver. */
  readonly words: readonly number[]
}

function ipv4(packet: Buffer): IpHeader | undefined {
  const end = ((packet[0] ?? 0) & 0x0f) * 4
  if (end < 20 || packet.length < end || packet[9] !== UDP) return undefined
  const isFragment = (packet.readUInt16BE(6) & 0x3fff) !== 0
  return isFragment ? undefined : { end, words: [packet.readUInt32BE(16)] }
}

function ipv6(packet: Buffer): IpHeader | undefined {
  if (packet.length < 40 || packet[6] !== UDP) return undefined
  return { end: 40, words: [24, 28, 32, 36].map((at) => packet.readUInt32BE(at)) }
}

/** Equal for equal addresses, however they are written. Undefined: no address. */
export function endpointKey(address: string, port: number): string | undefined {
  const parsed = parseAddress(address)
  return parsed && keyOf(parsed.words, port)
}

const keyOf = (words: readonly number[], port: number): string => `${words.join('.')}:${port}`
