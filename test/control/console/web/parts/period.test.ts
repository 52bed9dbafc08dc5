import { expect, test } from 'vitest'
import { readPeriod } from '../../../../../control/console/web/parts/period.ts'
import {
  clockField,
  momentOf,
  readClockField,
} from '../../../../../control/console/web/parts/zoned-time.ts'

const at = (text: string): number => Date.parse(text)

const shown = (query: Record<string, string>, zone: string, present: string) => {
  const { name, from, before } = readPeriod(query, zone, at(present))
  return [name, new Date(from).toISOString(), new Date(before).toISOString()]
}

test.each([
  ['1h', 'UTC', '2026-11-29T14:30:00.000Z', '2026-11-29T15:30:00.000Z'],
  ['24h', 'UTC', '2026-11-28T15:30:00.000Z', '2026-11-29T15:30:00.000Z'],
  ['today', 'UTC', '2026-11-29T00:00:00.000Z', '2026-11-29T15:30:00.000Z'],
  ['today', 'Asia/Tokyo', '2026-11-29T15:00:00.000Z', '2026-11-29T15:30:00.000Z'],
  ['yesterday', 'Asia/Tokyo', '2026-11-28T15:00:00.000Z', '2026-11-29T15:00:00.000Z'],
  ['yesterday', 'America/New_York', '2026-11-28T05:00:00.000Z', '2026-11-29T05:00:00.000Z'],
  ['7d', 'UTC', '2026-11-22T15:30:00.000Z', '2026-11-29T15:30:00.000Z'],
  ['month', 'Asia/Kolkata', '2026-10-31T18:30:00.000Z', '2026-11-29T15:30:00.000Z'],
  ['last-month', 'UTC', '2026-10-01T00:00:00.000Z', '2026-11-01T00:00:00.000Z'],
])('%s of a clock in %s begins and ends with its days', (period, zone, from, before) => {
  expect(shown({ period }, zone, '2026-11-29T15:30:00Z')).toEqual([period, from, before])
})

test('a month of Berlin whose hour changes within is as long as it is', () => {
  expect(shown({ period: 'last-month' }, 'Europe/Berlin', '2026-11-05T12:00:00Z')).toEqual([
    'last-month',
    '2026-09-30T22:00:00.000Z',
    '2026-10-31T23:00:00.000Z',
  ])
  expect(shown({ period: 'yesterday' }, 'Europe/Berlin', '2026-10-26T12:00:00Z')).toEqual([
    'yesterday',
    '2026-10-24T22:00:00.000Z',
    '2026-10-25T23:00:00.000Z',
  ])
})

test('a day whose midnight is left out begins with its first moment', () => {
  // Santiago put its clocks forward at midnight.
  expect(new Date(momentOf(at('2026-09-06T00:00:00Z'), 'America/Santiago')).toISOString()).toBe(
    '2026-09-06T04:00:00.000Z',
  )
})

test('an hour that the clock shows twice is the first of both', () => {
  expect(new Date(momentOf(at('2026-10-25T02:30:00Z'), 'Europe/Berlin')).toISOString()).toBe(
    '2026-10-25T00:30:00.000Z',
  )
})

test('an own period is the same for every viewer; dates are days of the zone', () => {
  const own = { from: '2026-11-01T09:00:00Z', to: '2026-11-02T09:00:00Z', period: 'today' }
  const expected = ['custom', '2026-11-01T09:00:00.000Z', '2026-11-02T09:00:00.000Z']
  for (const zone of ['UTC', 'Asia/Tokyo'])
    expect(shown(own, zone, '2026-11-29T15:30:00Z')).toEqual(expected)
  const days = { from: '2026-11-01', to: '2026-11-02' }
  expect(shown(days, 'Asia/Tokyo', '2026-11-29T15:30:00Z')).toEqual([
    'custom',
    '2026-10-31T15:00:00.000Z',
    '2026-11-01T15:00:00.000Z',
  ])
})

test.each([
  [{}],
  [{ period: 'nonsense' }],
  [{ from: 'nonsense', to: 'x' }],
  [{ period: 'toString' }],
])('an address that says nothing else shows the last 24 hours: %j', (query) => {
  expect(shown(query, 'UTC', '2026-11-29T15:30:00Z')[0]).toBe('24h')
})

test('fields show the clock of the zone, and are read by it', () => {
  const moment = at('2026-11-29T15:30:00Z')
  expect(clockField(moment, 'Asia/Kolkata')).toBe('2026-11-29T21:00')
  expect(readClockField('2026-11-29T21:00', 'Asia/Kolkata')).toBe(moment)
  expect(readClockField('', 'UTC')).toBeUndefined()
})
