import fc from 'fast-check'
import { expect, test } from 'vitest'
import { decoderOf } from '../../../../../engine/media/recording/audio/rtp.ts'
import { wavHeader } from '../../../../../engine/media/recording/audio/convert.ts'
import { readWav } from '../../../../support/audio.ts'
import '../../../../support/property-seed.ts'
import { type Piece, Timeline } from '../../../../../engine/media/recording/audio/timeline.ts'

const decoder = decoderOf(8) ?? new Int16Array(256)
const loud = 0xaa
const peak = 32_256

/** 20 ms of the loudest sample. */
const piece = (timestamp: number, arrival: number, changes: Partial<Piece> = {}): Piece => ({
  channel: 0,
  ssrc: 1,
  timestamp,
  arrival,
  isMarked: false,
  decoder,
  payload: Buffer.alloc(160, loud),
  ...changes,
})

function played(pieces: readonly Piece[], frames?: number, maxFrames = 1_000_000) {
  const parts: Buffer[] = []
  let largest = 0
  const timeline = new Timeline((bytes) => {
    parts.push(Buffer.from(bytes))
    largest = Math.max(largest, bytes.length)
  }, maxFrames)
  for (const one of pieces) timeline.add(one)
  const written = timeline.finish(frames)
  const bytes = Buffer.concat(parts)
  expect(bytes.length).toBe(written * 4)
  const wav = readWav(Buffer.concat([wavHeader(written, 2), bytes]))
  const isLoud = (from: number, to: number, channel = 0): boolean[] =>
    Array.from(
      { length: to - from },
      (_, index) => bytes.readInt16LE((from + index) * 4 + channel * 2) === peak,
    )
  return { written, wav, isLoud, largest }
}

const all = (flags: readonly boolean[]): boolean => flags.every(Boolean)
const none = (flags: readonly boolean[]): boolean => !flags.some(Boolean)

test('packets are where their timestamps say, whatever the network did to them', () => {
  const { isLoud, written } = played([
    piece(0, 0),
    piece(320, 900),
    piece(160, 950),
    piece(480, 960),
    piece(800, 2_000),
  ])
  expect(written).toBe(960)
  expect(all(isLoud(0, 640))).toBe(true)
  expect(none(isLoud(640, 800))).toBe(true)
  expect(all(isLoud(800, 960))).toBe(true)
})

test('after a pause of the sender the arrival counts, when its timestamps stood still', () => {
  const marked = played([piece(0, 0), piece(160, 8_000, { isMarked: true })])
  expect(all(marked.isLoud(8_000, 8_160))).toBe(true)
  const long = played([piece(0, 0), piece(160, 80_000)])
  expect(all(long.isLoud(80_000, 80_160))).toBe(true)
  const jumped = played([piece(0, 0), piece(900_000, 160)])
  expect(all(jumped.isLoud(0, 320))).toBe(true)
})

test('timestamps pass their largest value', () => {
  const { isLoud } = played([piece(0xffff_ffff - 159, 0), piece(0, 160), piece(160, 320)])
  expect(all(isLoud(0, 480))).toBe(true)
})

test('each party has its channel, and hours of silence cost no memory', () => {
  const hour = 3_600 * 8_000
  const { isLoud, largest, written } = played(
    [piece(0, 0), piece(0, hour, { channel: 1, ssrc: 2 })],
    undefined,
    2 * hour,
  )
  expect(written).toBe(hour + 160)
  expect(all(isLoud(hour, hour + 160, 1))).toBe(true)
  expect(none(isLoud(hour, hour + 160, 0))).toBe(true)
  expect(largest).toBeLessThanOrEqual(128_000)
})

test('whatever comes, the length is bounded and nothing fails', () => {
  const time = fc.integer({ min: -100_000, max: 2_000_000 })
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(0xffff_ffff), time, fc.boolean(), fc.nat(70_000), fc.nat(200)), {
        maxLength: 30,
      }),
      (packets) => {
        const { written, largest } = played(
          packets.map(([timestamp, arrival, isMarked, size, ssrc]) =>
            piece(timestamp, arrival, { isMarked, ssrc, payload: Buffer.alloc(size, loud) }),
          ),
          undefined,
          500_000,
        )
        expect(written).toBeLessThanOrEqual(500_000)
        expect(largest).toBeLessThanOrEqual(128_000)
      },
    ),
    { numRuns: 60 },
  )
})
