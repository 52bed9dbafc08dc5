import { readFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { connect } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import { WebSocket, type ClientOptions } from 'ws'
import { defaultStreamLimits } from '../../../../engine/sip-server/transport/sources.ts'
import { Credentials } from '../../../../engine/sip-server/transport/credentials.ts'
import {
  openWebSocket,
  type WebSocketTransportOptions,
} from '../../../../engine/sip-server/transport/websocket.ts'
import { Authority, loopbackNames } from '../../../support/certificates.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import { watchTransport } from '../../../support/transport-watch.ts'
import { closed, emitted } from '../../../support/waiting.ts'

const folder = temporaryFolder()
const authority = new Authority(folder)
const certificate = authority.sign('own', ...loopbackNames)

const options = (id: string, body = ''): string =>
  `OPTIONS sip:a SIP/2.0\r\nCall-ID: ${id}\r\n\r\n${body}`

interface SetUp extends Partial<Omit<WebSocketTransportOptions, 'limits'>> {
  readonly limits?: Partial<typeof defaultStreamLimits>
  readonly accepts?: boolean
}

async function setUp({ limits, accepts = true, ...given }: SetUp = {}) {
  const { callbacks, ...seen } = watchTransport(() => accepts)
  let lastId = 0
  const transport = await openWebSocket(
    {
      host: '127.0.0.1',
      port: 0,
      advertisedHost: undefined,
      credentials: undefined,
      nextConnectionId: () => ++lastId,
      ...given,
      limits: { ...defaultStreamLimits, ...limits },
    },
    callbacks,
  )
  onTestFinished(() => transport.stop())
  const { protocol, port } = transport.listener
  const host = given.host?.includes(':') ? `[${given.host}]` : '127.0.0.1'
  const dial = (settings: ClientOptions = {}, protocols = ['sip']): WebSocket => {
    const ca = readFileSync(authority.file)
    const socket = new WebSocket(`${protocol}://${host}:${port}/`, protocols, { ca, ...settings })
    socket.on('error', () => undefined)
    onTestFinished(() => socket.terminate())
    return socket
  }
  const opened = async (settings?: ClientOptions): Promise<WebSocket> => {
    const socket = dial(settings)
    await emitted(socket, 'open')
    return socket
  }
  return { ...seen, transport, port, dial, opened }
}

/** The status of the refusal. */
const refusal = (socket: WebSocket): Promise<number | undefined> =>
  new Promise((resolve) => {
    socket.on('unexpected-response', (_request, response) => resolve(response.statusCode))
  })

const closeCode = (socket: WebSocket): Promise<number> =>
  new Promise((resolve) => void socket.on('close', (code) => resolve(code)))

test.each(['ws', 'wss'] as const)(
  'by %s a frame is a message, text or binary, and is answered on its own socket',
  async (protocol) => {
    const credentials =
      protocol === 'wss'
        ? new Credentials(
            certificate,
            () => undefined,
            () => 0,
          )
        : undefined
    onTestFinished(() => credentials?.stop())
    const { transport, flows, seeing, opened } = await setUp({ credentials })
    const [one, other] = [await opened(), await opened()]
    expect(one.protocol).toBe('sip')
    expect(one.extensions).toBe('')
    one.send(options('text'))
    await seeing('message text on 1')
    other.send(Buffer.from(options('binary')))
    await seeing('message binary on 2')
    expect(flows[0]?.listener.protocol).toBe(protocol)
    const [flow] = flows
    if (flow) transport.send('SIP/2.0 200 grüße', flow, 'r1')
    const [data, isBinary] = await emitted(one, 'message')
    expect(String(data)).toBe('SIP/2.0 200 grüße')
    expect(isBinary).toBe(false)
    if (flow) transport.send('SIP/2.0 200 OK\r\n\r\n\udcff', flow, 'r2')
    const [bytes, isBytes] = await emitted(one, 'message')
    expect(isBytes).toBe(true)
    expect(Buffer.isBuffer(bytes) && bytes.at(-1)).toBe(0xff)
    one.terminate()
    await seeing('closed 1')
    await expect.poll(() => transport.connections).toBe(1)
  },
)

// RFC 7118 §4.1.
test('a WebSocket that does not offer the sub-protocol sip is refused', async () => {
  const { dial, transport } = await setUp()
  expect(await refusal(dial({}, []))).toBe(400)
  expect(await refusal(dial({}, ['chat']))).toBe(400)
  const offeringBoth = dial({}, ['chat', 'sip'])
  await emitted(offeringBoth, 'open')
  expect(offeringBoth.protocol).toBe('sip')
  offeringBoth.terminate()
  await expect.poll(() => transport.connections).toBe(0)
})

test.each([
  ['GET', 426],
  ['POST', 404],
] as const)('a plain %s is answered %i, and the connection ends', async (method, status) => {
  const { transport, port } = await setUp()
  const request = httpRequest({ host: '127.0.0.1', port, method }).end()
  const [response] = await emitted(request, 'response')
  expect(response).toMatchObject({ statusCode: status, headers: { connection: 'close' } })
  await expect.poll(() => transport.connections).toBe(0)
})

test('a message that is too large ends its socket with 1009', async () => {
  const { events, seeing, opened } = await setUp()
  const socket = await opened()
  socket.send(options('large', 'x'.repeat(65_536)))
  expect(await closeCode(socket)).toBe(1009)
  await seeing('closed 1')
  expect(events).toEqual(['closed 1'])
})

test('nothing is sent to a peer that is not there: a WebSocket is never opened', async () => {
  const { transport, events, seeing } = await setUp()
  const flow = { listener: transport.listener, address: '127.0.0.1', port: 9, connectionId: 0 }
  transport.send('x', flow, 'r1')
  transport.send('x', { ...flow, connectionId: 7, returnPort: 9 }, 'r2')
  expect(events).toEqual([])
  await seeing('failed r1: there is no such WebSocket')
  await seeing('failed r2: there is no such WebSocket')
})

test('a peer that does not read makes sending fail at the bound', async () => {
  const { transport, flows, events, seeing, opened } = await setUp({
    limits: { maxBufferedBytes: 100_000 },
  })
  const socket = await opened()
  socket.send(options('c1'))
  await seeing('message c1 on 1')
  socket.pause()
  const [flow] = flows
  const text = 'x'.repeat(50_000)
  for (let sent = 0; sent < 1_000 && events.length === 1; sent++) {
    if (flow) transport.send(text, flow, `r${sent}`)
    await new Promise(setImmediate)
  }
  expect(events[1]).toMatch(/^failed r\d+: the peer does not read$/)
})

test('a silent peer is pinged; one that does not answer is gone', async () => {
  const { opened, seeing, events } = await setUp({ limits: { keepAliveMs: 150 } })
  const living = await opened()
  living.send(options('living'))
  await seeing('message living on 1')
  let pings = 0
  living.on('ping', () => (pings += 1))
  const dead = await opened({ autoPong: false })
  dead.send(options('dead'))
  await seeing('closed 2')
  await expect.poll(() => pings).toBeGreaterThan(2)
  expect(events).not.toContain('closed 1')
})

test('an HTTP request that is never finished is ended, however it drips', async () => {
  const { transport, port } = await setUp({ limits: { handshakeMs: 60 } })
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write('GET / HTTP/1.1\r\n')
  const drip = setInterval(() => socket.write('X: y\r\n'), 10)
  await closed(socket.resume())
  clearInterval(drip)
  await expect.poll(() => transport.connections).toBe(0)
})

test('places are bounded, in all and for one source', async () => {
  const { opened, dial } = await setUp({ limits: { maxPerSource: 1 } })
  await opened()
  await closed(dial())
  const other = await setUp({ limits: { maxConnections: 1 } })
  await other.opened()
  await closed(other.dial())
})

test('who was refused keeps no place by leaving its side of the connection open', async () => {
  const { transport, port } = await setUp()
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  const upgrade = 'GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'
  socket.write(`${upgrade}more`)
  expect(String((await emitted(socket, 'data'))[0])).toMatch(/^HTTP\/1.1 400 /)
  await expect.poll(() => transport.connections).toBe(0)
})

test('a peer that pings and does not read fills no memory', async () => {
  const { opened, seeing } = await setUp()
  const socket = await opened()
  const pong = vi.spyOn(WebSocket.prototype, 'pong').mockImplementation(() => undefined)
  onTestFinished(() => pong.mockRestore())
  for (let sent = 0; sent < 100; sent++) socket.ping()
  socket.send(options('c1'))
  await seeing('message c1 on 1')
  // The peer itself, which is not pinged, sends no pong.
  expect(pong).toHaveBeenCalledTimes(16)
})
