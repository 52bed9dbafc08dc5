/**
 * The server from outside: its ports, the control messages of the drachtio protocol, its limits.
 */
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { createSipServer, ListenError, type SipServer } from '../../../engine/sip-server/index.ts'
import { encodeFrame, FrameReader } from '../../../engine/sip-server/wire/frame.ts'
import { SipPeer } from '../../support/sip-peer.ts'
import { closed, Signal } from '../../support/waiting.ts'

type Options = Partial<Parameters<typeof createSipServer>[0]>

async function start(options: Options = {}): Promise<SipServer> {
  const server = createSipServer({
    listen: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }],
    admin: { host: '127.0.0.1', port: 0 },
    secret: 'cymru',
    ...options,
  })
  await server.start()
  onTestFinished(() => server.stop())
  return server
}

/** An application as bytes: sends payloads, and takes answers in order. */
function application(server: SipServer) {
  const { host, port } = server.adminAddress ?? { host: '', port: 0 }
  const socket: Socket = connect(port, host)
  onTestFinished(() => void socket.destroy())
  const frames = new FrameReader()
  const payloads: string[] = []
  const arrived = new Signal()
  socket.on('error', () => undefined)
  socket.on('data', (chunk) => {
    payloads.push(...frames.push(chunk).payloads)
    arrived.fire()
  })
  return {
    socket,
    /** Sends one command and takes its answer, without the id of the server's message. */
    ask: async (payload: string): Promise<string> => {
      socket.write(encodeFrame(payload))
      await arrived.until(() => payloads.length > 0)
      return payloads.shift()?.replace(/^[^|]*\|/, '') ?? ''
    },
  }
}

test('an application that knows the secret is told every address and the version', async () => {
  const server = await start({
    listen: [
      { protocol: 'udp', host: '127.0.0.1', port: 0 },
      { protocol: 'tcp', host: '::1', port: 0 },
    ],
    advertisedHost: 'sip.example.net',
  })
  const [udp, tcp] = server.listeners.map(({ port }) => port)
  const answer = await application(server).ask('a1|authenticate|cymru|')
  expect(answer).toMatch(/^response\|a1\|OK\|/)
  const [, , , hostports, version, localHostports] = answer.split('|')
  expect(hostports).toBe(`udp/sip.example.net:${udp},tcp/sip.example.net:${tcp}`)
  expect(version).toMatch(/^v\d+\.\d+\.\d+/)
  expect(localHostports).toBe(`udp/127.0.0.1:${udp},tcp/[::1]:${tcp}`)
})

test('a wrong secret is answered NO, then the connection ends', async () => {
  const app = application(await start())
  expect(await app.ask('a1|authenticate|wrong|')).toBe('response|a1|NO|incorrect secret')
  await closed(app.socket)
})

test('a server without a secret lets no application in', async () => {
  const app = application(await start({ secret: undefined }))
  expect(await app.ask('a1|authenticate||')).toBe('response|a1|NO|incorrect secret')
  await closed(app.socket)
})

test.each(['a1|route|invite', 'a1|ping', 'a1|sip||\r\nOPTIONS sip:a SIP/2.0\r\n\r\n'])(
  'before authentication %j is refused',
  async (payload) => {
    const app = application(await start())
    expect(await app.ask(payload)).toMatch(/^response\|a1\|NO\|/)
    await closed(app.socket)
  },
)

test('ping, route and remove_route are answered; an unknown command ends the connection', async () => {
  const app = application(await start())
  await app.ask('a1|authenticate|cymru|')
  expect(await app.ask('a2|ping')).toBe('response|a2|OK|pong')
  expect(await app.ask('a3|route|invite')).toBe('response|a3|OK')
  expect(await app.ask('a4|remove_route|invite')).toBe('response|a4|OK')
  expect(await app.ask('a5|dance')).toMatch(/^response\|a5\|NO\|/)
  await closed(app.socket)
})

test('a message that is too long is NOK, and the connection goes on', async () => {
  const app = application(await start())
  await app.ask('a1|authenticate|cymru|')
  const answer = await app.ask(`a2|sip||\r\nINVITE sip:a@b SIP/2.0\r\n\r\n${'x'.repeat(300_000)}`)
  expect(answer).toBe('response|a2|NOK|a message of more than 262144 bytes')
  expect(await app.ask('a3|ping')).toBe('response|a3|OK|pong')
})

test('a command about a dialog or a transaction that does not exist is NOK, and nothing ends', async () => {
  const app = application(await start())
  await app.ask('a1|authenticate|cymru|')
  const bye = 'BYE sip:placeholder SIP/2.0\r\nContent-Length: 0\r\n\r\n'
  expect(await app.ask(`a2|sip||gone;from-tag=x\r\n${bye}`)).toMatch(
    /^response\|a2\|NOK\|.*unable to find dialog/,
  )
  const ok = 'SIP/2.0 200 OK\r\nContent-Length: 0\r\n\r\n'
  expect(await app.ask(`a3|sip|gone|\r\n${ok}`)).toMatch(/^response\|a3\|NOK\|/)
  const cancel = 'CANCEL sip:a SIP/2.0\r\n\r\n'
  expect(await app.ask(`a4|sip|gone|\r\n${cancel}`)).toMatch(/^response\|a4\|NOK\|/)
  expect(await app.ask('a5|sip||\r\nthis is not SIP')).toMatch(/^response\|a5\|NOK\|/)
  expect(await app.ask('a6|ping')).toBe('response|a6|OK|pong')
})

test('sources that are not admitted get no answer', async () => {
  const refused: number[] = []
  const server = await start({
    admit: (source) => {
      refused.push(source.port)
      return refused.length > 1
    },
  })
  const [listener] = server.listeners
  if (listener === undefined) throw new Error('no listener')
  const peer = await SipPeer.open(listener)
  onTestFinished(() => peer.close())
  peer.request('OPTIONS', peer.leg('sip:a@127.0.0.1'))
  peer.request('MESSAGE', peer.leg('sip:a@127.0.0.1'))
  await peer.next('503 MESSAGE')
  expect(peer.inbox).toEqual([])
  expect(refused).toEqual([peer.port, peer.port])
})

test('an address that is taken stops the start, and what was bound is released', async () => {
  const first = await start()
  const taken = first.adminAddress ?? { host: '', port: 0 }
  const second = createSipServer({
    listen: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }],
    admin: taken,
    secret: 'cymru',
  })
  await expect(second.start()).rejects.toThrow(ListenError)
  await expect(second.start()).rejects.toThrow(
    `cannot listen on admin/127.0.0.1:${taken.port}: EADDRINUSE`,
  )
})

test('stopping closes every connection and port, and may be repeated', async () => {
  const server = await start()
  const app = application(server)
  await app.ask('a1|authenticate|cymru|')
  const { port } = server.listeners[0] ?? { port: 0 }
  await Promise.all([closed(app.socket), server.stop()])
  await server.stop()
  const again = await start({ listen: [{ protocol: 'udp', host: '127.0.0.1', port }] })
  expect(again.listeners[0]?.port).toBe(port)
})
