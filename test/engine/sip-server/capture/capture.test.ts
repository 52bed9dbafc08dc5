/** What Homer gets of a server: each message of each transport, both ways, with its addresses and what carried it. */
import { readFileSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import { createSipServer, type Listener } from '../../../../engine/sip-server/index.ts'
import { Authority, loopbackNames } from '../../../support/certificates.ts'
import { datagramSink } from '../../../support/datagram-sink.ts'
import { SipPeer } from '../../../support/sip-peer.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import { emitted } from '../../../support/waiting.ts'

const authority = new Authority(temporaryFolder())
const certificate = authority.sign('server', ...loopbackNames)
const ca = readFileSync(authority.file)

async function start(protocol: Listener['protocol'], host: string) {
  const homer = await datagramSink()
  const server = createSipServer({
    listen: [{ protocol, host, port: 0 }],
    tls: certificate,
    capture: { host: '127.0.0.1', port: homer.port, agentId: 7 },
    secret: 's',
  })
  await server.start()
  onTestFinished(() => server.stop())
  const [listener] = server.listeners
  if (listener === undefined) throw new Error('no listener')
  return { homer, listener }
}

/** Sends OPTIONS and waits for the answer; the port of the sender. */
async function ask(listener: Listener): Promise<void> {
  const { protocol, port, advertisedHost } = listener
  if (protocol !== 'ws' && protocol !== 'wss') {
    const options = {
      ca,
      cert: readFileSync(certificate.certFile),
      key: readFileSync(certificate.keyFile),
    }
    const peer = await SipPeer.open(listener, protocol === 'tls' ? { tls: options } : {})
    onTestFinished(() => peer.close())
    peer.request('OPTIONS', peer.leg(`sip:a@example.com`))
    await peer.next('503 OPTIONS')
    return
  }
  const host = isIPv6(advertisedHost) ? `[${advertisedHost}]` : advertisedHost
  const socket = new WebSocket(`${protocol}://${host}:${port}`, 'sip', { ca })
  onTestFinished(() => socket.terminate())
  await emitted(socket, 'open')
  const answered = emitted(socket, 'message')
  socket.send(
    [
      'OPTIONS sip:a@example.com SIP/2.0',
      'Via: SIP/2.0/WS a.invalid;branch=z9hG4bK1',
      'Max-Forwards: 70',
      'From: <sip:b@example.com>;tag=1',
      'To: <sip:a@example.com>',
      'Call-ID: 1',
      'CSeq: 1 OPTIONS',
      'Content-Length: 0',
      '',
      '',
    ].join('\r\n'),
  )
  await answered
}

/** Values by type. */
function chunksOf(packet: Buffer): ReadonlyMap<number, Buffer> {
  const chunks = new Map<number, Buffer>()
  for (let at = 6; at < packet.length; at += packet.readUInt16BE(at + 4))
    chunks.set(
      packet.readUInt16BE(at + 2),
      packet.subarray(at + 6, at + packet.readUInt16BE(at + 4)),
    )
  return chunks
}

const protocols = ['udp', 'tcp', 'tls', 'ws', 'wss'] as const

test.each(
  protocols.flatMap(
    (protocol) =>
      [
        [protocol, '127.0.0.1'],
        [protocol, '::1'],
      ] as const,
  ),
)('a request by %s at %s and its answer are copied', async (protocol, host) => {
  const { homer, listener } = await start(protocol, host)
  await ask(listener)
  await expect.poll(() => homer.received.length).toBeGreaterThanOrEqual(2)
  const [request, response] = homer.received.map(chunksOf)
  expect(String(request?.get(15))).toMatch(/^OPTIONS sip:a@example\.com SIP\/2\.0\r\n/)
  expect(String(response?.get(15))).toMatch(/^SIP\/2\.0 503 /)
  const isV6 = isIPv6(host)
  const address = isV6 ? `${'00'.repeat(15)}01` : '7f000001'
  for (const chunks of [request, response]) {
    expect(chunks?.get(1)?.readUInt8()).toBe(isV6 ? 10 : 2)
    expect(chunks?.get(2)?.readUInt8()).toBe(protocol === 'udp' ? 17 : 6)
    expect(
      [chunks?.get(isV6 ? 5 : 3), chunks?.get(isV6 ? 6 : 4)].map((each) => each?.toString('hex')),
    ).toEqual([address, address])
    expect(chunks?.get(12)?.readUInt32BE()).toBe(7)
  }
  expect(request?.get(8)?.readUInt16BE()).toBe(listener.port)
  expect(response?.get(7)?.readUInt16BE()).toBe(listener.port)
})
