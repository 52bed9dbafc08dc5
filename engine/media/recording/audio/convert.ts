/**
 * Converts the captures of a call to one WAV: caller left, callee right, 8 kHz, 16 bit. Streams, in
 * constant memory. Writes a temporary file, syncs and renames it: there is never half a file.
 */
import * as fs from 'node:fs'
import { createHash } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import { decoderOf, readRtp } from './rtp.ts'
import { parseAddress } from '../../../../schema/net/ip-address.ts'

/** `address:port` of the relay to which a party sends its media. */
export interface RelayEndpoint {
  readonly address: string
  readonly port: number
}

/** One media session of the call. */
export interface Track {
  /** The ng call-id, with which the names of its captures begin. */
  readonly sessionId: string
  /** Milliseconds UTC. */
  readonly startedAt: number
  readonly caller: readonly RelayEndpoint[]
  readonly callee: readonly RelayEndpoint[]
}

export interface ConversionOrder {
  /** rtpengine's `--recording-dir`. */
  readonly spool: string
  /** The path of the file. */
  readonly target: string
  readonly tracks: readonly Track[]
  /** Milliseconds UTC. */
  readonly startedAt: number
  /** Undefined: with the last audio. */
  readonly endedAt: number | undefined
}

export type Conversion =
  | {
      readonly kind: 'converted'
      readonly durationMs: number
      readonly bytes: number
      readonly sha256: string
    }
  /** Nothing was captured, or nothing that can be decoded. */
  | { readonly kind: 'silent'; readonly packets: number }
  | { readonly kind: 'failed'; readonly reason: string }

/** A test replaces it. */
export type Disk = Pick<typeof fs, 'writeSync'>

/** Frames a second. */
const SAMPLE_RATE = 8_000
const READ_BYTES = 65_536
/** A WAV has 32 bits for its size; a day is less. */
const MAX_FRAMES = 24 * 3_600 * SAMPLE_RATE
/** If the clock of a relay differs by more from ours, only the differences of its times count. */
const SKEW_MS = 2_000

/** Blocks its thread until the file is written. */
export function convert(order: ConversionOrder, disk: Disk = fs): Conversion {
  const temporary = `${order.target}.${process.pid}.tmp`
  let file: number | undefined
  try {
    file = fs.openSync(temporary, 'w+', 0o600)
    const result = writeWav(order, file, disk)
    if (result.kind === 'converted') {
      fs.renameSync(temporary, order.target)
      syncFolder(dirname(order.target))
    }
    return result
  } catch (error) {
    return { kind: 'failed', reason: String(error) }
  } finally {
    if (file !== undefined) fs.closeSync(file)
    fs.rmSync(temporary, { force: true })
  }
}

function writeWav(
  { spool, tracks, startedAt, endedAt }: ConversionOrder,
  file: number,
  disk: Disk,
): Conversion {
  let position = WAV_HEADER
  const append = (bytes: Buffer): void => {
    writeAll(disk, file, bytes, position)
    position += bytes.length
  }
  const frames = endedAt === undefined ? undefined : framesIn(Math.max(0, endedAt - startedAt))
  const timeline = new Timeline(append, Math.min(frames ?? MAX_FRAMES, MAX_FRAMES))
  const count = { packets: 0, decoded: 0 }
  for (const track of tracks)
    readTrack(track, { spool, startedAt, endedAt }, (piece) => {
      count.packets += 1
      const packet = readRtp(piece.payload)
      const decoder = packet && decoderOf(packet.payloadType)
      if (packet === undefined || decoder === undefined) return
      count.decoded += 1
      timeline.add({ ...packet, decoder, channel: piece.channel, arrival: piece.frame })
    })
  if (count.decoded === 0) return { kind: 'silent', packets: count.packets }
  const written = timeline.finish(frames)
  writeAll(disk, file, wavHeader(written, 2), 0)
  fs.fsyncSync(file)
  const sha256 = digestOf(file)
  return {
    kind: 'converted',
    durationMs: Math.round((written * 1_000) / SAMPLE_RATE),
    bytes: position,
    sha256,
  }
}

const framesIn = (ms: number): number => Math.round((ms * SAMPLE_RATE) / 1_000)

interface CapturedPiece {
  readonly channel: Channel
  readonly frame: number
  readonly payload: Buffer
}

