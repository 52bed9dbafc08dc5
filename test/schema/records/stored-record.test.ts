import { expect, test } from 'vitest'
import { worstOf } from '../../../schema/records/stored-record.ts'

const caller = {
  mos: 4.4,
  mosSource: 'measured' as const,
  jitterMs: 30,
  packetLossPct: 0,
  roundTripMs: 20,
  packets: 500,
}
const callee = {
  ...caller,
  mos: 3.1,
  mosSource: 'computed' as const,
  jitterMs: 2,
  packetLossPct: 7,
} as const

test('a record has the lower MOS and its source, and the higher jitter and loss', () => {
  expect(worstOf({ caller, callee })).toEqual({
    mos_score: 3.1,
    mos_source: 'computed',
    jitter_ms: 30,
    packet_loss_pct: 7,
  })
})

test('what is not known is null, never 0', () => {
  const nothing = { mos_score: null, mos_source: null, jitter_ms: null, packet_loss_pct: null }
  expect(worstOf(undefined)).toEqual(nothing)
  const silent = { ...caller, mos: null, mosSource: null, jitterMs: null, packetLossPct: null }
  expect(worstOf({ caller: silent, callee: null })).toEqual(nothing)
  expect(worstOf({ caller: silent, callee }).mos_score).toBe(3.1)
  expect(worstOf({ caller: { ...caller, mos: 1, jitterMs: 0 }, callee: silent })).toMatchObject({
    mos_score: 1,
    jitter_ms: 0,
  })
})
