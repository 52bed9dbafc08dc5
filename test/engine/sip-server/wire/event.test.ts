import { expect, test } from 'vitest'
import {
  encodeAuthenticated,
  encodeMeta,
  encodeNo,
  encodeNok,
  encodeOk,
  encodePong,
  encodeRequestEvent,
  encodeRequestSent,
  encodeResponseEvent,
  encodeResponseSent,
  encodeUnsolicited,
  type Meta,
} from '../../../../engine/sip-server/wire/event.ts'

const meta: Meta = {
  source: 'network',
  bytes: 446,
  protocol: 'udp',
  address: '203.0.113.7',
  port: 5060,
  time: Date.UTC(2026, 6, 1, 18, 21, 7) + 125.5,
}
const metaText = 'network|446|udp|203.0.113.7|5060|18:21:07.125500'
const text = 'INVITE sip:1@198.51.100.10 SIP/2.0\r\n\r\n'
const tokens = (payload: string): string[] => (payload.split('\r\n')[0] ?? '').split('|')

test('the time of a message is UTC of the day with microseconds', () => {
  expect(encodeMeta(meta)).toBe(metaText)
  expect(encodeMeta({ ...meta, time: 0 })).toMatch(/00:00:00\.000000$/)
  expect(encodeMeta({ ...meta, time: 86_399_999 })).toMatch(/23:59:59\.999000$/)
})

test('a new request tells where it was received, one in a dialog does not', () => {
  const event = { id: 's', meta, transactionId: 't', text }
  const local = { address: '198.51.100.10', port: 5060 }
  expect(encodeRequestEvent({ ...event, dialogId: '', local })).toBe(
    `s|sip|${metaText}|t||198.51.100.10|5060|\r\n${text}`,
  )
  expect(encodeRequestEvent({ ...event, dialogId: 'c;from-tag=f' })).toBe(
    `s|sip|${metaText}|t|c;from-tag=f|\r\n${text}`,
  )
})

test('responses and unsolicited requests carry transaction and dialog', () => {
  expect(encodeResponseEvent({ id: 's', meta, transactionId: 't', dialogId: '', text })).toBe(
    `s|sip|${metaText}|t||\r\n${text}`,
  )
  expect(encodeUnsolicited({ id: 's', meta, dialogId: 'd', text })).toBe(
    `s|sip|${metaText}|unsolicited|d|\r\n${text}`,
  )
})

test('control answers have the shape that drachtio-srf takes apart', () => {
  const hostports = ['udp/198.51.100.10:5060', 'tcp/198.51.100.10:5060']
  const localHostports = ['udp/0.0.0.0:5060']
  expect(encodeAuthenticated('s', 'a', { hostports, version: 'v0.9.99', localHostports })).toBe(
    's|response|a|OK|udp/198.51.100.10:5060,tcp/198.51.100.10:5060|v0.9.99|udp/0.0.0.0:5060',
  )
  expect(encodeOk('s', 'a')).toBe('s|response|a|OK')
  expect(encodePong('s', 'a')).toBe('s|response|a|OK|pong')
  expect(encodeNo('s', 'a', 'incorrect secret')).toBe('s|response|a|NO|incorrect secret')
})

test('a response sent has transaction, dialog and an empty token where `continue` may stand', () => {
  const sent = { id: 's', commandId: 'a', meta, transactionId: 't', dialogId: 'd', text }
  expect(encodeResponseSent(sent)).toBe(`s|response|a|OK|${metaText}|t|d||Msg sent:|\r\n${text}`)
  expect(tokens(encodeResponseSent(sent)).slice(10, 13)).toEqual(['t', 'd', ''])
})

test('a request sent has its transaction at token 10', () => {
  const payload = encodeRequestSent({ id: 's', commandId: 'a', meta, transactionId: 't', text })
  expect(payload).toBe(`s|response|a|OK|${metaText}|t|Msg sent:|\r\n${text}`)
  expect(tokens(payload)[10]).toBe('t')
})

test('a reason that quotes foreign text stays one token on one line', () => {
  expect(encodeNok('s', 'a', 'bad uri: a|b\r\nc')).toBe('s|response|a|NOK|bad uri: a b c')
})
