/**
 * Converts the captures of a call to one WAV: caller left, callee right, 8 kHz, 16 bit. Streams, in
 * constant memory. Writes a temporary file, syncs and renames it: there is never half a file.
 */
import * as fs from 'node:fs'
import { createHash } from 'node:crypto'
import { basename, dirname, join } from 'node:path'
import { decoderOf, readRtp } from './rtp.ts'
import { endpointKey, PcapReader } from './pcap-reader.ts'
import { Timeline, SAMPLE_RATE, type Channel } from './timeline.ts'

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
