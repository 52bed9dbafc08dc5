import { beforeEach, expect, test } from 'vitest'
import type { ActiveCall } from '../../../../../control/console/web/api/views.ts'
import { LiveCalls } from '../../../../../control/console/web/screens/live-calls.ts'

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
}

const told = { call_uuid: 'a', caller_id_number: '4930', destination_number: '4940' }
const started = { ...told, at: stamp(0), state: 'DIALING', start_stamp: stamp(0) }
const answered = { ...started, at: stamp(5), state: 'ACTIVE', answer_stamp: stamp(5), price }

const listed = (change: Partial<ActiveCall> = {}): ActiveCall => ({
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
