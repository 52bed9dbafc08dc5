import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  type ConversionOrder,
  convert,
  type Disk,
  spooledFilesOf,
} from '../../../../../engine/media/recording/audio/convert.ts'
import { readWav } from '../../../../support/audio.ts'
import { temporaryFolder } from '../../../../support/temporary-folder.ts'
import '../../../../support/property-seed.ts'

/**
 * rtpengine 10.5.3.5 has written it: 0.5 s of talk (440 Hz from the caller in A-law, 1000 Hz from
 * the callee in µ-law), a digit and an RTCP packet; recording stopped for 0.3 s; 0.4 s of talk.
 */
const vectors = new URL('../../../../vectors/recording/', import.meta.url).pathname
const talk = JSON.parse(readFileSync(join(vectors, 'talk.json'), 'utf8')) as {
  readonly sessionId: string
  readonly startedAt: number
  readonly endedAt: number
}

const folder = temporaryFolder()
let count = 0

const orderOf = (changes: Partial<ConversionOrder> = {}): ConversionOrder => ({
  spool: vectors,
  target: join(folder, `${(count += 1)}.wav`),
  tracks: [
    {
      sessionId: talk.sessionId,
      startedAt: talk.startedAt,
      caller: [{ address: '127.0.0.1', port: 41_222 }],
      callee: [{ address: '127.0.0.1', port: 41_200 }],
    },
  ],
  startedAt: talk.startedAt,
  endedAt: talk.endedAt,
  ...changes,
})

test('the caller is left, the callee is right, and the pause between two starts is silence', () => {
  const order = orderOf()
  const result = convert(order)
  const bytes = readFileSync(order.target)
  const wav = readWav(bytes)
  expect([wav.channels, wav.rate]).toEqual([2, 8_000])
  expect(wav.seconds).toBeCloseTo((talk.endedAt - talk.startedAt) / 1_000, 2)
  for (const [from, to] of [
    [0.05, 0.45],
    [0.9, 1.15],
  ] as const) {
    expect(wav.tone(0, 440, from, to)).toBeGreaterThan(0.9)
    expect(wav.tone(1, 1_000, from, to)).toBeGreaterThan(0.9)
    expect(wav.tone(0, 1_000, from, to)).toBeLessThan(0.02)
    expect(wav.tone(1, 440, from, to)).toBeLessThan(0.02)
  }
  expect([wav.peak(0, 0.6, 0.8), wav.peak(1, 0.6, 0.8)]).toEqual([0, 0])
  expect(result).toEqual({
    kind: 'converted',
    durationMs: Math.round(wav.seconds * 1_000),
    bytes: bytes.length,
    sha256: createHash('sha256').update(bytes).digest('hex'),
  })
})

test('what was captured of another session, or in no known codec, makes no file', () => {
  const [track] = orderOf().tracks
  if (track === undefined) throw new Error('no track')
  expect(convert(orderOf({ tracks: [{ ...track, sessionId: 'tg-fixture' }] }))).toEqual({
    kind: 'silent',
    packets: 0,
  })
  expect(convert(orderOf({ tracks: [{ ...track, caller: [], callee: [] }] })).kind).toBe('silent')
})

test('a full disk leaves no file, and says why', () => {
  const order = orderOf()
  const full: Disk = {
    writeSync: () => {
      throw new Error('ENOSPC: no space left on device')
    },
  }
  expect(convert(order, full)).toEqual({
    kind: 'failed',
    reason: 'Error: ENOSPC: no space left on device',
  })
  expect(readdirSync(folder).filter((name) => name.startsWith(`${count}.`))).toEqual([])
})

test('the files of a session are its own captures and what is said about them', () => {
  expect(spooledFilesOf(vectors, talk.sessionId)).toHaveLength(4)
  expect(spooledFilesOf(vectors, 'tg-fixture')).toEqual([])
  expect(spooledFilesOf(join(folder, 'absent'), talk.sessionId)).toEqual([])
})

test('a capture that is damaged anywhere ends in a whole WAV, or in none, of bounded size', () => {
  const [name = ''] = readdirSync(join(vectors, 'pcaps'))
  const capture = readFileSync(join(vectors, 'pcaps', name))
  const spool = join(folder, 'spool')
  mkdirSync(join(spool, 'pcaps'), { recursive: true })
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(capture.length - 1), fc.integer({ min: 0, max: 255 })), {
        maxLength: 40,
      }),
      fc.nat(capture.length),
      (changes, end) => {
        const damaged = Buffer.from(capture)
        for (const [at, byte] of changes) damaged[at] = byte
        writeFileSync(join(spool, 'pcaps', name), damaged.subarray(0, end))
        const order = orderOf({ spool })
        const result = convert(order)
        if (result.kind === 'failed') throw new Error(result.reason)
        if (result.kind === 'silent') return
        expect(readWav(readFileSync(order.target)).seconds).toBeLessThanOrEqual(2)
      },
    ),
    { numRuns: 200 },
  )
})
