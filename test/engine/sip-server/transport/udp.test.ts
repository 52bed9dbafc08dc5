import { createSocket } from 'node:dgram'
import { expect, onTestFinished, test } from 'vitest'
import type { Flow, Listener } from '../../../../engine/sip-server/flow.ts'
import { openUdp } from '../../../../engine/sip-server/transport/udp.ts'
import { PeerFlows } from '../../../../engine/sip-server/transport/peer-flows.ts'
import { watchTransport } from '../../../support/transport-watch.ts'
import { emitted, Signal } from '../../../support/waiting.ts'

async function setUp(host: string, advertisedHost?: string) {
  const received: { text: string; flow: Flow }[] = []
  const failed: string[] = []
  const signal = new Signal()
  const transport = await openUdp({ host, port: 0 }, advertisedHost, {
    message: () => undefined,
    accepts: () => true,
    sourceStatus: () => 'proven' as const,
    refused: () => undefined,
    datagram: (bytes, flow) => {
      received.push({ text: String(bytes), flow })
      signal.fire()
    },
    sendFailed: (reference, reason) => {
      failed.push(`${reference}: ${reason}`)
      signal.fire()
    },
    connectionClosed: () => undefined,
  })
  onTestFinished(() => transport.stop())
  const changed = () => signal.next()
  return { transport, received, failed, changed }
}

async function peer(type: 'udp4' | 'udp6') {
  const socket = createSocket(type)
  socket.bind(0, type === 'udp4' ? '127.0.0.1' : '::1')
  await emitted(socket, 'listening')
  onTestFinished(() => void socket.close())
  return socket
}

test.each([
  ['127.0.0.1', 'udp4'],
  ['::1', 'udp6'],
] as const)('datagrams go both ways on %s', async (host, type) => {
  const { transport, received, changed } = await setUp(host)
  const { listener } = transport
  expect(listener).toMatchObject({ address: host, advertisedHost: host, protocol: 'udp' })
  const socket = await peer(type)
  socket.send('OPTIONS …', listener.port, host)
  await changed()
  const [message] = received
  expect(message?.text).toBe('OPTIONS …')
  expect(message?.flow).toEqual({
    listener,
    address: host,
    port: socket.address().port,
    connectionId: 0,
  })
  expect(message?.flow.listener).toBe(listener)
  if (message) transport.send('SIP/2.0 200 grüße', message.flow, 'r1')
  const [answer] = await emitted(socket, 'message')
  expect(String(answer)).toBe('SIP/2.0 200 grüße')
})

test('keep-alives are not messages', async () => {
  const { transport, received, changed } = await setUp('127.0.0.1')
  const socket = await peer('udp4')
  for (const datagram of ['\r\n\r\n', '\0\0\0\0', ' ', '', '\r\n\r\nOPTIONS …'])
    socket.send(datagram, transport.listener.port, '127.0.0.1')
  await changed()
  expect(received.map(({ text }) => text)).toEqual(['\r\n\r\nOPTIONS …'])
})

test('a datagram that cannot be sent comes back with its reference, later; without one it does not', async () => {
  const { transport, failed, changed } = await setUp('127.0.0.1')
  const flow = { listener: transport.listener, address: '127.0.0.1', connectionId: 0 }
  transport.send('x'.repeat(70_000), { ...flow, port: 9 }, '')
  transport.send('x', { ...flow, port: 70_000 }, 'bad port')
  transport.send('x'.repeat(70_000), { ...flow, port: 9 }, 'too long')
  expect(failed).toEqual([])
  while (failed.length < 2) await changed()
  expect(failed.toSorted()).toEqual(['bad port: ERR_SOCKET_BAD_PORT', 'too long: EMSGSIZE'])
})

test('a socket on all interfaces shows an address that peers can use', async () => {
  const all = await setUp('0.0.0.0')
  expect(all.transport.listener.address).toBe('0.0.0.0')
  expect(all.transport.listener.advertisedHost).toMatch(/^(?!0\.0\.0\.0)\d+\.\d+\.\d+\.\d+$/)
  const named = await setUp('0.0.0.0', 'sip.example.net')
  expect(named.transport.listener.advertisedHost).toBe('sip.example.net')
})

test('a port that is taken is a ListenError in one line', async () => {
  const { transport } = await setUp('127.0.0.1')
  const { port } = transport.listener
  const { callbacks } = watchTransport()
  await expect(openUdp({ host: '127.0.0.1', port }, undefined, callbacks)).rejects.toMatchObject({
    name: 'ListenError',
    code: 'EADDRINUSE',
    message: `cannot listen on udp/127.0.0.1:${port}: EADDRINUSE`,
  })
})

const listener: Listener = {
  protocol: 'udp',
  address: '127.0.0.1',
  port: 5_060,
  advertisedHost: '127.0.0.1',
  advertisedPort: 5_060,
}

test('forged sources do not fill the memory', () => {
  const flows = new PeerFlows(listener, 3)
  const first = flows.of('192.0.2.1', 1)
  flows.of('192.0.2.2', 1)
  flows.of('192.0.2.2', 2)
  expect(flows.of('192.0.2.1', 1)).toBe(first)
  flows.of('192.0.2.3', 1)
  expect(flows.of('192.0.2.1', 1)).not.toBe(first)
  expect(flows.of('192.0.2.1', 1)).toEqual(first)
})