function readTrack(
  track: Track,
  times: Pick<ConversionOrder, 'spool' | 'startedAt' | 'endedAt'>,
  take: (piece: CapturedPiece) => void,
): void {
  const channels = channelsOf(track)
  let shiftMs: number | undefined
  for (const path of capturesOf(times.spool, track.sessionId))
    for (const datagram of readCapture(path)) {
      const channel = channels.get(datagram.to)
      if (channel === undefined) continue
      shiftMs ??= shiftOf(datagram.at, track, times.endedAt)
      const frame = framesIn(datagram.at + shiftMs - times.startedAt)
      take({ channel, frame, payload: datagram.payload })
    }
}

/** The relay has a clock of its own, perhaps on another machine. */
function shiftOf(at: number, { startedAt }: Track, endedAt = Infinity): number {
  const isSame = at > startedAt - SKEW_MS && at < endedAt + SKEW_MS
  return isSame ? 0 : startedAt - at
}

function channelsOf({ caller, callee }: Track): ReadonlyMap<string, Channel> {
  const keyed = (endpoints: readonly RelayEndpoint[], channel: Channel) =>
    endpoints.flatMap(({ address, port }) => {
      const key = endpointKey(address, port)
      return key === undefined ? [] : [[key, channel] as const]
    })
  return new Map([...keyed(caller, 0), ...keyed(callee, 1)])
}

function* readCapture(path: string) {
  const file = fs.openSync(path, 'r')
  try {
    const reader = new PcapReader()
    const bytes = Buffer.alloc(READ_BYTES)
    for (;;) {
      const size = fs.readSync(file, bytes)
      if (size === 0 || reader.isDamaged) return
      yield* reader.read(bytes.subarray(0, size))
    }
  } finally {
    fs.closeSync(file)
  }
}

/** The captures of a session: one for each start of its recording, the first one first. */
function capturesOf(spool: string, sessionId: string): readonly string[] {
  return filesOf(join(spool, 'pcaps'), captureName(sessionId, '', 'pcap'))
    .map((path) => ({ path, at: firstTimeOf(path) }))
    .toSorted((one, other) => one.at - other.at)
    .map(({ path }) => path)
}

/** All that the relay has written of a session. */
export const spooledFilesOf = (spool: string, sessionId: string): readonly string[] => [
  ...filesOf(join(spool, 'pcaps'), captureName(sessionId, '', 'pcap')),
  ...filesOf(join(spool, 'metadata'), captureName(sessionId, 'rtpengine-meta-', 'txt')),
]

/** rtpengine adds 16 random digits to the ng call-id. */
const captureName =
  (sessionId: string, before: string, suffix: string) =>
  (name: string): boolean =>
    name.startsWith(`${before}${sessionId}-`) &&
    /^[0-9a-f]{16}\.(?:pcap|txt)$/.test(name.slice(before.length + sessionId.length + 1)) &&
    name.endsWith(suffix)

function filesOf(folder: string, isWanted: (name: string) => boolean): readonly string[] {
  try {
    return fs
      .readdirSync(folder)
      .filter(isWanted)
      .map((name) => join(folder, basename(name)))
  } catch {
    // The relay has not recorded anything yet.
    return []
  }
}

function firstTimeOf(path: string): number {
  for (const { at } of readCapture(path)) return at
  return Infinity
}

function writeAll(disk: Disk, file: number, bytes: Buffer, position: number): void {
  for (let done = 0; done < bytes.length;)
    done += disk.writeSync(file, bytes, done, bytes.length - done, position + done)
}

const HASH_BYTES = 1_048_576

function digestOf(file: number): string {
  const hash = createHash('sha256')
  const bytes = Buffer.alloc(HASH_BYTES)
  for (let position = 0; ;) {
    const size = fs.readSync(file, bytes, 0, bytes.length, position)
    if (size === 0) return hash.digest('hex')
    hash.update(bytes.subarray(0, size))
    position += size
  }
}

/** The new name outlasts a crash of the machine, too. */
function syncFolder(folder: string): void {
  const handle = fs.openSync(folder, 'r')
  try {
    fs.fsyncSync(handle)
  } finally {
    fs.closeSync(handle)
  }
}

// Puts the audio of two parties at its time, in order and in bounded memory (pure). Packets come
// late and out of order: the last seconds are held, and passed to `write` when no packet can belong
// there.

/** 0: left, the caller. 1: right, the callee. */
type Channel = 0 | 1

/** The longest delay of a packet. */
const LATE_FRAMES = 2 * SAMPLE_RATE
const WINDOW_FRAMES = 2 * LATE_FRAMES
/** Timestamps of a sender that differ by more from the time of arrival are ignored. */
const DRIFT_FRAMES = SAMPLE_RATE / 5
/** The most senders of one call. */
const MAX_SENDERS = 64

interface Sender {
  /** The frame of the last timestamp. */
  frame: number
  timestamp: number
}

