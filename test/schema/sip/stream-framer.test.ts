import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Frame, StreamFramer } from '../../../schema/sip/stream-framer.ts'
import { invite } from './sample.ts'

const message = (body: string) => invite([`Content-Length: ${Buffer.byteLength(body)}`], body)

/** Everything that a framer answers to these pieces. */
function framesOf(pieces: readonly (string | Buffer)[], maxBytes?: number): readonly Frame[] {
  const framer = maxBytes === undefined ? new StreamFramer() : new StreamFramer({ maxBytes })
  return pieces.flatMap((piece) => framer.receive(Buffer.from(piece)))
}

const whole = (text: string): Frame => ({ kind: 'message', text })
const ping: Frame = { kind: 'ping' }
/** `head`: the header part where its end was seen, for an answer. */
const unframeable = (
  reason: Extract<Frame, { kind: 'unframeable' }>['reason'],
  head = '',
): Frame => ({ kind: 'unframeable', reason, head })

test('a stream may arrive in pieces of any size', () => {
  const stream = Buffer.from(
    message('one') + '\r\n\r\n' + message('zwéi') + message('x'.repeat(3000)),
  )
  const expected = framesOf([stream])
  expect(expected).toHaveLength(4)
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1 }), (sizes) => {
      const pieces: Buffer[] = []
      for (let at = 0, count = 0; at < stream.length; count++) {
        const size = sizes[count % sizes.length] ?? 1
        pieces.push(stream.subarray(at, at + size))
        at += size
      }
      expect(framesOf(pieces)).toEqual(expected)
    }),
  )
})

test('two line breaks in a row are a ping, one is nothing', () => {
  expect(framesOf(['\r\n', '\r', '\n'])).toEqual([ping])
  expect(framesOf(['\r\n' + message('') + '\r\n' + message('')])).toEqual([
    whole(message('')),
    whole(message('')),
  ])
  expect(framesOf(['\r\n\r\n\r\n\r\n'])).toEqual([ping, ping])
  expect(framesOf(['\n\n\r\r\n\n'])).toEqual([])
})

test.each(['-1', '', 'x', '1 2', '9'.repeat(30), '1\r\nContent-Length: 2', '1\r\nL: 01x'])(
  'Content-Length %j cannot be framed',
  (length) => {
    const head = invite([`Content-Length: ${length}`])
    expect(framesOf([head])).toEqual([unframeable('bad-content-length', head)])
  },
)

test.each([
  'l: 4',
  'CONTENT-LENGTH \t: \r\n  4',
  'Content-Length: 4\r\nl: 4',
  'content-length:004 ',
])('%j announces four bytes', (line) => {
  expect(framesOf([invite([line], 'abcd'), message('')])).toEqual([
    whole(invite([line], 'abcd')),
    whole(message('')),
  ])
})

/** Without any carriage return before its body. */
const bare = (body: string): string =>
  `INFO sip:a@b SIP/2.0\nVia: x\nContent-Length: ${body.length}\n\n${body}`

test('a stream of bare line feeds is cut by Content-Length, at whatever byte it is divided', () => {
  const whole = Buffer.from(bare('one\r\n\r\ntwo') + bare('') + bare('\n\n'))
  for (let at = 0; at <= whole.length; at++) {
    const framer = new StreamFramer()
    const frames = [...framer.receive(whole.subarray(0, at)), ...framer.receive(whole.subarray(at))]
    expect(frames.map((frame) => (frame.kind === 'message' ? frame.text : frame.kind))).toEqual([
      bare('one\r\n\r\ntwo'),
      bare(''),
      bare('\n\n'),
    ])
  }
})

test('two line feeds end no header part that has a carriage return: nothing can be hidden behind them', () => {
  const smuggled = bare('')
  const outer = `INFO sip:a@b SIP/2.0\r\nSubject: x\n\n${smuggled}\r\nContent-Length: 0\r\n\r\n`
  const frames = new StreamFramer().receive(Buffer.from(outer))
  expect(frames.filter(({ kind }) => kind === 'message').length).toBeLessThan(2)
  expect(frames.map((frame) => (frame.kind === 'message' ? frame.text : frame.kind))).toEqual([
    outer,
  ])
})

test('a Content-Length inside another header or the body announces nothing', () => {
  const text = invite(
    ['Subject: x', ' Content-Length: 9', 'X-Content-Length: 8', 'l: 20'],
    'Content-Length: 7\r\n\r',
  )
  expect(framesOf([text])).toEqual([whole(text)])
})

test('what exceeds the limit is too large, by header or by body, before it has arrived', () => {
  expect(framesOf(['x'.repeat(400), 'x'.repeat(112)], 512)).toEqual([unframeable('too-large')])
  const head = invite(['Content-Length: 400'])
  expect(framesOf([head], 512)).toEqual([unframeable('too-large', head)])
  const fitting = message('x'.repeat(512 - message('').length - 2))
  expect(framesOf([fitting], 512)).toEqual([whole(fitting)])
  expect(framesOf([fitting.slice(0, 300), fitting.slice(300) + fitting], 512)).toHaveLength(2)
})

const longest = (frames: readonly Frame[]) =>
  Math.max(0, ...frames.map((frame) => (frame.kind === 'message' ? frame.text.length : 0)))

test('any bytes in any pieces are answered by values, within the limit', () => {
  const piece = fc.oneof(
    fc.uint8Array({ maxLength: 80 }).map((bytes) => Buffer.from(bytes)),
    fc
      .constantFrom('\r\n\r\n', '\r\n', 'Content-Length: 3\r\n', 'l:1', message('ab'))
      .map((text) => Buffer.from(text)),
  )
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 30 }), (pieces) => {
      expect(longest(framesOf(pieces, 700))).toBeLessThanOrEqual(700)
    }),
  )
})

// Searching or copying the whole again for every byte would take more than 10 seconds here.
test('a large message one byte at a time costs linear work', () => {
  const framer = new StreamFramer({ maxBytes: 800_000 })
  const piece = Buffer.from('x')
  const before = process.cpuUsage()
  const frames = Array.from({ length: 800_000 }, () => framer.receive(piece)).flat()
  expect(frames).toEqual([unframeable('too-large')])
  expect(process.cpuUsage(before).user).toBeLessThan(2_000_000)
})
