import { expect, test } from 'vitest'
import type { AppEvent, MessageFlow } from '../../../../engine/sip-server/application.ts'
import { parseAppMessage } from '../../../../engine/sip-server/message/parse.ts'
import { encodeEvent } from '../../../../engine/sip-server/wire/event.ts'

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

test('a stream is shown by its remote end, whoever has sent', () => {
  const byTcp = { ...flow, listener: { ...listener, protocol: 'tcp' } } as const
  const event = { kind: 'request-sent', commandId: 'a', transactionId: 't', text } as const
  const payload = encodeEvent({ ...event, flow: byTcp, now, sent: undefined }, 's')
  expect(tokens(payload).slice(4, 9)).toEqual(['application', '38', 'tcp', '203.0.113.7', '5060'])
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
