import fc from 'fast-check'
import { expect, test } from 'vitest'
import { PlanTimes } from '../../../../engine/charging/pricing/plan-times.ts'
import { dayNames, type PricePeriod } from '../../../../schema/rules/price-periods.ts'

const clock = fc
  .tuple(fc.nat(23), fc.constantFrom(0, 15, 30, 59))
  .map(([hour, minute]) => `${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`)

const periods: fc.Arbitrary<readonly PricePeriod[]> = fc.array(
  fc
    .record({
      name: fc.constantFrom('peak', 'off-peak', 'night'),
      days: fc.uniqueArray(fc.constantFrom(...dayNames), { minLength: 1 }),
      from: clock,
      to: fc.oneof(clock, fc.constant('24:00')),
    })
    .filter(({ from, to }) => from !== to),
  { minLength: 1, maxLength: 4 },
)

/** Each with nights in which the clocks are changed. */
const zones = [
  ['Europe/Berlin', '2026-03-28', '2026-10-24'],
  ['America/New_York', '2026-03-07', '2026-10-31'],
  ['America/Havana', '2026-03-07', '2026-10-31'],
  ['Australia/Lord_Howe', '2026-04-04', '2026-10-03'],
  ['Asia/Kolkata', '2026-03-28', '2026-10-24'],
] as const

const weekdays = new Intl.DateTimeFormat('en-GB', { weekday: 'short', timeZone: 'UTC' })

const minutes = (text: string): number => Number(text.slice(0, 2)) * 60 + Number(text.slice(3))

const writers = new Map<string, Intl.DateTimeFormat>(
  zones.map(([timeZone]) => [
    timeZone,
    new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' }),
  ]),
)

/** The periods by the words of another formatter, minute by minute. */
function heldAt(
  zone: string,
  all: readonly PricePeriod[],
  holidays: readonly string[],
  at: number,
): readonly string[] {
  const [date = '', time = ''] = (writers.get(zone)?.format(at) ?? '').split(' ')
  const dayOf = (day: string): string =>
    holidays.includes(day) || holidays.includes(day.slice(5))
      ? 'holiday'
      : weekdays.format(Date.parse(`${day}T12:00:00Z`)).toLowerCase()
  const today = dayOf(date)
  const before = new Date(Date.parse(`${date}T12:00:00Z`) - 86_400_000).toISOString().slice(0, 10)
  const now = minutes(time)
  const held = all.filter(({ days, from, to }) => {
    const is = (day: string): boolean => days.some((name) => name === day)
    const [begins, ends] = [minutes(from), minutes(to)]
    if (begins < ends) return is(today) && begins <= now && now < ends
    return (is(today) && now >= begins) || (is(dayOf(before)) && now < ends)
  })
  return [...new Set(all.map(({ name }) => name))].filter((name) =>
    held.some((period) => period.name === name),
  )
}

test('the periods are those that a clock of the zone shows, minute by minute, in every night', () => {
  fc.assert(
    fc.property(
      periods,
      fc.constantFrom(...zones),
      fc.constantFrom(1, 2),
      fc.array(fc.constantFrom('03-29', '2026-10-25', '2026-03-08', '11-01'), { maxLength: 2 }),
      fc.array(fc.nat(3 * 1_440), { minLength: 20, maxLength: 20 }),
      (all, zone, night, holidays, offsets) => {
        const times = new PlanTimes({ zone: zone[0], periods: all, holidays, priceChange: 'hold' })
        const first = Date.parse(`${zone[night]}T00:00:00Z`)
        for (const offset of offsets) {
          const at = first + offset * 60_000
          expect(times.periodsAt(at)).toEqual(heldAt(zone[0], all, holidays, at))
        }
      },
    ),
    { numRuns: 150 },
  )
})

test('between two changes the same periods hold, and at each change others do', () => {
  fc.assert(
    fc.property(periods, fc.constantFrom(...zones), fc.constantFrom(1, 2), (all, zone, night) => {
      const times = new PlanTimes({
        zone: zone[0],
        periods: all,
        holidays: [],
        priceChange: 'hold',
      })
      const from = Date.parse(`${zone[night]}T10:07:00Z`)
      const changes = times.changesBetween(from, from + 2 * 86_400_000)
      let before = times.periodsAt(from)
      let next = 0
      for (let at = from + 60_000; at <= from + 2 * 86_400_000; at += 60_000) {
        const now = heldAt(zone[0], all, [], at)
        if (now.join() !== before.join()) expect(changes[next++]).toBe(at)
        before = now
      }
      expect(changes).toHaveLength(next)
    }),
    { numRuns: 6 },
  )
})

const offPeak = {
  zone: 'Europe/Berlin',
  periods: [
    { name: 'off-peak', days: ['mon', 'tue', 'wed', 'thu', 'fri'], from: '20:00', to: '08:00' },
    { name: 'off-peak', days: ['sat', 'sun', 'holiday'], from: '00:00', to: '24:00' },
  ],
  holidays: ['12-25', '2026-04-03'],
  priceChange: 'hold',
} as const

test.each([
  ['Friday at noon', '2026-11-27T12:00:00+01:00', false],
  ['Friday at eight in the evening', '2026-11-27T20:00:00+01:00', true],
  ['Saturday before eight, of Friday', '2026-11-28T07:59:59+01:00', true],
  ['Sunday', '2026-11-29T12:00:00+01:00', true],
  ['Monday before eight: nothing began on Sunday evening', '2026-11-30T07:00:00+01:00', false],
  ['Good Friday', '2026-04-03T12:00:00+02:00', true],
  ['the same day of another year', '2027-04-03T12:00:00+02:00', true],
  ['Christmas of any year', '2028-12-25T12:00:00+01:00', true],
  ['the Tuesday after it', '2028-12-26T12:00:00+01:00', false],
])('%s (%s) is off-peak: %s', (_, at, is) => {
  expect(new PlanTimes(offPeak).periodsAt(Date.parse(at))).toEqual(is ? ['off-peak'] : [])
})
