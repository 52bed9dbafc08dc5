import { expect, test } from 'vitest'
import { VirtualServer, udp } from '../../../support/sip-core.ts'

test('a wrong secret, or a command before the secret, ends the connection', () => {
  const server = new VirtualServer()
  for (const payload of ['authenticate|wrong|', 'route|invite', 'nonsense']) {
    server.core.clientConnected(2, false)
    const id = server.command(payload, 2)
    expect(server.takeDelivered()[0]?.tokens.slice(1, 4)).toEqual(['response', id, 'NO'])
    expect(server.other.splice(0)).toEqual([{ kind: 'disconnect', clientId: 2 }])
  }
})

test('a connected application learns version and addresses in the shape that apps parse', () => {
  const server = new VirtualServer({ listeners: [{ ...udp, advertisedHost: '203.0.113.1' }] })
  server.core.clientConnected(2, false)
  const id = server.command('authenticate|cymru|', 2)
  expect(server.takeDelivered()[0]?.tokens.slice(1)).toEqual([
    'response',
    id,
    'OK',
    'udp/203.0.113.1:5060',
    'v0.9.99-test',
    'udp/198.51.100.10:5060',
  ])
})
