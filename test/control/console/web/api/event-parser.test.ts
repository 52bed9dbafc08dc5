import { expect, test } from 'vitest'
import { EventParser } from '../../../../../control/console/web/api/event-parser.ts'

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
