import { expect, test } from 'vitest'
import {
  VirtualServer,
  callee,
  header,
  responseOf,
  sdp,
  sip,
  tagIn,
} from '../../../../support/sip-core.ts'

// RFC 3261 §13.2.2.4: the forks share one drachtio dialog id, but not one ACK.
test('a second answer that comes before the ACK of the first does not take it away', () => {
  const server = new VirtualServer()
  const from = ['from: sip:alice@localhost']
  server.command(`sip||\r\n${sip('INVITE sip:bob@192.0.2.20 SIP/2.0', from, sdp)}`)
  const invite = server.takeSent()[0]?.text ?? ''
  const answer = (toTag: string, host: string) =>
    server.receive(
      responseOf(invite, 200, { toTag, extra: [`Contact: <sip:bob@${host}>`], body: sdp }),
      callee,
    )
  answer('first', '192.0.2.20')
  answer('second', '192.0.2.30')
  expect(server.takeStartLines()).toEqual([
    'ACK sip:bob@192.0.2.30 SIP/2.0',
    'BYE sip:bob@192.0.2.30 SIP/2.0',
  ])
  const dialogId = `${header(invite, 'Call-ID')};from-tag=${tagIn(header(invite, 'From'))}`
  server.command(`sip||${dialogId}\r\n${sip('ACK sip:bob@192.0.2.20 SIP/2.0', [])}`)
  expect(server.takeStartLines()).toEqual(['ACK sip:bob@192.0.2.20 SIP/2.0'])
})
