/**
 * The copies that Homer gets of a server: each message of each transport, both ways, with its
 * addresses and what carried it.
 */
import { readFileSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { WebSocket } from 'ws'
import {
  createSipServer,
  type Listener,
  type SipServerOptions,
} from '../../../../engine/sip-server/index.ts'
import { Authority, loopbackNames } from '../../../support/certificates.ts'
import { freePort } from '../../../support/free-port.ts'
import { hepByTls, hepByUdp } from '../../../support/hep-server.ts'
import { requestOf } from '../../../support/sip-core.ts'
import { SipPeer } from '../../../support/sip-peer.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import { emitted, turnOfEventLoop } from '../../../support/waiting.ts'

const folder = temporaryFolder()
const authority = new Authority(folder)
const certificate = authority.sign('server', ...loopbackNames)
const forged = new Authority(folder, 'another').sign('forged', ...loopbackNames)
const ca = readFileSync(authority.file)
const tls = { caFile: authority.file }

type Capture = NonNullable<SipServerOptions['capture']>

async function start(
  port: number,
  capture: Partial<Capture> = {},
  protocol: Listener['protocol'] = 'udp',
  host = '127.0.0.1',
) {
  const warnings: string[] = []
  const server = createSipServer({
    listen: [{ protocol, host, port: 0 }],
    tls: certificate,
    capture: { host: '127.0.0.1', port, agentId: 7, ...capture },
    secret: 's',
    log: (level, message, fields) => {
      if (level === 'warn') warnings.push(`${message}: ${JSON.stringify(fields)}`)
    },
  })
  await server.start()
  onTestFinished(() => server.stop())
  const [listener] = server.listeners
  if (listener === undefined) throw new Error('no listener')
  return { server, listener, warnings }
}

/** Sends OPTIONS and waits for the answer. */
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
    peer.request('OPTIONS', peer.leg('sip:a@example.com'))
    await peer.next('503 OPTIONS')
    return
  }
  const host = isIPv6(advertisedHost) ? `[${advertisedHost}]` : advertisedHost
  const socket = new WebSocket(`${protocol}://${host}:${port}`, 'sip', { ca })
  onTestFinished(() => socket.terminate())
  await emitted(socket, 'open')
  const answered = emitted(socket, 'message')
  const via = 'SIP/2.0/WS a.invalid;branch=z9hG4bK1'
  socket.send(requestOf('OPTIONS', { uri: 'sip:a@example.com', via }))
  await answered
}

const protocols = ['udp', 'tcp', 'tls', 'ws', 'wss'] as const

test.each(
  protocols.flatMap((protocol) => [[protocol, '127.0.0.1'] as const, [protocol, '::1'] as const]),
)('a request by %s at %s and its answer are copied', async (protocol, host) => {
  const homer = await hepByUdp()
  const { server, listener } = await start(homer.port, {}, protocol, host)
  const before = Date.now()
  await ask(listener)
  await expect.poll(() => homer.packets().length).toBeGreaterThanOrEqual(2)
  const [request, response] = homer.packets()
  expect(request?.payload).toMatch(/^OPTIONS sip:a@example\.com SIP\/2\.0\r\n[^]*\r\n\r\n$/)
  expect(response?.payload).toMatch(/^SIP\/2\.0 503 /)
  const isIpv6 = isIPv6(host)
  const address = isIpv6 ? `${'00'.repeat(15)}01` : '7f000001'
  for (const packet of [request, response]) {
    expect(packet).toMatchObject({
      isIpv6,
      protocol: protocol === 'udp' ? 17 : 6,
      source: address,
      destination: address,
      agentId: 7,
      key: undefined,
      correlationId: undefined,
    })
    expect(Math.abs((packet?.at ?? 0) - before)).toBeLessThan(60_000)
  }
  expect(request?.destinationPort).toBe(listener.port)
  expect(response?.sourcePort).toBe(listener.port)
  expect(request?.sourcePort).toBe(response?.destinationPort)
  expect(server.captured?.dropped).toBe(0)
})

test('by UDP and by TLS a packet has the key, and the id of the call that a Call-ID belongs to', async () => {
  for (const homer of [await hepByUdp(), await hepByTls(certificate)]) {
    const asked: string[] = []
    const { listener } = await start(homer.port, {
      ...('connections' in homer && { tls }),
      password: 'kéy',
      agentId: 4_294_967_295,
      correlationOf: (callId) => {
        asked.push(callId)
        return asked.length === 1 ? 'the call' : undefined
      },
    })
    await ask(listener)
    await expect.poll(() => homer.packets().length).toBe(2)
    const [request, response] = homer.packets()
    expect(request).toMatchObject({ key: 'kéy', agentId: 4_294_967_295, correlationId: 'the call' })
    expect(response?.correlationId).toBeUndefined()
    expect(request?.payload).toContain(`\r\nCall-ID: ${asked[0]}\r\n`)
    expect(new Set(asked).size).toBe(1)
  }
})

test('a server by TLS that has another certificate than a trusted one gets nothing, unless that is allowed', async () => {
  const homer = await hepByTls(forged)
  const { listener, warnings } = await start(homer.port, { tls })
  await ask(listener)
  await expect.poll(() => warnings).toHaveLength(1)
  expect(warnings[0]).toMatch(
    /^the HEP server cannot be reached: .*(?:SIGNATURE|SELF_SIGNED|UNABLE)/,
  )
  expect(homer.packets()).toHaveLength(0)
  const { listener: trusting } = await start(homer.port, { tls: { ...tls, verifyServers: false } })
  await ask(trusting)
  await expect.poll(() => homer.packets().length).toBe(2)
})

test('what passes while the server is away reaches it when it is back', async () => {
  const port = await freePort()
  const { listener, warnings } = await start(port, { tls })
  await ask(listener)
  await expect.poll(() => warnings).toHaveLength(1)
  const homer = await hepByTls(certificate, { port })
  await expect.poll(() => homer.packets().length).toBe(2)
  for (const connection of homer.connections) connection.destroy()
  await expect.poll(() => homer.connections.size).toBe(0)
  await ask(listener)
  await expect.poll(() => homer.packets().length).toBe(4)
  expect(warnings).toHaveLength(1)
})

/** Datagrams that get no answer, of 60 kB. */
async function flood(listener: Listener, count: number): Promise<void> {
  const peer = await SipPeer.open(listener, {})
  onTestFinished(() => peer.close())
  for (let sent = 0; sent < count; sent += 1) {
    peer.send(`SIP/2.0 200 OK\r\nCall-ID: a\r\nX: ${'x'.repeat(60_000)}\r\n\r\n`)
    if (sent % 10 === 0) await turnOfEventLoop()
  }
}

test.each([
  ['away', false],
  ['slow', true],
])(
  'for a server that is %s a bounded number of packets waits; the others are counted, and the log says it once',
  async (_how, isThere) => {
    const port = isThere
      ? (await hepByTls(certificate, { isReading: false })).port
      : await freePort()
    const { server, listener, warnings } = await start(port, { tls })
    await flood(listener, isThere ? 400 : 150)
    await expect.poll(() => server.captured?.dropped).toBeGreaterThan(20)
    await ask(listener)
    expect(warnings).toHaveLength(1)
    expect(warnings[0]).not.toContain('xxx')
  },
)
