import fc from 'fast-check'
import { expect, test } from 'vitest'
import { byRateKey, type DeckRate, keyOf } from '../../../../control/resources/decks/deck-rate.ts'
import { PackedRates } from '../../../../control/resources/decks/packed-rates.ts'

const digits = fc
  .string({ unit: fc.constantFrom('0', '1', '4', '9'), maxLength: 19 })
  .map((text) => `4${text}`)
// Some are near each other, and some are beyond what one number holds.
const prefixes = fc.oneof(
  digits,
  digits.map((text) => `4419000000${text}`.slice(0, 20)),
  fc.constantFrom('', '4', '44', '440', '99999999999999999999'),
)
const times = fc.option(fc.integer({ min: 0, max: 4_000_000_000_000 }))
const rates = fc.record({
  prefix: prefixes,
  description: fc.option(fc.string({ maxLength: 4 })),
  line: fc.integer({ min: 1, max: 600_000 }),
  terms: fc.record({
    rate_per_minute_micros: fc.maxSafeNat(),
    connect_fee_micros: fc.nat(),
    is_blocked: fc.constantFrom(0 as const, 1 as const),
    period: fc.constantFrom(null, 'peak', 'night'),
    first_increment_seconds: fc.nat(),
    first_rate_per_minute_micros: fc.maxSafeNat(),
    increment_seconds: fc.nat(),
    effective_from_at: times,
    effective_to_at: times,
  }),
})

test('rates come back as they were, in the order of the databases, the first of two', () => {
  fc.assert(
    fc.property(fc.array(rates, { maxLength: 60 }), (written) => {
      const packed = new PackedRates()
      for (const rate of written) packed.push(rate)
      const twins: (readonly [DeckRate, DeckRate])[] = []
      const left = packed.end((first, twin) => twins.push([first, twin]))
      const isTwin = (one: DeckRate, other: DeckRate): boolean =>
        byRateKey(keyOf(one), keyOf(other)) === 0
      const ordered = written.toSorted((one, other) => byRateKey(keyOf(one), keyOf(other)))
      const kept = ordered.filter((rate, at) => {
        const last = ordered[at - 1]
        return last === undefined || !isTwin(last, rate)
      })
      expect(packed.slice(0, packed.length)).toEqual(kept)
      expect(left).toBe(written.length - kept.length)
      expect(twins).toHaveLength(left)
      expect(twins.every(([first, twin]) => isTwin(first, twin))).toBe(true)
      const starts = written.flatMap(({ terms }) => terms.effective_from_at ?? [])
      expect(packed.latestStart()).toBe(starts.length === 0 ? undefined : Math.max(...starts))
    }),
  )
})

test('a list grows, and forgets nothing', () => {
  const packed = new PackedRates()
  const prefixOf = (at: number): string => String(90_000 - at)
  for (let at = 0; at < 30_000; at += 1)
    packed.push({
      prefix: prefixOf(at),
      description: `to ${at}`,
      line: at + 2,
      terms: {
        rate_per_minute_micros: at,
        connect_fee_micros: 0,
        is_blocked: 0,
        period: null,
        first_increment_seconds: 1,
        first_rate_per_minute_micros: at,
        increment_seconds: 1,
        effective_from_at: null,
        effective_to_at: null,
      },
    })
  expect(packed.end(() => undefined)).toBe(0)
  expect(packed).toHaveLength(30_000)
  for (const at of [0, 1, 9_999, 29_999]) {
    const written = 29_999 - at
    expect(packed.at(at)).toMatchObject({
      prefix: prefixOf(written),
      description: `to ${written}`,
      line: written + 2,
      terms: { rate_per_minute_micros: written },
    })
  }
  expect(packed.at(30_000)).toBeUndefined()
})
