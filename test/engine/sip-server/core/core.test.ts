import { expect, test } from 'vitest'
import { VirtualServer, udp } from '../../../support/sip-core.ts'
import { readWelcome } from '../../../support/wire-events.ts'

test('a wrong secret, or a command before the secret, ends the connection', () => {
  const server = new VirtualServer()
  for (const payload of ['authenticate|wrong|', 'route|invite', 'nonsense']) {
    server.core.clientConnected(2, false)
    const id = server.command(payload, 2)
    expect(server.takeDelivered()[0]).toMatchObject({
      kind: 'response',
      commandId: id,
      verdict: 'NO',
    })
    expect(server.other.splice(0)).toEqual([{ kind: 'disconnect', clientId: 2 }])
  }
})

test('a connected application learns version and addresses in the shape that apps parse', () => {
  const server = new VirtualServer({ listeners: [{ ...udp, advertisedHost: '203.0.113.1' }] })
  server.core.clientConnected(2, false)
  const id = server.command('authenticate|cymru|', 2)
  const [welcome] = server.takeDelivered()
  expect(welcome).toMatchObject({ kind: 'response', commandId: id, verdict: 'OK' })
  expect(readWelcome(welcome?.payload ?? '')).toEqual({
    hostports: ['udp/203.0.113.1:5060'],
    version: 'v0.9.99-test',
    localHostports: ['udp/198.51.100.10:5060'],
  })
})
