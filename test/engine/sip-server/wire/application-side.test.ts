import { expect, test } from 'vitest'
import type { AppEvent, Command } from '../../../../engine/sip-server/application.ts'
import { composeRequest, composeResponse } from '../../../../engine/sip-server/message/compose.ts'
import { parseAppMessage } from '../../../../engine/sip-server/message/parse.ts'
import { decodeEvent, encodeCommand } from '../../../../engine/sip-server/wire/application-side.ts'
import { decodeCommand } from '../../../../engine/sip-server/wire/command.ts'
import { encodeEvent } from '../../../../engine/sip-server/wire/event.ts'

const now = Date.UTC(2026, 10, 22, 9, 30)
const own = { address: '192.0.2.1', port: 5060, advertisedHost: '192.0.2.1', advertisedPort: 5060 }
const flow = { address: '203.0.113.7', port: 5070, listener: { protocol: 'udp', ...own } } as const

const lines = [
  'Via: SIP/2.0/UDP h;branch=z9hG4bK1',
  'From: <sip:a@h>;tag=f',
  'To: <sip:b@h>;tag=t',
  'Call-ID: c',
  'CSeq: 7 INVITE',
  'Content-Length: 0',
  '',
  '',
]
const textOf = (start: string): string => [start, ...lines].join('\r\n')
const request = textOf('INVITE sip:b@h SIP/2.0')
const response = textOf('SIP/2.0 180 Ringing')

function passed(text: string) {
  const message = parseAppMessage(text)
  if (message === undefined) throw new Error(text)
  return { transactionId: 't1', dialogId: 'd1', text, message, came: text, flow, now }
}

/** What an application reads of what a server writes. */
const read = (event: AppEvent): AppEvent | undefined => decodeEvent(encodeEvent(event, 's1'), now)

test('a request and a response come with their transaction, their dialog and where they came from', () => {
  const { message: _asked, came: _text, flow: _from, ...fields } = passed(request)
  const event = read({ kind: 'request', ...passed(request), isNew: false })
  expect(event).toMatchObject({ kind: 'request', ...fields, isNew: false })
  expect(event).toMatchObject({
    flow: { address: '203.0.113.7', port: 5070, listener: { protocol: 'udp' } },
    message: { method: 'INVITE', uri: 'sip:b@h', callId: 'c' },
  })
  const isNew = { kind: 'request', ...passed(request), dialogId: '', isNew: true } as const
  expect(read(isNew)).toMatchObject({ isNew: true, dialogId: '' })
  expect(read({ kind: 'response', ...passed(response) })).toMatchObject({
    kind: 'response',
    transactionId: 't1',
    dialogId: 'd1',
    message: { status: 180 },
  })
})

test('what has left is told with what a later request needs', () => {
  const sent = { method: 'INVITE', uri: 'sip:b@h', callId: 'c', from: '<sip:a@h>;tag=f', cseq: 7 }
  const left = { commandId: 'c1', transactionId: 't1', text: request, flow, now }
  expect(read({ kind: 'request-sent', ...left, sent })).toMatchObject({
    kind: 'request-sent',
    commandId: 'c1',
    transactionId: 't1',
    sent,
    text: request,
  })
  const ack = textOf('ACK sip:b@h SIP/2.0')
  const acknowledged = { kind: 'request-sent', ...left, text: ack, sent: undefined } as const
  expect(read(acknowledged)).toMatchObject({ sent: undefined })
  const responded = { ...left, text: response, dialogId: 'd1', localTag: 't' }
  expect(read({ kind: 'response-sent', ...responded })).toMatchObject({
    kind: 'response-sent',
    commandId: 'c1',
    transactionId: 't1',
    dialogId: 'd1',
    localTag: 't',
  })
})

test('a BYE that the server has sent by itself is told, other requests of its own are not', () => {
  const bye = textOf('BYE sip:b@h SIP/2.0')
  const { message } = passed(bye)
  const told = { kind: 'unsolicited', dialogId: 'd1', text: bye, message, flow, now } as const
  expect(read(told)).toMatchObject({ kind: 'unsolicited', dialogId: 'd1', text: bye })
  expect(decodeEvent(`s1|sip|application|1|udp|h|1|t|t1|d1|\r\n${bye}`, now)).toBeUndefined()
})

test.each([
  { kind: 'ok', commandId: 'c1' },
  { kind: 'pong', commandId: 'c1' },
  { kind: 'refused', commandId: 'c1', problem: 'unable to find dialog' },
  { kind: 'breach', commandId: 'c1', problem: 'incorrect secret' },
  {
    kind: 'authenticated',
    commandId: 'c1',
    version: 'v0.9.1-tollgate',
    hostports: ['udp/192.0.2.1:5060', 'tcp/192.0.2.1:5060'],
    localHostports: ['udp/10.0.0.1:5060'],
  },
] satisfies readonly AppEvent[])('$kind is read as it was written', (event) => {
  expect(read(event)).toEqual(event)
})

test.each([
  '',
  's1',
  's1|unheard-of|',
  's1|cdr:attempt|network|t\r\nx',
  's1|sip|network|\r\nno SIP',
])('%j tells nothing', (payload) => expect(decodeEvent(payload, now)).toBeUndefined())

/** What a server reads of what an application writes. */
const asked = (command: Command) => decodeCommand(encodeCommand({ id: 'c1', command }))

test.each([
  { kind: 'authenticate', secret: 'cymru', tags: ['east', 'west'] },
  { kind: 'route', verb: 'invite' },
  { kind: 'remove-route', verb: 'invite' },
  { kind: 'ping' },
] satisfies readonly Command[])('$kind is asked for as it was meant', (command) => {
  expect(asked(command)).toEqual({ id: 'c1', command })
})

test('a request and a response are written with their headers and their body', () => {
  const headers = { from: '<sip:a@h>', 'X-Own': 'as it is' }
  const invite = composeRequest('INVITE', 'sip:b@h', headers, 'v=0\r\n')
  const command = { transactionId: '', dialogId: '', routeUrl: 'sip:192.0.2.9' }
  const { command: read } = asked({ kind: 'sip', ...command, message: invite })
  expect(read).toMatchObject({
    kind: 'sip',
    ...command,
    message: { kind: 'request', method: 'INVITE', uri: 'sip:b@h', body: 'v=0\r\n' },
  })
  const { message } = read?.kind === 'sip' ? read : { message: undefined }
  expect(message?.entries()).toEqual([
    ['From', '<sip:a@h>'],
    ['X-Own', 'as it is'],
    ['Content-Length', '5'],
  ])
  const busy = composeResponse(486, 'Busy', { 'retry-after': '1' })
  const answer = { kind: 'sip', transactionId: 't1', dialogId: '', routeUrl: '' } as const
  expect(asked({ ...answer, message: busy }).command).toMatchObject({
    ...answer,
    message: { kind: 'response', status: 486, reason: 'Busy' },
  })
})
