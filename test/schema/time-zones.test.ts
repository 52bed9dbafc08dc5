import fc from 'fast-check'
import { expect, test } from 'vitest'
import { zoneName, zoneOf } from '../../schema/time-zones.ts'

const zones = [
  ...['UTC', 'Europe/Berlin', 'America/New_York', 'America/Havana', 'Asia/Kolkata'],
  ...['Australia/Lord_Howe', 'Africa/Casablanca', 'Pacific/Apia', 'Asia/Kathmandu'],
]

/** Milliseconds of 1990 to 2040. */
const moments = fc.integer({ min: 631_152_000_000, max: 2_208_988_800_000 })

/** The clock of a zone, as another formatter writes it. */
const shown = (zone: string, at: number): string =>
  new Intl.DateTimeFormat('sv-SE', {
    timeZone: zone,
    dateStyle: 'short',
    timeStyle: 'medium',
  }).format(at)

const asShown = (local: number): string =>
  new Date(local).toISOString().slice(0, 19).replace('T', ' ')

test('the offset of a zone at any moment is that of its clock', () => {
  fc.assert(
    fc.property(fc.constantFrom(...zones), moments, (zone, at) => {
      expect(asShown(at + zoneOf(zone).offsetMs(at))).toBe(shown(zone, at))
    }),
    { numRuns: 2_000 },
  )
})

test('the moment of a local time is the first at which the clock shows it', () => {
  fc.assert(
    fc.property(fc.constantFrom(...zones), moments, (zone, at) => {
      const local = at + zoneOf(zone).offsetMs(at)
      const found = zoneOf(zone).momentOf(local)
      expect(found).toBeLessThanOrEqual(at)
      expect(asShown(local)).toBe(shown(zone, found))
    }),
    { numRuns: 2_000 },
  )
})

test.each([
  ['a common day', 'Europe/Berlin', '2026-12-01T00:00', '2026-11-30T23:00'],
  ['an hour that is left out', 'Europe/Berlin', '2026-03-29T02:30', '2026-03-29T01:30'],
  ['an hour that is there twice', 'Europe/Berlin', '2026-10-25T02:30', '2026-10-25T00:30'],
  ['a day that begins at 01:00', 'America/Havana', '2026-03-08T00:00', '2026-03-08T05:00'],
  [
    'a half hour that is there twice',
    'Australia/Lord_Howe',
    '2026-04-05T01:45',
    '2026-04-04T14:45',
  ],
])('%s of %s: %s is %s UTC', (_, zone, local, utc) => {
  expect(new Date(zoneOf(zone).momentOf(Date.parse(`${local}Z`))).toISOString().slice(0, 16)).toBe(
    utc,
  )
})

test('a zone is named as the data spells it, and an offset or a place that is none has no name', () => {
  expect(zoneName('europe/berlin')).toBe('Europe/Berlin')
  expect(zoneName('utc')).toBe('UTC')
  for (const name of ['', '+02:00', 'Europe/Atlantis', 'Europe/Berlin ', '☃', 'a'.repeat(10_000)])
    expect(zoneName(name)).toBeUndefined()
})

test('each moment is in the day that its clock shows, from midnight to midnight', () => {
  // Before 2011, clocks of some zones were put back a minute after midnight.
  const since2012 = moments.filter((at) => at > Date.UTC(2012, 0))
  fc.assert(
    fc.property(fc.constantFrom(...zones), since2012, (name, at) => {
      const zone = zoneOf(name)
      const day = zone.dayOf(at)
      expect(asShown(day).slice(0, 10)).toBe(shown(name, at).slice(0, 10))
      expect(zone.momentOf(day)).toBeLessThanOrEqual(at)
      expect(zone.momentOf(day + 86_400_000)).toBeGreaterThan(at)
    }),
  )
})
