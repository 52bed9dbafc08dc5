/** By TLS a peer goes by the name that it was asked for, whatever address its Contact shows. */
import { expect, test } from 'vitest'
import {
  callee,
  responseOf,
  sdp,
  sip,
  targetAt,
  udp,
  VirtualServer,
} from '../../../../support/sip-core.ts'

const tls = { ...udp, protocol: 'tls', port: 5061, advertisedPort: 5061 } as const
const host = 'sip.carrier.example'

test('in a dialog whose connection was lost, the new one is for the same name', () => {
  const server = new VirtualServer({ listeners: [udp, tls] })
  const uri = `sip:bob@${host};transport=tls`
  server.command(`sip||\r\n${sip(`INVITE ${uri} SIP/2.0`, ['from: sip:a@localhost'], sdp)}`)
  server.resolved(host, [targetAt(callee.address, 'tls', 5061)])
  const [invite] = server.takeSent()
  if (invite === undefined) throw new Error('nothing was sent')
  expect(invite.flow).toMatchObject({ address: callee.address, port: 5061, hostName: host })
  expect(invite.text).toContain('Via: SIP/2.0/TLS 198.51.100.10:5061;alias;branch=')

  const connection = { ...invite.flow, connectionId: 5 }
  const contact = `Contact: <sip:bob@${callee.address}:5061;transport=tls>`
  const content = { toTag: 'bt', extra: [contact], body: sdp }
  server.receive(responseOf(invite.text, 200, content), connection)
  const dialogId = server.takeDelivered().at(-1)?.dialogId ?? ''
  server.command(`sip||${dialogId}\r\n${sip('ACK sip:placeholder SIP/2.0', [])}`)
  expect(server.takeSent().map(({ flow }) => flow)).toEqual([connection])

  server.connectionClosed(connection)
  server.command(`sip||${dialogId}\r\n${sip('BYE sip:placeholder SIP/2.0', [])}`)
  const [bye] = server.takeSent()
  expect(bye?.flow).toEqual({ ...invite.flow, connectionId: 0 })
})
