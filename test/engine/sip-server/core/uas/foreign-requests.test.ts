/** Requests in a dialog that come from another address than its peer's. */
import { expect, test } from 'vitest'
import type { DialogOfPeer } from '../../../../../engine/sip-server/index.ts'
import { acknowledge, answered, invited } from '../../../../support/caller.ts'
import {
  callee,
  caller,
  requestOf,
  sdp,
  VirtualServer,
  type Delivered,
} from '../../../../support/sip-core.ts'

const forbidden = { status: 403, reason: 'Forbidden', lines: 'X-Why: address\r\n' }
const stranger = callee

function serverThat(verdict: typeof forbidden | undefined) {
  const asked: (DialogOfPeer & { readonly method: string; readonly from: string })[] = []
  const server = new VirtualServer({
    more: {
      admitInDialog: ({ method, sourceAddress: from }, dialog) => {
        asked.push({ ...dialog, method, from })
        return verdict
      },
    },
  })
  return { server, asked }
}

const told = (delivered: readonly Delivered[]): number => delivered.length

test.each(['BYE', 'INVITE', 'UPDATE', 'REFER', 'INFO', 'NOTIFY', 'MESSAGE'])(
  '%s from a stranger is refused, and changes nothing in the dialog',
  (method) => {
    const { server, asked } = serverThat(forbidden)
    const toTag = answered(server)
    acknowledge(server, toTag)
    server.takeSent()
    server.takeDelivered()
    const extra = [
      'Refer-To: <sip:1900@acme.example>',
      'Event: refer',
      'Subscription-State: active',
    ]
    const options = { toTag, cseq: 90, branch: 'z9hG4bK-x', extra }
    server.receive(requestOf(method, options), stranger)
    expect(server.sent[0]?.text).toContain('X-Why: address')
    expect(server.takeStartLines()).toEqual(['SIP/2.0 403 Forbidden'])
    expect(asked).toEqual([
      {
        callId: 'c1@203.0.113.7',
        localTag: toTag,
        remoteTag: 'f1',
        address: '203.0.113.7',
        port: 5060,
        method,
        from: stranger.address,
      },
    ])
    expect(told(server.takeDelivered())).toBe(0)
    server.receive(requestOf('INFO', { toTag, cseq: 2, branch: 'z9hG4bK-i' }))
    expect(told(server.takeDelivered())).toBe(1)
  },
)

test('an ACK with a session description from a stranger is none: the 2xx is repeated', () => {
  const { server } = serverThat(forbidden)
  const toTag = answered(server)
  server.takeSent()
  server.takeDelivered()
  server.receive(requestOf('ACK', { toTag, branch: 'z9hG4bK-a', body: sdp }), stranger)
  expect(told(server.takeDelivered())).toBe(0)
  server.advance(600)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 Any'])
})

test.each([
  ['Contact', { 'Contact: <sip:alice@203.0.113.7:5060>': `Contact: <sip:a@${stranger.address}>` }],
  [
    'Record-Route',
    { 'Max-Forwards: 70': `Max-Forwards: 70\r\nRecord-Route: <sip:${stranger.address};lr>` },
  ],
])('the peer may send from where its %s says that it is', (_name, changes) => {
  const { server, asked } = serverThat(forbidden)
  const [[from, to] = ['', '']] = Object.entries(changes)
  const toTag = answered(server, requestOf('INVITE', { body: sdp }).replace(from, to))
  acknowledge(server, toTag)
  server.takeDelivered()
  server.receive(requestOf('BYE', { toTag, cseq: 2, branch: 'z9hG4bK-b' }), stranger)
  expect(asked).toEqual([])
  expect(told(server.takeDelivered())).toBe(1)
})

// RFC 3261 §9, §22.1: it cannot be challenged.
test('a CANCEL from another address than its INVITE matches nothing', () => {
  const server = new VirtualServer()
  invited(server)
  server.takeSent()
  server.takeDelivered()
  const cancel = requestOf('CANCEL', { branch: 'z9hG4bK-INVITE-1' })
  server.receive(cancel, stranger)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 481 Call/Transaction Does Not Exist'])
  expect(told(server.takeDelivered())).toBe(0)
  server.receive(cancel, { ...caller, port: 61_000 })
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 OK', 'SIP/2.0 487 Request Terminated'])
})
