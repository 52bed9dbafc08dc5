/**
 * The answers in `test/vectors/rtpengine/statistics.jsonl` are those of rtpengine 10.5.3.5,
 * `--mos=LQ`.
 */
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { lastPacketOf, qualityOf, mosOf } from '../../../../engine/media/quality/statistics.ts'
import type { NgDictionary } from '../../../../engine/media/relay/relays.ts'

interface Recorded {
  readonly name: string
  readonly verb: 'query' | 'delete'
  readonly values: NgDictionary
}

const recorded = readFileSync('test/vectors/rtpengine/statistics.jsonl', 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Recorded)

function answer(name: string, verb: Recorded['verb'] = 'delete'): NgDictionary {
  const found = recorded.find((each) => each.name === name && each.verb === verb)
  if (found === undefined) throw new Error(`no answer named ${name}`)
  return found.values
}

const tags = { caller: 'A', callee: 'B' }

test('what both phones report by RTCP is what was heard from the other one', () => {
  const both = { mos: 4.4, mosSource: 'measured', jitterMs: 0, packetLossPct: 0 } as const
  expect(qualityOf(answer('both send RTCP'), tags)).toEqual({
    caller: { ...both, roundTripMs: 0.4, packets: 402 },
    callee: { ...both, roundTripMs: 0.3, packets: 402 },
  })
})

test('loss on the way from the caller is what was heard from the caller, and counts by its codec', () => {
  const { caller, callee } = qualityOf(answer('the caller loses 10 %'), tags) ?? {}
  // The relay says 3.
  expect(caller).toMatchObject({ mos: 1.4, mosSource: 'computed', packetLossPct: 11.2 })
  expect(caller?.packets).toBe(349)
  expect(callee).toMatchObject({ mos: 4.4, packetLossPct: 0, packets: 402 })
})

test.each([
  'no RTCP',
  'no RTCP, generate RTCP: on, the caller loses 10 %',
  '--mos=CQ without a round trip',
])('where the relay was told nothing, only the packets are known: %s', (name) => {
  const { caller, callee } = qualityOf(answer(name), tags) ?? {}
  for (const stream of [caller, callee]) {
    expect(stream).toMatchObject({ mos: null, mosSource: null, jitterMs: null })
    expect(stream).toMatchObject({ packetLossPct: null, roundTripMs: null })
    expect(stream?.packets).toBeGreaterThan(200)
  }
})

test('a party that sent nothing has no quality, and a call in which nothing was sent has none', () => {
  const oneWay = qualityOf(answer('only the caller sends RTP'), tags)
  expect(oneWay?.callee).toBeNull()
  expect(oneWay?.caller).toMatchObject({ mos: 4.4, mosSource: 'measured', packets: 252 })
  expect(qualityOf(answer('nothing is sent'), tags)).toBeUndefined()
})

test('a query tells when the last RTP packet came, and how many', () => {
  const last = lastPacketOf(answer('both send RTCP', 'query'), ['A', 'B'])
  expect(last).toEqual({ seconds: 1_795_382_561, packets: 802 })
  // Their streams have the time at which they were opened.
  expect(lastPacketOf(answer('nothing is sent', 'query'), ['A', 'B'])).toEqual({
    seconds: 0,
    packets: 0,
  })
})

test('a fax and video are media as audio is', () => {
  const party = (type: string, packets: number, seconds: number): NgDictionary => {
    const rtp = { flags: ['RTP', 'filled'], stats: { packets }, 'last packet': seconds }
    const rtcp = { flags: ['RTCP'], stats: { packets: 1 }, 'last packet': seconds + 5 }
    return { type, streams: [rtp, rtcp] }
  }
  const values = {
    tags: { A: { medias: [party('audio', 10, 1), party('image', 20, 90)] }, B: { medias: [] } },
  }
  expect(lastPacketOf(values, ['A', 'B'])).toEqual({ seconds: 90, packets: 30 })
})

const clean = { jitterMs: 0, packetLossPct: 0, roundTripMs: 0, codec: 'PCMA' }

test('a call without impairment is as good as its codec', () => {
  expect(mosOf(clean)).toBe(4.4)
  expect(mosOf({ ...clean, codec: 'g729' })).toBe(4.1)
})

test('loss costs more than jitter, and a delay that people notice more than one that they do not', () => {
  expect(mosOf({ ...clean, packetLossPct: 1 })).toBe(3.8)
  expect(mosOf({ ...clean, packetLossPct: 10 })).toBe(1.5)
  expect(mosOf({ ...clean, jitterMs: 20 })).toBe(4.4)
  expect(mosOf({ ...clean, roundTripMs: 200 })).toBe(4.4)
  expect(mosOf({ ...clean, roundTripMs: 800 })).toBe(3.1)
})

test('is between 1 and 4.4, and never better with more loss, jitter or delay', () => {
  const figures = fc.record({
    jitterMs: fc.double({ min: 0, max: 10_000, noNaN: true }),
    packetLossPct: fc.double({ min: 0, max: 100, noNaN: true }),
    roundTripMs: fc.double({ min: 0, max: 60_000, noNaN: true }),
    codec: fc.constantFrom('PCMU', 'G729', 'opus', undefined, '__proto__'),
  })
  fc.assert(
    fc.property(figures, fc.double({ min: 0, max: 10, noNaN: true }), (quality, more) => {
      const mos = mosOf(quality)
      expect(mos).toBeGreaterThanOrEqual(1)
      expect(mos).toBeLessThanOrEqual(4.4)
      expect(mosOf({ ...quality, jitterMs: quality.jitterMs + more })).toBeLessThanOrEqual(mos)
      expect(mosOf({ ...quality, roundTripMs: quality.roundTripMs + more })).toBeLessThanOrEqual(
        mos,
      )
      const packetLossPct = Math.min(100, quality.packetLossPct + more)
      expect(mosOf({ ...quality, packetLossPct })).toBeLessThanOrEqual(mos)
    }),
  )
})
