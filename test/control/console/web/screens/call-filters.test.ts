import { expect, test } from 'vitest'
import {
  activeFilters,
  changesFor,
  filterWords,
  wantedText,
  withoutOldWords,
} from '../../../../../control/console/web/screens/call-filters.ts'
import { CallTail } from '../../../../../control/console/web/screens/call-tail.ts'
import type { CallRecordView } from '../../../../../control/console/web/api/views.ts'

test('the API is asked for the filters of the address, and for nothing that it does not know', () => {
  const query = {
    period: 'today',
    sort: '-cost',
    columns: 'start,cost',
    disposition: 'FAILED,NONSENSE,BUSY',
    customer_id: '7,9',
    cost_to: '5',
    mos_from: '1',
    direction: 'sideways',
    q: 'text',
  }
  expect(filterWords(query)).toEqual({
    customer_id: '7,9',
    disposition: 'FAILED,BUSY',
    cost_to: '5',
    mos_from: '1',
  })
})

const texts = (query: Record<string, string>) =>
  activeFilters(query).map(
    (each) => `${each.filter.label}: ${wantedText(each, (_, part) => `<${part}>`)}`,
  )

test('chips say what is wanted, in the order in which it was asked for', () => {
  const query = {
    called: '4930*',
    duration_from: '10',
    duration_to: '60',
    cost_from: '0.25',
    pdd_to: '3000',
    carrier: 'telco, other',
  }
  expect(texts(query)).toEqual([
    'To: 4930*',
    'Duration: 10 to 60 s',
    'Cost: at least 0.25',
    `Post-dial delay: at most ${(3_000).toLocaleString()} ms`,
    'Carrier: <telco>, <other>',
  ])
})

test('links of earlier versions show the same calls', () => {
  const old = { by: 'carrier', for: 'telco', days: '7', page: '3', disposition: 'FAILED' }
  expect(withoutOldWords(old)).toEqual({ carrier: 'telco', period: '7d', disposition: 'FAILED' })
  expect(withoutOldWords({ for: '4930100' })).toEqual({ number: '4930100' })
  expect(withoutOldWords({ by: 'cause', days: '99' })).toEqual({})
})

test('a range that has one end only is in the address with this end', () => {
  const [range] = activeFilters({ mos_from: '1' })
  expect(range && changesFor(range.filter, '', '3.5')).toEqual({ mos_from: '', mos_to: '3.5' })
})

const ended = (uuid: string) => ({
  type: 'call.ended',
  data: { call_uuid: uuid, start_stamp: '2026-11-29T15:30:00.000Z' },
})
const record = (uuid: string) => ({ call_uuid: uuid }) as CallRecordView

test('a call is asked for when its record is written, ten at once, and shown once', () => {
  const tail = new CallTail()
  for (let call = 0; call < 12; call += 1) tail.hear(ended(`call ${call}`), 1_000)
  tail.hear({ type: 'call.started', data: ended('other').data }, 1_000)
  expect(tail.due(1_999)).toEqual([])
  expect(tail.due(2_000)).toHaveLength(10)
  expect(tail.due(2_000).map(({ uuid }) => uuid)).toEqual(['call 10', 'call 11'])
  for (const uuid of ['one', 'other', 'one']) tail.add(record(uuid))
  expect(tail.rows.map((each) => each.call_uuid)).toEqual(['other', 'one'])
})

test('more calls than can be asked for are counted; the oldest of many rows go', () => {
  const tail = new CallTail()
  for (let call = 0; call < 80; call += 1) tail.hear(ended(`call ${call}`), 0)
  expect(tail.missed).toBe(30)
  for (let call = 0; call < 300; call += 1) tail.add(record(`call ${call}`))
  expect(tail.rows).toHaveLength(200)
  expect(tail.rows[0]).toEqual(record('call 299'))
})
