import { connect, createServer, Socket, type Server } from 'node:net'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { Flow } from '../../../../engine/sip-server/flow.ts'
import { defaultStreamLimits } from '../../../../engine/sip-server/transport/sources.ts'
import { openTcp } from '../../../../engine/sip-server/transport/transport-opener.ts'
import { freePort } from '../../../support/free-port.ts'
import { watchTransport } from '../../../support/transport-watch.ts'
import { closed, emitted } from '../../../support/waiting.ts'

const options = (id: string): string =>
  `OPTIONS sip:a SIP/2.0\r\nCall-ID: ${id}\r\nContent-Length: 0\r\n\r\n`

async function setUp(limits: Partial<typeof defaultStreamLimits> = {}, host = '127.0.0.1') {
  const { callbacks, ...seen } = watchTransport()
  let lastId = 0
  const transport = await openTcp(
    {
      host,
      port: 0,
      advertisedHost: undefined,
      limits: { ...defaultStreamLimits, ...limits },
      nextConnectionId: () => ++lastId,
    },
    callbacks,
  )
  onTestFinished(() => transport.stop())
  const { port } = transport.listener
  const dial = (): Socket => {
    const socket = connect(port, host)
    socket.on('error', () => undefined)
    onTestFinished(() => void socket.destroy())
    return socket
  }
  const flowTo = (port: number, connectionId = 0): Flow => ({
    listener: transport.listener,
    address: host,
    port,
    connectionId,
  })
  return { ...seen, transport, dial, flowTo }
}

async function answering(onSocket: (socket: Socket) => void = () => undefined) {
  const port = await freePort()
  const accepted: Socket[] = []
  const server: Server = createServer((socket) => {
    socket.on('error', () => undefined)
    accepted.push(socket)
    onSocket(socket)
  }).listen(port, '127.0.0.1')
  await emitted(server, 'listening')
  onTestFinished(() => {
    for (const socket of accepted) socket.destroy()
    server.close()
  })
  return { server, port }
}

test('a message is answered on the connection that it came by, and on no other', async () => {
  const { transport, flows, seeing, dial, flowTo } = await setUp()
  const socket = dial()
  socket.write(options('c1'))
  await seeing('message c1 on 1')
  const [flow] = flows
  if (flow) transport.send('SIP/2.0 200 grüße', flow, 'r1')
  const [answer] = await emitted(socket, 'data')
  expect(String(answer)).toBe('SIP/2.0 200 grüße')
  expect(flow).toEqual(flowTo(socket.localPort ?? 0, 1))

  socket.destroy()
  await seeing('closed 1')
  if (flow) transport.send('SIP/2.0 200 OK', flow, 'r2')
  await seeing('failed r2: the connection is closed')
  expect(transport.connections).toBe(0)
})

// RFC 3261 §18.2.2.
test('an answer whose connection is gone goes to the port of the Via by a new one', async () => {
  const peer = await answering()
  const { transport, flowTo } = await setUp()
  transport.send('SIP/2.0 200 OK', { ...flowTo(40_000, 99), returnPort: peer.port }, 'r1')
  const [socket] = (await emitted(peer.server, 'connection')) as [Socket]
  const [bytes] = await emitted(socket, 'data')
  expect(String(bytes)).toBe('SIP/2.0 200 OK')
})

test('messages to one address share a connection, also one that the peer opened', async () => {
  const accepted: Socket[] = []
  const texts: string[] = []
  const peer = await answering((socket) => {
    accepted.push(socket)
    socket.on('data', (bytes) => {
      texts.push(String(bytes))
      if (texts.join('') === 'onetwo') socket.write(options('back'))
    })
  })
  const { transport, seeing, dial, flows, flowTo } = await setUp()
  transport.send('one', flowTo(peer.port), 'r1')
  transport.send('two', flowTo(peer.port), 'r2')
  await seeing('message back on 1')
  expect(accepted).toHaveLength(1)

  const socket = dial()
  socket.write(options('c2'))
  await seeing('message c2 on 2')
  transport.send(
    'to the side that dialled',
    { ...(flows.at(-1) ?? flowTo(0)), connectionId: 0 },
    'r3',
  )
  const [bytes] = await emitted(socket, 'data')
  expect(String(bytes)).toBe('to the side that dialled')
})

