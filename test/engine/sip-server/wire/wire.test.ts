import { expect, test } from 'vitest'
import {
  encodeFrame,
  FrameReader,
  maxFrameBytes,
} from '../../../../engine/sip-server/wire/frame.ts'
import { decodeCommand } from '../../../../engine/sip-server/wire/command.ts'
import type { AppEvent, MessageFlow } from '../../../../engine/sip-server/application.ts'
import { parseAppMessage } from '../../../../schema/sip/parse.ts'
import { encodeEvent } from '../../../../engine/sip-server/wire/event.ts'

const stream = (...payloads: string[]): Buffer =>
  Buffer.from(payloads.map((payload) => encodeFrame(payload)).join(''))

test('a frame counts bytes, not characters', () => {
  expect(encodeFrame('a|ping')).toBe('6#a|ping')
  expect(encodeFrame('grüße 👋')).toBe('12#grüße 👋')
})

test('frames are read again wherever the stream was cut', () => {
  const payloads = ['1|ping', 'grüße 👋|route|invite', 'x'.repeat(300)]
  const bytes = stream(...payloads)
  for (let size = 1; size <= bytes.length; size++) {
    const reader = new FrameReader()
    const read: string[] = []
    for (let at = 0; at < bytes.length; at += size)
      read.push(...reader.push(bytes.subarray(at, at + size)).payloads)
    expect(read, `cut every ${size} bytes`).toEqual(payloads)
  }
})

test('a frame of the greatest length passes, a longer one is skipped but for its beginning', () => {
  const long = `id-7|sip||${'x'.repeat(maxFrameBytes)}`
  const bytes = stream('y'.repeat(maxFrameBytes), long, '2|ping')
  for (const size of [100, 4_096, 70_000, bytes.length]) {
    const reader = new FrameReader()
    const read: string[] = []
    const skipped: string[] = []
    for (let at = 0; at < bytes.length; at += size) {
      const { payloads, tooLong, problem } = reader.push(bytes.subarray(at, at + size))
      read.push(...payloads)
      skipped.push(...tooLong)
      expect(problem).toBeUndefined()
    }
    expect(read.map((payload) => payload.slice(0, 6))).toEqual(['yyyyyy', '2|ping'])
    expect(skipped.map((start) => start.slice(0, 10))).toEqual(['id-7|sip||'])
    expect(skipped[0]?.length).toBeLessThan(1_000)
  }
})

test.each([
  ['GET / HTTP/1.1', 'length is not a number'],
  ['#x', 'length is missing or zero'],
  ['0#', 'length is missing or zero'],
  ['-1#x', 'length is not a number'],
  ['0000000000001#x', 'frame is too long'],
])('%j is a problem, not an exception', (bytes, problem) => {
  expect(new FrameReader().push(Buffer.from(bytes)).problem).toBe(problem)
})

const invite = 'INVITE sip:b@192.0.2.20 SIP/2.0\r\nContent-Length: 0\r\n\r\n'

test('authenticate carries a secret and tags', () => {
  expect(decodeCommand('7e5c|authenticate|cymru|sbc,east')).toEqual({
    id: '7e5c',
    command: { kind: 'authenticate', secret: 'cymru', tags: ['sbc', 'east'] },
  })
  expect(decodeCommand('7e5c|authenticate|cymru|').command).toMatchObject({ tags: [] })
})

test('verbs are lower case, however they are written', () => {
  expect(decodeCommand('1|route|INVITE').command).toEqual({ kind: 'route', verb: 'invite' })
  expect(decodeCommand('1|remove_route|cdr:start').command).toEqual({
    kind: 'remove-route',
    verb: 'cdr:start',
  })
  expect(decodeCommand('1|ping')).toEqual({ id: '1', command: { kind: 'ping' } })
})

test('a sip command has a transaction, a dialog, a next hop and a message', () => {
  expect(decodeCommand(`1|sip|||sip:192.0.2.9:5070;transport=tcp\r\n${invite}`).command).toEqual({
    kind: 'sip',
    transactionId: '',
    dialogId: '',
    routeUrl: 'sip:192.0.2.9:5070;transport=tcp',
    message: expect.objectContaining({ text: invite }),
  })
  expect(decodeCommand(`1|sip|t1|c1@203.0.113.7;from-tag=f1\r\n${invite}`).command).toMatchObject({
    transactionId: 't1',
    dialogId: 'c1@203.0.113.7;from-tag=f1',
    routeUrl: '',
  })
})

test('proxy names its options, timeouts in milliseconds and destinations', () => {
  const leader =
    '5|proxy|t4|remainInDialog|fullResponse||serial|2s|1500ms|sip:192.0.2.20|sip:192.0.2.21'
  expect(decodeCommand(`${leader}\r\n${invite}`)).toEqual({
    id: '5',
    command: {
      kind: 'proxy',
      transactionId: 't4',
      remainInDialog: true,
      fullResponse: true,
      followRedirects: false,
      simultaneous: false,
      provisionalTimeoutMs: 2_000,
      finalTimeoutMs: 1_500,
      destinations: ['sip:192.0.2.20', 'sip:192.0.2.21'],
      message: expect.objectContaining({ text: invite }),
    },
  })
})

