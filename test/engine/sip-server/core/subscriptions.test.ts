/** Dialogs of SUBSCRIBE and REFER: RFC 6665, RFC 3515. */
import { expect, test } from 'vitest'
import { acknowledge, answered } from '../../../support/caller.ts'
import { answer, calleeRequest, dialogIdOf } from '../../../support/callee.ts'
import {
  VirtualServer,
  callee,
  header,
  requestOf,
  responseOf,
  sip,
  tagIn,
} from '../../../support/sip-core.ts'

const event = 'Event: presence'
const state = (value: string) => [event, `Subscription-State: ${value}`]

/** The application subscribes (or refers); returns the request as it left. */
function subscribe(server: VirtualServer, method = 'SUBSCRIBE'): string {
  const lines = ['from: sip:alice@localhost', event, 'Expires: 600', 'Refer-To: <sip:c@d>']
  server.command(`sip||\r\n${sip(`${method} sip:bob@192.0.2.20 SIP/2.0`, lines)}`)
  server.takeDelivered()
  return server.takeSent()[0]?.text ?? ''
}

/** A NOTIFY of the other side; returns the id of the dialog under which the application gets it. */
function notify(server: VirtualServer, request: string, cseq: number, value: string) {
  server.takeDelivered()
  server.receive(calleeRequest(request, 'NOTIFY', cseq, state(value)), callee)
  const told = server.takeDelivered()[0]
  const transactionId = told?.transactionId ?? ''
  if (told) server.command(`sip|${transactionId}|\r\n${sip('SIP/2.0 200 OK', [])}`)
  server.takeDelivered()
  return { dialogId: told?.dialogId, answer: server.takeStartLines()[0] }
}

test.each(['SUBSCRIBE', 'REFER'])(
  'a NOTIFY that overtakes the answer to %s begins the dialog',
  (method) => {
    const server = new VirtualServer()
    const request = subscribe(server, method)
    expect(notify(server, request, 1, 'active;expires=600')).toEqual({
      dialogId: dialogIdOf(request),
      answer: 'SIP/2.0 200 OK',
    })
    answer(server, request, 202)
    expect(server.core.stats()).toMatchObject({ dialogs: 1, subscribing: 0 })
    expect(notify(server, request, 2, 'active;expires=600').answer).toBe('SIP/2.0 200 OK')
    // Numbers are counted from the first one on.
    const late = calleeRequest(request, 'NOTIFY', 1, state('active')).replace(
      'z9hG4bK-',
      'z9hG4bK-late',
    )
    server.receive(late, callee)
    expect(server.takeStartLines()).toEqual(['SIP/2.0 500 Server Internal Error'])
  },
)

test('an application that notifies: its last NOTIFY ends the dialog', () => {
  const server = new VirtualServer()
  server.receive(requestOf('SUBSCRIBE', { extra: [event, 'Expires: 600'] }))
  const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
  server.command(`sip|${transactionId}|\r\n${sip('SIP/2.0 202 Accepted', ['Expires: 600'])}`)
  const toTag = tagIn(header(server.takeSent()[0]?.text ?? '', 'To'))
  const dialogId = server.takeDelivered()[0]?.dialogId ?? ''
  for (const value of ['active;expires=600', 'terminated']) {
    server.command(`sip||${dialogId}\r\n${sip('NOTIFY sip:p SIP/2.0', state(value))}`)
    const sent = server.takeSent()[0]?.text ?? ''
    expect(sent).toMatch(/^NOTIFY sip:alice@203\.0\.113\.7:5060 SIP/)
    expect(server.core.stats()['dialogs']).toBe(1)
    server.receive(responseOf(sent, 200, { toTag }))
  }
  expect(server.core.stats()['dialogs']).toBe(0)
})

test('a REFER in a call, and the end of what it subscribed to, leave the call alone', () => {
  const server = new VirtualServer()
  const toTag = answered(server)
  acknowledge(server, toTag)
  server.takeDelivered()
  server.receive(requestOf('REFER', { toTag, cseq: 2, extra: ['Refer-To: <sip:c@example.com>'] }))
  const [refer] = server.takeDelivered()
  expect(refer?.dialogId).toBe('c1@203.0.113.7;from-tag=f1')
  server.command(`sip|${refer?.transactionId ?? ''}|\r\n${sip('SIP/2.0 202 Accepted', [])}`)
  server.takeSent()
  server.command(
    `sip||c1@203.0.113.7;from-tag=f1\r\n${sip('NOTIFY sip:p SIP/2.0', state('terminated;reason=noresource'))}`,
  )
  server.receive(responseOf(server.takeSent()[0]?.text ?? '', 200))
  expect(server.core.stats()['dialogs']).toBe(1)
})

/** A subscriber may ask for 136 years. */
test.each([
  ['said by the application', ['Expires: 999999999']],
  ['asked for only', []],
])('a subscription of more than a day, %s, is granted for a day and kept so long', (_, lines) => {
  const server = new VirtualServer()
  server.receive(requestOf('SUBSCRIBE', { extra: [event, 'Expires: 4294967295'] }))
  const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
  server.command(`sip|${transactionId}|\r\n${sip('SIP/2.0 200 OK', [...lines, 'X-A: b'])}`)
  const granted = server.takeSent()[0]?.text ?? ''
  expect(granted.match(/^Expires: .*$/gm)).toEqual(['Expires: 86400'])
  expect(header(granted, 'X-A')).toBe('b')
  server.advance(86_400_000)
  expect(server.core.stats()['dialogs']).toBe(1)
  server.advance(33_000)
  expect(server.core.stats()).toMatchObject({ dialogs: 0, deadlines: 0 })
})

test.each([
  ['at once', 0],
  ['after the grace', 10_000],
])('a subscription whose application has gone is renewed by another one: %s', (_, later) => {
  const server = new VirtualServer({ graceMs: 5_000 })
  const renew = (cseq: number, toTag?: string) =>
    server.receive(
      requestOf('SUBSCRIBE', {
        branch: `z9hG4bK-s${cseq}`,
        cseq,
        extra: [event, 'Expires: 600', 'Contact: <sip:alice@203.0.113.7>'],
        ...(toTag === undefined ? {} : { toTag }),
      }),
    )
  const accept = (): string => {
    const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
    server.command(`sip|${transactionId}|\r\n${sip('SIP/2.0 200 OK', ['Expires: 600'])}`)
    server.takeDelivered()
    return server.takeSent()[0]?.text ?? ''
  }
  renew(1)
  const toTag = tagIn(header(accept(), 'To'))
  server.disconnect(server.clientId)
  server.advance(later)
  renew(2, toTag)
  const refused = server.takeSent()[0]?.text ?? ''
  expect(refused).toMatch(/^SIP\/2.0 503 .*\r\n(.*\r\n)*Retry-After: /)

  server.reconnect()
  renew(3, toTag)
  expect(server.deliveredTo).toEqual([server.clientId])
  expect(accept()).toMatch(/^SIP\/2.0 200 /)
  server.advance(632_001)
  expect(server.core.stats()['dialogs']).toBe(0)
})
