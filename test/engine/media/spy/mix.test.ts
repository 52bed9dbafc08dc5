import { expect, test } from 'vitest'
import { decoderOf, encode, readRtp } from '../../../../engine/media/recording/audio/rtp.ts'
import { Mix } from '../../../../engine/media/spy/mix.ts'

test.each([0, 8] as const)('payload type %i: each code is the nearest to its own value', (type) => {
  const decoder = decoderOf(type) ?? new Int16Array(0)
  for (const value of decoder) expect(decoder[encode(type, value)]).toBe(value)
  expect(decoder[encode(type, 1_000_000)]).toBe(Math.max(...decoder))
  expect(decoder[encode(type, -1_000_000)]).toBe(Math.min(...decoder))
})

/** 20 ms of one value. */
function packet(at: number, value: number, ssrc = 7): Buffer {
  const head = Buffer.from([0x80, 0, 0, at, 0, 0, 0, 0, 0, 0, 0, ssrc])
  head.writeUInt32BE(at * 160, 4)
  return Buffer.concat([head, Buffer.alloc(160, encode(0, value))])
}

/** The value that all samples of the next frame have. */
function nextOf(mix: Mix): number {
  const rtp = readRtp(mix.next(0))
  const decoder = decoderOf(0) ?? new Int16Array(0)
  const values = new Set([...(rtp?.payload ?? [])].map((code) => decoder[code]))
  expect(values.size).toBe(1)
  return [...values][0] ?? NaN
}

const near = (value: number): unknown => expect.closeTo(value, -Math.log10(value * 0.1))

test('two parties are added, and one alone is packets as it is', () => {
  const mix = new Mix(1)
  for (const at of [1, 2, 3]) {
    mix.push(0, packet(at, 1_000))
    if (at < 3) mix.push(1, packet(at, 2_000))
  }
  expect(nextOf(mix)).toEqual(near(3_000))
  expect(nextOf(mix)).toEqual(near(3_000))
  expect(nextOf(mix)).toEqual(near(1_000))
  expect(nextOf(mix)).toBe(0)
})

test('a party is packets once two packets of it wait, and again so after a pause', () => {
  const mix = new Mix(1)
  mix.push(0, packet(1, 1_000))
  expect(nextOf(mix)).toBe(0)
  mix.push(0, packet(2, 1_000))
  expect(nextOf(mix)).toEqual(near(1_000))
  expect(nextOf(mix)).toEqual(near(1_000))
  mix.push(0, packet(9, 1_000))
  expect(nextOf(mix)).toBe(0)
})

test('what comes twice or too late is left out; another stream of the party is not', () => {
  const mix = new Mix(1)
  for (const at of [5, 5, 4, 6]) mix.push(0, packet(at, 1_000))
  mix.push(0, packet(1, 1_000, 8))
  const packets = [nextOf(mix), nextOf(mix), nextOf(mix), nextOf(mix)]
  expect(packets).toEqual([near(1_000), near(1_000), near(1_000), 0])
})
