import { expect, test } from 'vitest'
import type { Flow } from '../../../../../engine/sip-server/flow.ts'
import {
  callee,
  header,
  responseOf,
  sdp,
  sip,
  tagIn,
  VirtualServer,
} from '../../../../support/sip-core.ts'

/** What a NAT made of the phone: its Contact says something else. */
const nat: Flow = { ...callee, port: 40_123 }

/**
 * Where ACK and BYE go after an INVITE to `uri`, sent to `nextHop` ('': where the URI says), was
 * answered from `source` with this Contact; and the host that they name.
 */
function settled(
  { uri, nextHop = '', lines = [] }: { uri: string; nextHop?: string; lines?: string[] },
  source: Flow,
  answerLines: string[],
) {
  const server = new VirtualServer()
  server.command(
    `sip|||${nextHop}\r\n${sip(`INVITE ${uri} SIP/2.0`, ['from: sip:a@localhost', ...lines], sdp)}`,
  )
  const invite = server.takeSent()[0]?.text ?? ''
  server.receive(responseOf(invite, 200, { toTag: 'bt', extra: answerLines, body: sdp }), source)
  const dialogId = `${header(invite, 'Call-ID')};from-tag=${tagIn(header(invite, 'From'))}`
  server.command(`sip||${dialogId}\r\n${sip(`ACK ${uri} SIP/2.0`, [])}`)
  server.command(`sip||${dialogId}\r\n${sip(`BYE ${uri} SIP/2.0`, [])}`)
  return server.takeSent().map(({ text, flow }) => ({
    line: text.slice(0, text.indexOf('\r\n')).replace(' SIP/2.0', ''),
    to: `${flow.address}:${flow.port}`,
  }))
}

const both = (uri: string, to: string) => [
  { line: `ACK ${uri}`, to },
  { line: `BYE ${uri}`, to },
]

test.each([
  ['the same private address', 'sip:101@192.168.1.5:5062', 'sip:101@192.168.1.5:5062'],
  ['a name that cannot be looked up', 'sip:101@phone.invalid', 'sip:101@phone.invalid'],
  [
    'its private address, registered by a public one',
    'sip:101@203.0.113.9:5060',
    'sip:101@10.1.1.1',
  ],
  [
    'the address of its NAT with a port of its own',
    'sip:101@10.1.1.1:5060',
    'sip:101@192.0.2.20:5060',
  ],
])(
  'a phone behind NAT that answers with %s is acknowledged and hung up where it answered',
  (_, uri, contact) => {
    const nextHop = 'sip:192.0.2.20:40123;transport=udp'
    expect(settled({ uri, nextHop }, nat, [`Contact: <${contact}>`])).toEqual(
      both(contact, '192.0.2.20:40123'),
    )
  },
)

test('a private Contact from a public address leads nowhere, whatever was called', () => {
  const sent = settled({ uri: 'sip:b@192.0.2.20' }, callee, ['Contact: <sip:b@10.1.1.1>'])
  expect(sent).toEqual(both('sip:b@10.1.1.1', '192.0.2.20:5060'))
})

test('a peer that was called at its own address may move the dialog elsewhere', () => {
  const sent = settled({ uri: 'sip:b@192.0.2.20' }, callee, ['Contact: <sip:b@192.0.2.99:5070>'])
  expect(sent).toEqual(both('sip:b@192.0.2.99:5070', '192.0.2.99:5070'))
})

test('a proxy that records itself is the way, not the source of the answer', () => {
  const uri = 'sip:101@192.168.1.5:5062'
  const lines = ['Record-Route: <sip:192.0.2.77;lr>', `Contact: <${uri}>`]
  const sent = settled({ uri, nextHop: 'sip:192.0.2.20:40123' }, nat, lines)
  expect(sent).toEqual(both(uri, '192.0.2.77:5060'))
})

test('a proxy of the Path that does not record itself wants to be left out', () => {
  const uri = 'sip:101@192.0.2.99:5062'
  const lines = ['Route: <sip:192.0.2.20;lr>']
  expect(settled({ uri, lines }, callee, [`Contact: <${uri}>`])).toEqual(
    both(uri, '192.0.2.99:5062'),
  )
})
