import { expect, test } from 'vitest'
import { VirtualServer, sip, targetAt, tcpCaller, udp } from '../../../support/sip-core.ts'

/** Asks `peer` something over TCP. */
const ask = (server: VirtualServer, peer: string): string =>
  server.command(`sip|||sip:${peer};transport=tcp\r\n${sip(`OPTIONS sip:${peer} SIP/2.0`, [])}`)

const finals = (server: VirtualServer): string[] =>
  server
    .takeDelivered()
    .filter(({ kind }) => kind === 'sip')
    .map(({ sip: text }) => text.slice(0, text.indexOf('\r\n')))

// RFC 3261 §18.4: the transaction user is told at once, not after 32 s.
test('a connection that closes ends what waits on it as 503, and nothing that waits elsewhere', () => {
  const server = new VirtualServer()
  ask(server, '192.0.2.20')
  ask(server, '192.0.2.30')
  server.takeDelivered()
  const connection = { ...tcpCaller, address: '192.0.2.20', port: 5060 }
  server.connectionClosed(connection)
  expect(finals(server)).toEqual(['SIP/2.0 503 Service Unavailable'])
  expect(server.core.stats()['clientTransactions']).toBe(1)
  server.advance(32_000)
  expect(finals(server)).toEqual(['SIP/2.0 408 Request Timeout'])
  expect(server.core.stats()['clientTransactions']).toBe(0)
})

test('by TLS a connection that closes ends nothing that waits for another name at that address', () => {
  const tls = { ...udp, protocol: 'tls', port: 5061, advertisedPort: 5061 } as const
  const server = new VirtualServer({ listeners: [udp, tls] })
  for (const name of ['one.example', 'Two.example']) {
    const uri = `sip:${name};transport=tls`
    server.command(`sip||\r\n${sip(`OPTIONS ${uri} SIP/2.0`, [])}`)
    server.resolved(name, [targetAt('192.0.2.20', 'tls', 5061)])
  }
  const [one, two] = server.takeSent().map(({ flow }) => flow)
  expect(two?.hostName).toBe('Two.example')
  server.takeDelivered()
  if (one) server.connectionClosed({ ...one, connectionId: 3 })
  expect(finals(server)).toHaveLength(1)
  if (two) server.connectionClosed({ ...two, hostName: 'two.example', connectionId: 4 })
  expect(finals(server)).toHaveLength(1)
  expect(server.core.stats()['clientTransactions']).toBe(0)
})