test.each([
  ['', ''],
  ['1', '1'],
  ['1|dance', '1'],
  ['1|route', '1'],
  ['1|remove_route|', '1'],
  ['1|sip|', '1'],
  ['1|sip||', '1'],
  ['1|sip||\r\n', '1'],
  ['1|proxy|t4||||serial|||', '1'],
  ['1|proxy|||||serial|||sip:a', '1'],
])('%j is a problem with a reason and the id to answer', (payload, id) => {
  const decoded = decodeCommand(payload)
  expect(decoded).toMatchObject({ id, command: undefined })
  expect(decoded).toHaveProperty('problem')
})

const listener = {
  protocol: 'udp',
  address: '198.51.100.10',
  port: 5060,
  advertisedHost: '192.0.2.10',
  advertisedPort: 5070,
} as const
const flow: MessageFlow = { listener, address: '203.0.113.7', port: 5060 }
const now = Date.UTC(2026, 6, 1, 18, 21, 7) + 125.5
const text = 'INVITE sip:1@198.51.100.10 SIP/2.0\r\n\r\n'
const message = parseAppMessage(text)
const received = 'network|38|udp|203.0.113.7|5060|18:21:07.125500'
const sent = 'application|38|udp|192.0.2.10|5070|18:21:07.125500'
const tokens = (payload: string): string[] => (payload.split('\r\n')[0] ?? '').split('|')

function request(fields: { dialogId?: string; isNew?: boolean; now?: number } = {}): AppEvent {
  if (message === undefined) throw new Error('unreadable')
  const ids = { transactionId: 't', dialogId: '' }
  return { kind: 'request', ...ids, text, message, came: text, flow, now, isNew: true, ...fields }
}

test('the time of a message is UTC of the day with microseconds', () => {
  const timeAt = (at: number) => tokens(encodeEvent(request({ now: at }), 's'))[7]
  expect(timeAt(now)).toBe('18:21:07.125500')
  expect(timeAt(0)).toBe('00:00:00.000000')
  expect(timeAt(86_399_999)).toBe('23:59:59.999000')
})

test('a new request tells where it was received, one in a dialog does not', () => {
  expect(encodeEvent(request(), 's')).toBe(`s|sip|${received}|t||198.51.100.10|5060|\r\n${text}`)
  expect(encodeEvent(request({ dialogId: 'c;from-tag=f', isNew: false }), 's')).toBe(
    `s|sip|${received}|t|c;from-tag=f|\r\n${text}`,
  )
})

test('responses and unsolicited requests carry transaction and dialog', () => {
  const { isNew: _, ...passed } = { isNew: true, ...request() }
  expect(encodeEvent({ ...passed, kind: 'response' } as AppEvent, 's')).toBe(
    `s|sip|${received}|t||\r\n${text}`,
  )
  expect(encodeEvent({ ...passed, kind: 'unsolicited', dialogId: 'd' } as AppEvent, 's')).toBe(
    `s|sip|${sent}|unsolicited|d|\r\n${text}`,
  )
})

test('control answers have the shape that drachtio-srf takes apart', () => {
  const hostports = ['udp/198.51.100.10:5060', 'tcp/198.51.100.10:5060']
  const localHostports = ['udp/0.0.0.0:5060']
  const server = { hostports, version: 'v0.9.99', localHostports }
  expect(encodeEvent({ kind: 'authenticated', commandId: 'a', ...server }, 's')).toBe(
    's|response|a|OK|udp/198.51.100.10:5060,tcp/198.51.100.10:5060|v0.9.99|udp/0.0.0.0:5060',
  )
  expect(encodeEvent({ kind: 'ok', commandId: 'a' }, 's')).toBe('s|response|a|OK')
  expect(encodeEvent({ kind: 'pong', commandId: 'a' }, 's')).toBe('s|response|a|OK|pong')
  const breach = { kind: 'breach', commandId: 'a', problem: 'incorrect secret' } as const
  expect(encodeEvent(breach, 's')).toBe('s|response|a|NO|incorrect secret')
})

test('a response sent has transaction, dialog and an empty token where `continue` may stand', () => {
  const event = { commandId: 'a', transactionId: 't', dialogId: 'd', text, localTag: 'l' }
  const payload = encodeEvent({ kind: 'response-sent', ...event, flow, now }, 's')
  expect(payload).toBe(`s|response|a|OK|${sent}|t|d||Msg sent:|\r\n${text}`)
  expect(tokens(payload).slice(10, 13)).toEqual(['t', 'd', ''])
})

test('a reason that quotes foreign text stays one token on one line', () => {
  const event = { kind: 'refused', commandId: 'a', problem: 'bad uri: a|b\r\nc' } as const
  expect(encodeEvent(event, 's')).toBe('s|response|a|NOK|bad uri: a b c')
})
