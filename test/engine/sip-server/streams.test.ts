/** Streams and WebSockets from outside, through the whole server to an application and back. */
import { connect, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { createSipServer, type SipServer } from '../../../engine/sip-server/index.ts'
import { connectInProcess } from '../../support/srf.ts'
import { closed, emitted } from '../../support/waiting.ts'

const cleanUp: (() => unknown)[] = []
afterEach(async () => {
  for (const step of cleanUp.splice(0)) await step()
})

type Options = Parameters<typeof createSipServer>[0]

async function start(protocol: 'tcp' | 'ws', options: Partial<Options> = {}) {
  const server: SipServer = createSipServer({
    listen: [{ protocol, host: '127.0.0.1', port: 0 }],
    secret: 'cymru',
    ...options,
  })
  await server.start()
  cleanUp.push(() => server.stop())
  return { server, port: server.listeners[0]?.port ?? 0 }
}

function dial(port: number): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.on('error', () => undefined)
  cleanUp.unshift(() => socket.destroy())
  return socket
}

const request = (lines: readonly string[], transport = 'TCP'): string =>
  [
    'MESSAGE sip:a@example.com SIP/2.0',
    `Via: SIP/2.0/${transport} y2.invalid;branch=z9hG4bKa1`,
    'Max-Forwards: 70',
    'From: <sip:b@example.com>;tag=f1',
    'To: <sip:a@example.com>',
    'Call-ID: c1',
    'CSeq: 1 MESSAGE',
    ...lines,
    '',
    '',
  ].join('\r\n')

/** Everything up to the end of the connection. */
async function untilClosed(socket: Socket): Promise<string> {
  let got = ''
  socket.on('data', (bytes) => (got += bytes.toString()))
  await closed(socket)
  return got
}

test.each([
  ['no Content-Length', [], '400 Missing Content-Length Header'],
  ['a Content-Length that is no number', ['Content-Length: lots'], '400 Bad Content-Length Header'],
  ['a body that is too large', ['Content-Length: 70000'], '413 Request Entity Too Large'],
])('a stream with %s is told so, and closed', async (_what, lines, answer) => {
  const { port } = await start('tcp')
  const socket = dial(port)
  socket.write(request(lines))
  expect(await untilClosed(socket)).toMatch(new RegExp(`^SIP/2.0 ${answer}\r\n`))
})

test('a message on a stream that is not admitted is dropped, and the next one heard', async () => {
  const { port } = await start('tcp', { admit: (_source, packet) => !packet.includes('bad') })
  const socket = dial(port)
  socket.write(request(['Subject: bad', 'Content-Length: 0']))
  socket.write(request(['Subject: good', 'Content-Length: 0']))
  const [bytes] = await emitted(socket, 'data')
  expect(String(bytes).match(/SIP\/2\.0 503/g)).toHaveLength(1)
})

test('by WebSocket an application learns where a request came from, and answers on that socket', async () => {
  const { server, port } = await start('ws')
  const seen: string[] = []
  const app = await connectInProcess(server, {}, (srf) => {
    srf.message((req, res) => {
      seen.push(`${req.protocol} ${req.source_address} ${req.source_port} ${req.get('Via')}`)
      res.send(200)
    })
  })
  cleanUp.unshift(() => app.close())
  const socket = new WebSocket(`ws://127.0.0.1:${port}`, 'sip')
  cleanUp.unshift(() => socket.terminate())
  let remotePort: number | undefined
  socket.on('upgrade', ({ socket: { localPort } }) => (remotePort = localPort))
  await emitted(socket, 'open')
  // RFC 7118 §5: no Content-Length is needed.
  socket.send(request([], 'WS'))
  const [answer] = await emitted(socket, 'message')
  expect(String(answer)).toMatch(/^SIP\/2\.0 200 OK\r\n/)
  expect(seen).toEqual([
    `ws 127.0.0.1 ${remotePort} SIP/2.0/WS y2.invalid;branch=z9hG4bKa1;received=127.0.0.1`,
  ])
})
