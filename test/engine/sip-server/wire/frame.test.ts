import { expect, test } from 'vitest'
import {
  encodeFrame,
  FrameReader,
  maxFrameBytes,
} from '../../../../engine/sip-server/wire/frame.ts'

const stream = (...payloads: string[]): Buffer =>
  Buffer.from(payloads.map((payload) => encodeFrame(payload)).join(''))

test('a frame counts bytes, not characters', () => {
  expect(encodeFrame('a|ping')).toBe('6#a|ping')
  expect(encodeFrame('grüße 👋')).toBe('12#grüße 👋')
})

test('for drachtio-srf before 5.0 a frame counts characters, one for a surrogate pair', () => {
  expect(encodeFrame('a|ping', 'characters')).toBe('6#a|ping')
  expect(encodeFrame('grüße 👋', 'characters')).toBe('7#grüße 👋')
})

test('frames are read again wherever the stream was cut', () => {
  const payloads = ['1|ping', 'grüße 👋|route|invite', 'x'.repeat(300)]
  const bytes = stream(...payloads)
  for (let size = 1; size <= bytes.length; size++) {
    const reader = new FrameReader()
    const read: string[] = []
    for (let at = 0; at < bytes.length; at += size)
      read.push(...reader.push(bytes.subarray(at, at + size)).payloads)
    expect(read, `cut every ${size} bytes`).toEqual(payloads)
  }
})

test('a frame of the greatest length passes, a longer one is skipped but for its beginning', () => {
  const long = `id-7|sip||${'x'.repeat(maxFrameBytes)}`
  const bytes = stream('y'.repeat(maxFrameBytes), long, '2|ping')
  for (const size of [100, 4_096, 70_000, bytes.length]) {
    const reader = new FrameReader()
    const read: string[] = []
    const skipped: string[] = []
    for (let at = 0; at < bytes.length; at += size) {
      const { payloads, tooLong, problem } = reader.push(bytes.subarray(at, at + size))
      read.push(...payloads)
      skipped.push(...tooLong)
      expect(problem).toBeUndefined()
    }
    expect(read.map((payload) => payload.slice(0, 6))).toEqual(['yyyyyy', '2|ping'])
    expect(skipped.map((start) => start.slice(0, 10))).toEqual(['id-7|sip||'])
    expect(skipped[0]?.length).toBeLessThan(1_000)
  }
})

test.each([
  ['GET / HTTP/1.1', 'length is not a number'],
  ['#x', 'length is missing or zero'],
  ['0#', 'length is missing or zero'],
  ['-1#x', 'length is not a number'],
  ['0000000000001#x', 'frame is too long'],
])('%j is a problem, not an exception', (bytes, problem) => {
  expect(new FrameReader().push(Buffer.from(bytes)).problem).toBe(problem)
})

test('frames before a problem are kept, nothing after it is read', () => {
  const reader = new FrameReader()
  const broken = Buffer.concat([stream('1|ping'), Buffer.from('oops'), stream('2|ping')])
  expect(reader.push(broken)).toEqual({
    payloads: ['1|ping'],
    tooLong: [],
    problem: 'length is not a number',
  })
  expect(reader.push(stream('3|ping')).payloads).toEqual([])
})
