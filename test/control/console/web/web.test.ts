import fc from 'fast-check'
import { expect, test, beforeEach } from 'vitest'
import { EventParser } from '../../../../control/console/web/api/event-parser.ts'
import { visibleLines, visibleText } from '../../../../control/console/web/parts/visible-text.ts'
import {
  costMicros,
  decimalText,
  LiveCalls,
} from '../../../../control/console/web/screens/live-calls.ts'
import { roundings } from '../../../../schema/contracts/tariff.ts'
import { priceView } from '../../../../control/calls/active-call-view.ts'
import { costMicros as charged } from '../../../../engine/charging/pricing/price.ts'
import { moneyToDecimal } from '../../../../schema/columns.ts'
import { readFileSync } from 'node:fs'
import { denialPhrase } from '../../../../control/console/web/screens/denial-words.ts'
import type { ShownCall } from '../../../../control/console/web/api/views.ts'

const stream = [
  'retry: 2000\n: welcome\n\n',
  'id: e-1\nevent: call.started\ndata: {"a":1}\n\n',
  ': keep-alive\n\n',
  'event: stream.gap\r\ndata: {}\r\n\r\n',
].join('')

const events = [
  { id: 'e-1', type: 'call.started', data: '{"a":1}' },
  { id: 'e-1', type: 'stream.gap', data: '{}' },
]

test.each([1, 2, 3, 7, 1_000])('events are read out of pieces of %i characters', (size) => {
  const parser = new EventParser()
  const pieces = stream.match(new RegExp(`[^]{1,${size}}`, 'g')) ?? []
  expect(pieces.flatMap((piece) => parser.push(piece))).toEqual(events)
})

test.each([
  ['a bidirectional override', 'ci \u202Egnp.exe', 'ci <U+202E>gnp.exe'],
  ['an isolate', '\u2067abc\u2069', '<U+2067>abc<U+2069>'],
  ['a zero-width space', 'ad\u200Bmin', 'ad<U+200B>min'],
  ['a tag character', 'a\u{E0041}', 'a<U+E0041>'],
  ['a line end and a NUL', 'a\r\nb\0', 'a<U+000D><U+000A>b<U+0000>'],
  ['half of a surrogate pair', 'a\uD800', 'a<U+D800>'],
  ['a letter without a shape', 'a\u3164', 'a<U+3164>'],
  ['markup, which the page escapes', '<b>"&\'', '<b>"&\''],
  ['other scripts', 'Jürgen עברית 😀', 'Jürgen עברית 😀'],
])('%s is seen', (_, text, shown) => {
  expect(visibleText(text)).toBe(shown)
})

test('long text is cut, and so are the lines of a message', () => {
  expect(visibleText('x'.repeat(201))).toBe(`${'x'.repeat(200)}…`)
  expect(visibleText('\u202E'.repeat(1_000), 3)).toBe('<U+202E><U+202E><U+202E>…')
  expect(visibleLines('a\r\nb\u202E\n', 100)).toBe('a\nb<U+202E>\n')
  expect(visibleLines('x'.repeat(100_000), 1_000)).toHaveLength(1_000)
})

const seconds = fc.integer({ min: 1, max: 3_600 })

const rate = fc.integer({ min: 0, max: 5_000_000 })

const tariff = fc.record({
  prefix: fc.constant('49'),
  currency: fc.constant('USD'),
  connectFeeMicros: rate,
  firstIncrementSeconds: seconds,
  firstRatePerMinuteMicros: rate,
  incrementSeconds: seconds,
  ratePerMinuteMicros: rate,
  decimals: fc.integer({ min: 0, max: 6 }),
  rounding: fc.constantFrom(...roundings),
})

test('what the page shows is what the server would charge, for any price and duration', () => {
  fc.assert(
    fc.property(tariff, fc.integer({ min: 0, max: 100_000 }), (price, talked) => {
      const cost = costMicros(priceView(price), talked)
      expect(cost).toBe(BigInt(charged(price, talked)))
      expect(decimalText(cost)).toBe(moneyToDecimal(charged(price, talked)))
    }),
  )
})

test('every code of a denial has a phrase', () => {
  const source = readFileSync('schema/contracts/denials.ts', 'utf8')
  const codes = [...source.matchAll(/^ {2}([a-z_]+): \{$/gm)].map(([, code = '']) => code)
  expect(codes).toContain('no_candidate')
  expect(codes.filter((code) => denialPhrase(code) === undefined)).toEqual([])
})

/** The clock of the page is an hour late; that of the server is of no importance. */
const start = Date.UTC(2026, 0, 1)

const stamp = (second: number): string => new Date(start + 3_600_000 + second * 1_000).toISOString()

const price = {
  currency: 'USD',
  connect_fee: '0.00',
  first_increment: 1,
  increment: 1,
  first_rate_per_minute: '0.60',
  rate_per_minute: '0.60',
  decimals: 4,
  rounding: 'up' as const,
}

const told = { call_uuid: 'a', caller_id_number: '4930', destination_number: '4940' }

const started = { ...told, at: stamp(0), state: 'DIALING', start_stamp: stamp(0) }

const answered = { ...started, at: stamp(5), state: 'ACTIVE', answer_stamp: stamp(5), price }

const listed = (change: Partial<ShownCall> = {}): ShownCall => ({
  uuid: 'a',
  ...told,
  duration_seconds: 10,
  state: 'ACTIVE',
  direction: 'inbound',
  start_stamp: stamp(0),
  answer_stamp: stamp(5),
  set_id: 1,
  node: null,
  instance: 'sbc-1',
  node_state: null,
  carrier: null,
  caller_address: null,
  callee_address: null,
  customer_id: 7,
  tags: null,
  transfer: null,
  recording: false,
  cost: 0.1,
  cost_exact: '0.10',
  currency: 'USD',
  price,
  ...change,
})

let calls: LiveCalls

beforeEach(() => {
  calls = new LiveCalls()
})

const at = (ms: number) => calls.at(start + ms)

const hear = (type: string, data: object, ms: number) =>
  calls.hear({ type, data: { ...data } }, start + ms)

test('a call is followed by its events: duration and cost go on between them', () => {
  hear('call.started', started, 100)
  expect(at(2_200)).toMatchObject([{ seconds: 2, cost: null, call: { caller_id_number: '4930' } }])
  hear('call.answered', answered, 5_100)
  expect(at(5_200)).toMatchObject([{ seconds: 0, cost: '0.01', call: { currency: 'USD' } }])
  expect(at(65_099)).toMatchObject([{ seconds: 59, cost: '0.60' }])
  expect(hear('call.ended', { call_uuid: 'a' }, 66_000)).toBe(true)
  expect(at(66_000)).toEqual([])
})

test('a list is shown with its durations, which do not go back with the next list', () => {
  calls.list([listed()], start, start)
  expect(at(900)).toMatchObject([{ seconds: 10, cost: '0.11' }])
  calls.list([listed({ duration_seconds: 10 })], start + 900, start + 900)
  expect(at(1_000)).toMatchObject([{ seconds: 11, cost: '0.11' }])
  calls.list([], start + 2_000, start + 2_000)
  expect(at(2_000)).toEqual([])
})

test('a list that was made before an event changes nothing that the event has told', () => {
  calls.list([listed(), listed({ call_uuid: 'b' })], start, start)
  hear('call.ended', { call_uuid: 'b' }, 150)
  hear('call.answered', { ...answered, call_uuid: 'c' }, 150)
  calls.list([listed(), listed({ call_uuid: 'b' })], start + 100, start + 200)
  expect(at(200).map(({ call }) => call.call_uuid)).toEqual(['a', 'c'])
})