export interface Piece {
  readonly channel: Channel
  readonly ssrc: number
  readonly timestamp: number
  readonly isMarked: boolean
  /** The frame of its arrival. */
  readonly arrival: number
  readonly payload: Buffer
  readonly decoder: Int16Array
}

export class Timeline {
  /** The bytes are valid until it returns. */
  readonly #write: (frames: Buffer) => void
  readonly #maxFrames: number
  readonly #window = new Int16Array(WINDOW_FRAMES * 2)
  readonly #senders = new Map<string, Sender>()
  /** The first frame of the window: those before are written. */
  #start = 0
  /** Behind the last frame with audio. */
  #end = 0

  constructor(write: (frames: Buffer) => void, maxFrames: number) {
    this.#write = write
    this.#maxFrames = maxFrames
  }

  add(piece: Piece): void {
    const frame = this.#frameOf(piece)
    const { payload, decoder, channel } = piece
    const end = frame + payload.length
    if (frame < 0 || end > this.#maxFrames) return
    if (end > this.#start + WINDOW_FRAMES) this.#flush(end - LATE_FRAMES)
    for (let index = Math.max(0, this.#start - frame); index < payload.length; index++) {
      const at = (frame + index) % WINDOW_FRAMES
      this.#window[at * 2 + channel] = decoder[payload[index] ?? 0] ?? 0
    }
    this.#end = Math.max(this.#end, end)
  }

  /** Writes the rest. Returns the number of frames: `frames`, or up to the last audio. */
  finish(frames: number | undefined): number {
    const end = Math.min(frames ?? this.#end, this.#maxFrames)
    this.#flush(end)
    return this.#start
  }

  /**
   * RFC 3550 §5.1: the time between packets of one sender is that of their timestamps, not of their
   * arrival, unless the sender has paused or restarted.
   */
  #frameOf({ channel, ssrc, timestamp, isMarked, arrival }: Piece): number {
    const key = `${channel}:${ssrc}`
    const sender = this.#senders.get(key)
    if (sender === undefined) {
      if (this.#senders.size >= MAX_SENDERS) this.#senders.clear()
      this.#senders.set(key, { frame: arrival, timestamp })
      return arrival
    }
    const frame = sender.frame + ((timestamp - sender.timestamp) | 0)
    const late = arrival - frame
    const maxLate = isMarked ? DRIFT_FRAMES : LATE_FRAMES
    sender.frame = late > maxLate || late < -DRIFT_FRAMES ? arrival : frame
    sender.timestamp = timestamp
    return sender.frame
  }

  /** Writes what is before `end`, and clears its place. */
  #flush(end: number): void {
    while (this.#start < end) {
      const from = this.#start % WINDOW_FRAMES
      const count = Math.min(end - this.#start, WINDOW_FRAMES - from)
      const part = this.#window.subarray(from * 2, (from + count) * 2)
      this.#write(Buffer.from(part.buffer, part.byteOffset, part.byteLength))
      part.fill(0)
      this.#start += count
    }
  }
}

const WAV_HEADER = 44
const BYTES_PER_SAMPLE = 2

/** A frame is one sample of each channel. */
export function wavHeader(frames: number, channels: number): Buffer {
  const frameBytes = channels * BYTES_PER_SAMPLE
  const size = frames * frameBytes
  const header = Buffer.alloc(WAV_HEADER)
  header.write('RIFF', 0, 'latin1')
  header.writeUInt32LE(WAV_HEADER - 8 + size, 4)
  header.write('WAVEfmt ', 8, 'latin1')
  header.writeUInt32LE(16, 16)
  header.writeUInt16LE(1, 20)
  header.writeUInt16LE(channels, 22)
  header.writeUInt32LE(SAMPLE_RATE, 24)
  header.writeUInt32LE(SAMPLE_RATE * frameBytes, 28)
  header.writeUInt16LE(frameBytes, 32)
  header.writeUInt16LE(BYTES_PER_SAMPLE * 8, 34)
  header.write('data', 36, 'latin1')
  header.writeUInt32LE(size, 40)
  return header
}

// The UDP datagrams of a capture file, piece by piece (pure). The file comes from outside, and may
// end in the middle of a packet: rtpengine was killed, or the disk was full. Reading ends at the
// damage.

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

class PcapReader {
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

const keyOf = (words: readonly number[], port: number): string => `${words.join('.')}:${port}`

/** Equal for equal addresses, however they are written. Undefined: no address. */
function endpointKey(address: string, port: number): string | undefined {
  const parsed = parseAddress(address)
  return parsed && keyOf(parsed.words, port)
}