test('every message to a peer that refuses the connection comes back, later', async () => {
  const { server, port } = await answering()
  server.close()
  await closed(server)
  const { transport, events, seeing, flowTo } = await setUp()
  transport.send('one', flowTo(port), 'r1')
  transport.send('two', flowTo(port), 'r2')
  transport.send('never', flowTo(70_000), 'r3')
  expect(events).toEqual([])
  await seeing('failed r1: ECONNREFUSED')
  await seeing('failed r2: ECONNREFUSED')
  await seeing('failed r3: ERR_SOCKET_BAD_PORT')
  expect(events).toHaveLength(3)
  expect(transport.connections).toBe(0)
})

test('a connection that is not made in time fails its messages', async () => {
  // A full backlog answers no SYN: the nearest thing to a silent host on loopback is a blackhole.
  const { transport, seeing, flowTo } = await setUp({ connectMs: 20 }, '0.0.0.0')
  transport.send('one', { ...flowTo(5060), address: '192.0.2.1' }, 'r1')
  await Promise.race([
    seeing('failed r1: ETIMEDOUT'),
    seeing('failed r1: ENETUNREACH'),
    seeing('failed r1: EHOSTUNREACH'),
    seeing('failed r1: ECONNREFUSED'),
  ])
  expect(transport.connections).toBe(0)
})

test('a peer that does not read makes sending fail at the bound', async () => {
  const peer = await answering((socket) => socket.pause())
  const { transport, events, flowTo } = await setUp({ maxBufferedBytes: 100_000 })
  const text = 'x'.repeat(50_000)
  for (let sent = 0; sent < 1_000 && events.length === 0; sent++) {
    transport.send(text, flowTo(peer.port), `r${sent}`)
    await new Promise(setImmediate)
  }
  expect(events[0]).toMatch(/^failed r\d+: the peer does not read$/)
})

test('a connection that says nothing, or nothing more, is closed', async () => {
  const { transport, dial, seeing } = await setUp({ messageMs: 20, idleMs: 40 })
  const silent = dial()
  const talking = dial()
  talking.write(options('c1'))
  await Promise.all([closed(silent.resume()), closed(talking.resume())])
  await seeing('closed 1')
  await seeing('closed 2')
  expect(transport.connections).toBe(0)
})

test('a message that drips for too long ends its connection, whatever came before it', async () => {
  const { dial, seeing, events } = await setUp({ messageMs: 300 })
  const socket = dial()
  socket.write(`${options('c1')}OPTIONS sip:a`)
  await seeing('message c1 on 1')
  const drip = setInterval(() => socket.write('a'), 10)
  await seeing('closed 1')
  clearInterval(drip)
  expect(events).toHaveLength(2)
})

test('connections beyond the limit are refused in both directions', async () => {
  const peer = await answering()
  const { transport, dial, seeing, flowTo } = await setUp({ maxConnections: 1 })
  const first = dial()
  first.write(options('c1'))
  await seeing('message c1 on 1')
  await closed(dial().resume())
  transport.send('x', flowTo(peer.port), 'r1')
  await seeing('failed r1: too many connections')
  expect(transport.connections).toBe(1)
})

test('a peer that asks whether we live and never reads fills no memory', async () => {
  const { dial, seeing } = await setUp()
  let written = 0
  const { write } = Socket.prototype
  const spied = vi.spyOn(Socket.prototype, 'write').mockImplementation(function (
    this: Socket,
    ...given: unknown[]
  ) {
    // Nothing leaves: no callback comes.
    if (given[0] === '\r\n') return (written += 1) < 0
    return Boolean(Reflect.apply(write, this, given))
  })
  onTestFinished(() => spied.mockRestore())
  dial().write(`${'\r\n\r\n'.repeat(1_000)}${options('c1')}`)
  await seeing('message c1 on 1')
  expect(written).toBe(16)
})

test('a message that no peer could read is not sent, and the connection stands for the others', async () => {
  const { transport, flows, seeing, dial } = await setUp()
  const socket = dial()
  socket.write(options('c1'))
  await seeing('message c1 on 1')
  const [flow] = flows
  if (!flow) throw new Error('no message')
  transport.send(`INFO sip:a SIP/2.0\r\nSubject: ${'ü'.repeat(33_000)}\r\n\r\n`, flow, 'r1')
  await seeing('failed r1: the message is too large')
  transport.send('SIP/2.0 200 OK', flow, 'r2')
  expect(String((await emitted(socket, 'data'))[0])).toBe('SIP/2.0 200 OK')
  expect(transport.connections).toBe(1)
})
