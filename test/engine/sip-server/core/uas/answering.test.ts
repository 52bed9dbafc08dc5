/** Calls that come in: RFC 3261 §12, §13.3, §15, §17.2; requests in their dialogs that others send. */
import { expect, test } from 'vitest'
import type { DialogOfPeer } from '../../../../../engine/sip-server/index.ts'
import { answered, invited, respond, acknowledge } from '../../../../support/caller.ts'
import {
  VirtualServer,
  caller,
  header,
  requestOf,
  sdp,
  tagIn,
  tcpCaller,
  sip,
  callee,
  type Delivered,
} from '../../../../support/sip-core.ts'

const contact = '<sip:18005551212@198.51.100.10:5060>'

test('an INVITE gets 100 Trying at once and goes to the application with its source', () => {
  const server = new VirtualServer()
  server.receive(requestOf('INVITE', { body: sdp }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 100 Trying'])
  const [event] = server.takeDelivered()
  expect(event).toMatchObject({
    source: 'network',
    protocol: 'udp',
    address: '203.0.113.7',
    port: '5060',
    dialogId: '',
    localAddress: '198.51.100.10',
    localPort: '5060',
  })
  expect(event?.sip).toContain(sdp)
})

test('a repeated INVITE is answered with the last provisional and reaches no application twice', () => {
  const server = new VirtualServer()
  const transactionId = invited(server)
  respond(server, transactionId, 180)
  server.takeDelivered()
  server.takeSent()
  server.receive(requestOf('INVITE', { body: sdp }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 180 Any'])
  expect(server.takeDelivered()).toEqual([])
})

// RFC 3261 §12.1.1: the caller's requests in an early dialog (UPDATE, BYE) go there.
test.each([180, 183])('a %i to an INVITE says where its early dialog is reached', (status) => {
  const server = new VirtualServer()
  server.receive(requestOf('INVITE', { body: sdp }))
  const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
  respond(server, transactionId, 100)
  respond(server, transactionId, status)
  const sent = server.takeSent().map(({ text }) => header(text, 'Contact'))
  expect(sent.at(-1)).toBe(contact)
  expect(new Set(sent.slice(0, -1))).toEqual(new Set(['']))
})

// RFC 3261 §13.3.1.4, on every transport.
test.each([caller, tcpCaller])(
  'a 200 is repeated at T1, doubling to T2, until its ACK (connection $connectionId)',
  (flow) => {
    const server = new VirtualServer()
    const invite =
      flow === caller
        ? requestOf('INVITE', { body: sdp })
        : requestOf('INVITE', { via: 'SIP/2.0/TCP 203.0.113.7:5060;branch=z9hG4bK-t', body: sdp })
    respond(server, invited(server, invite, flow), 200)
    const start = server.now
    const [first] = server.takeSent()
    server.advance(8_000)
    expect(server.takeSent().map(({ at }) => at - start)).toEqual([500, 1_500, 3_500, 7_500])
    server.receive(
      requestOf('ACK', {
        toTag: tagIn(header(first?.text ?? '', 'To')),
        branch: 'z9hG4bK-ack',
        via: `SIP/2.0/${flow.listener.protocol.toUpperCase()} 203.0.113.7:5060;branch=z9hG4bK-ack`,
      }),
      flow,
    )
    server.advance(32_000)
    expect(server.takeSent()).toEqual([])
  },
)

test('the ACK of a 200 reaches the application once, with the dialog id and its body', () => {
  const server = new VirtualServer()
  const toTag = answered(server)
  server.receive(requestOf('ACK', { toTag, branch: 'z9hG4bK-ack', body: sdp }))
  server.receive(requestOf('ACK', { toTag, branch: 'z9hG4bK-ack2', body: sdp }))
  const events = server.takeDelivered()
  expect(events).toHaveLength(1)
  expect(events[0]?.dialogId).toBe('c1@203.0.113.7;from-tag=f1')
  expect(events[0]?.sip).toContain(sdp)
})

test('an answer without its ACK ends with BYE after 64*T1, and the application learns it', () => {
  const server = new VirtualServer()
  answered(server)
  server.advance(32_000)
  const lines = server.takeStartLines()
  expect(lines.at(-1)).toBe('BYE sip:alice@203.0.113.7:5060 SIP/2.0')
  const [event] = server.takeDelivered()
  expect(event).toMatchObject({
    transactionId: 'unsolicited',
    dialogId: 'c1@203.0.113.7;from-tag=f1',
  })
  expect(header(event?.sip ?? '', 'Reason')).toBe('SIP ;cause=200 ;text="ACK timeout"')
  expect(server.core.stats()['dialogs']).toBe(0)
})

// RFC 3261 §17.2.1.
test('an unacknowledged 486 is repeated with doubling back-off, then given up at 64*T1', () => {
  const server = new VirtualServer()
  respond(server, invited(server), 486)
  const start = server.now
  server.advance(40_000)
  expect(server.takeSent().map(({ at }) => at - start)).toEqual([
    0, 500, 1_500, 3_500, 7_500, 11_500, 15_500, 19_500, 23_500, 27_500, 31_500,
  ])
})

test('CANCEL is answered 200, the INVITE 487, and the application is told', () => {
  const server = new VirtualServer()
  const transactionId = invited(server)
  server.receive(requestOf('CANCEL', { branch: 'z9hG4bK-INVITE-1' }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 OK', 'SIP/2.0 487 Request Terminated'])
  const [event] = server.takeDelivered()
  expect(event?.sip.startsWith('CANCEL ')).toBe(true)
  expect(event).toMatchObject({ transactionId, dialogId: '', localAddress: '' })
  const id = respond(server, transactionId, 487)
  expect(server.takeDelivered()[0]).toMatchObject({ commandId: id, verdict: 'NOK' })
})

// RFC 5031.
test('who asks for help in an emergency by a URN reaches the application', () => {
  const server = new VirtualServer()
  const invite = requestOf('INVITE', { uri: 'urn:service:sos', body: sdp })
  respond(server, invited(server, invite), 200)
  const answer = server.takeSent()[0]?.text ?? ''
  expect([answer.split('\r\n', 1)[0], header(answer, 'Contact')]).toEqual([
    'SIP/2.0 200 Any',
    '<sip:198.51.100.10:5060>',
  ])
})

// RFC 3261 §12.2.2.
test('a request with a lower sequence number than the last one gets 500', () => {
  const server = new VirtualServer()
  const toTag = answered(server)
  acknowledge(server, toTag)
  server.receive(requestOf('INFO', { toTag, cseq: 5, branch: 'z9hG4bK-i5' }))
  server.takeDelivered()
  server.takeSent()
  server.receive(requestOf('INFO', { toTag, cseq: 4, branch: 'z9hG4bK-i4' }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 500 Server Internal Error'])
  expect(server.takeDelivered()).toEqual([])
})

test('a re-INVITE moves the remote target: the BYE of ours goes to the new Contact', () => {
  const server = new VirtualServer()
  const toTag = answered(server)
  acknowledge(server, toTag)
  server.takeDelivered()
  server.receive(
    requestOf('INVITE', { toTag, cseq: 2, branch: 'z9hG4bK-r2' }).replace(
      'Contact: <sip:alice@203.0.113.7:5060>',
      'Contact: <sip:alice@203.0.113.9:5070>',
    ),
  )
  const transactionId = server.takeDelivered()[0]?.transactionId ?? ''
  respond(server, transactionId, 200)
  acknowledge(server, toTag)
  server.takeSent()
  server.command(`sip||c1@203.0.113.7;from-tag=f1\r\n${sip('BYE sip:placeholder SIP/2.0', [])}`)
  const [bye] = server.takeSent()
  expect(bye?.text.startsWith('BYE sip:alice@203.0.113.9:5070 SIP/2.0\r\n')).toBe(true)
  expect(bye?.flow).toMatchObject({ address: '203.0.113.9', port: 5070 })
})

// RFC 3261 §12.1.1 and §16.12.1.
test('a dialog goes back by the recorded route, loose or strict', () => {
  for (const [route, expected] of [
    ['<sip:192.0.2.1;lr>', ['BYE sip:alice@203.0.113.7:5060 SIP/2.0', '<sip:192.0.2.1;lr>']],
    ['<sip:192.0.2.1>', ['BYE sip:192.0.2.1 SIP/2.0', '<sip:alice@203.0.113.7:5060>']],
  ] as const) {
    const server = new VirtualServer()
    const invite = requestOf('INVITE', { extra: [`Record-Route: ${route}`], body: sdp })
    respond(server, invited(server, invite), 200)
    const [ok] = server.takeSent()
    expect(header(ok?.text ?? '', 'Record-Route')).toBe(route)
    acknowledge(server, tagIn(header(ok?.text ?? '', 'To')))
    server.command(`sip||c1@203.0.113.7;from-tag=f1\r\n${sip('BYE sip:placeholder SIP/2.0', [])}`)
    const [bye] = server.takeSent()
    expect([bye?.text.split('\r\n')[0], header(bye?.text ?? '', 'Route')]).toEqual(expected)
    expect(bye?.flow.address).toBe('192.0.2.1')
  }
})

// RFC 3261 §15.1.2; the application has no dialog yet in which it could hear of a BYE.
test('a BYE before the answer ends the INVITE, and its application hears of it as of a CANCEL', () => {
  const server = new VirtualServer()
  const transactionId = invited(server)
  respond(server, transactionId, 183)
  const toTag = tagIn(header(server.takeSent()[0]?.text ?? '', 'To'))
  server.takeDelivered()
  const bye = requestOf('BYE', { toTag, cseq: 2 })
  server.receive(bye)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 OK', 'SIP/2.0 487 Request Terminated'])
  const [told, ...others] = server.takeDelivered()
  expect([told?.transactionId, told?.sip.split(' ', 1)[0], others]).toEqual([
    transactionId,
    'CANCEL',
    [],
  ])
  server.receive(bye)
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 OK'])
  respond(server, transactionId, 200)
  expect(server.takeDelivered()[0]?.verdict).toBe('NOK')
  server.receive(requestOf('ACK', { toTag, branch: 'z9hG4bK-INVITE-1' }))
  server.advance(64_000)
  const { applications: _, ...tables } = server.core.stats()
  expect(Object.values(tables).every((size) => size === 0)).toBe(true)
})

const branch = 'z9hG4bK-one'
const fromInside = `SIP/2.0/UDP 10.0.0.7:5060;rport;branch=${branch}`
const fromOutside = `SIP/2.0/UDP 203.0.113.7:31000;rport;branch=${branch}`

// RFC 3261 §9.1, RFC 3581.
test('a CANCEL whose Via shows the public address meanwhile finds its INVITE by branch, Call-ID, tag and number', () => {
  const server = new VirtualServer()
  invited(server, requestOf('INVITE', { via: fromInside, body: sdp }))
  server.receive(requestOf('CANCEL', { via: fromOutside }))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 200 OK', 'SIP/2.0 487 Request Terminated'])
  expect(server.takeDelivered()[0]?.sip).toMatch(/^CANCEL /)
})

test.each([
  ['branch', { via: fromOutside.replace(branch, 'z9hG4bK-on') }],
  ['tag', { via: fromOutside, fromTag: 'mallory' }],
  ['number', { via: fromOutside, cseq: 2 }],
])('with another %s it finds nothing', (_, options) => {
  const server = new VirtualServer()
  invited(server, requestOf('INVITE', { via: fromInside, body: sdp }))
  server.receive(requestOf('CANCEL', options))
  expect(server.takeStartLines()).toEqual(['SIP/2.0 481 Call/Transaction Does Not Exist'])
  expect(server.takeDelivered()).toEqual([])
})

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
