import { copyFileSync, readFileSync } from 'node:fs'
import { connect as connectPlain, type Socket } from 'node:net'
import { join } from 'node:path'
import {
  connect,
  createServer,
  type ConnectionOptions,
  type Server,
  type TLSSocket,
} from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import type { Flow } from '../../../../engine/sip-server/flow.ts'
import type { TlsOptions } from '../../../../engine/sip-server/options.ts'
import { defaultStreamLimits } from '../../../../engine/sip-server/transport/sources.ts'
import { Credentials } from '../../../../engine/sip-server/transport/credentials.ts'
import { openTls } from '../../../../engine/sip-server/transport/tls.ts'
import { Authority, loopbackNames, type Certificate } from '../../../support/certificates.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import { watchTransport } from '../../../support/transport-watch.ts'
import { emitted, Signal } from '../../../support/waiting.ts'

const folder = temporaryFolder()
const authority = new Authority(folder)
const own = authority.sign('own', ...loopbackNames)
const carrier = authority.sign('carrier', 'DNS:sip.carrier.example', ...loopbackNames)
const stranger = new Authority(folder, 'unknown-authority').sign('stranger', ...loopbackNames)

/** The certificates live for two days: a time at which that is not soon over. */
const longAgo = () => Date.now() - 30 * 24 * 3_600_000

const options = (id: string, viaParams = ''): string =>
  `OPTIONS sip:a SIP/2.0\r\nVia: SIP/2.0/TLS 127.0.0.1:5071;branch=z9hG4bK1${viaParams}\r\n` +
  `Call-ID: ${id}\r\nContent-Length: 0\r\n\r\n`

interface SetUp extends Partial<TlsOptions> {
  readonly limits?: Partial<typeof defaultStreamLimits>
  readonly host?: string
  readonly accepts?: (source: Flow) => boolean
}

async function setUp({ limits, host = '127.0.0.1', accepts = () => true, ...tls }: SetUp = {}) {
  const { callbacks, ...seen } = watchTransport(accepts)
  const log = (_level: string, message: string, fields: Readonly<Record<string, unknown>> = {}) =>
    seen.saw(`log ${message}: ${String(fields['reason'])}`)
  const credentials = new Credentials({ ...own, caFile: authority.file, ...tls }, log, longAgo)
  onTestFinished(() => credentials.stop())
  let lastId = 0
  const transport = await openTls(
    {
      host,
      port: 0,
      advertisedHost: undefined,
      credentials,
      log,
      limits: { ...defaultStreamLimits, ...limits },
      nextConnectionId: () => ++lastId,
    },
    callbacks,
  )
  onTestFinished(() => transport.stop())
  const { port } = transport.listener
  const dial = (settings: ConnectionOptions = {}): TLSSocket => {
    const ca = readFileSync(authority.file)
    const socket = connect({ host, port, ca, ...settings })
    socket.on('error', () => undefined)
    onTestFinished(() => void socket.destroy())
    return socket
  }
  const flowTo = (port: number, hostName?: string): Flow => ({
    listener: transport.listener,
    address: host,
    port,
    connectionId: 0,
    ...(hostName === undefined ? {} : { hostName }),
  })
  return { ...seen, transport, credentials, dial, flowTo, port }
}

const pemOf = ({ certFile, keyFile }: Certificate) => ({
  cert: readFileSync(certFile),
  key: readFileSync(keyFile),
})

/** A peer that is connected to. */
async function answering(certificate: Certificate, settings: object = {}) {
  const accepted: TLSSocket[] = []
  const texts: string[] = []
  const got = new Signal()
  const server: Server = createServer({ ...pemOf(certificate), ...settings }, (socket) => {
    accepted.push(socket)
    socket.on('error', () => undefined)
    socket.on('data', (bytes) => {
      texts.push(String(bytes))
      got.fire()
    })
  }).listen(0, '127.0.0.1')
  server.on('tlsClientError', () => undefined)
  await emitted(server, 'listening')
  onTestFinished(() => {
    for (const socket of accepted) socket.destroy()
    server.close()
  })
  const address = server.address()
  const port = address !== null && typeof address === 'object' ? address.port : 0
  return { accepted, texts, port, receiving: (n: number) => got.until(() => texts.length >= n) }
}

test('a request by TLS is answered on its connection, and a double line break with one', async () => {
  const { transport, flows, seeing, dial } = await setUp()
  const socket = dial()
  socket.write(options('c1'))
  await seeing('message c1 on 1')
  const [flow] = flows
  expect(flow?.listener.protocol).toBe('tls')
  if (flow) transport.send('SIP/2.0 200 grüße', flow, 'r1')
  expect(String((await emitted(socket, 'data'))[0])).toBe('SIP/2.0 200 grüße')
  socket.write('\r\n\r\n')
  expect(String((await emitted(socket, 'data'))[0])).toBe('\r\n')
  socket.destroy()
  await seeing('closed 1')
  await expect.poll(() => transport.connections).toBe(0)
})

/** `emitted` would take the alert before it for a failure. */
const closed = (socket: Socket): Promise<void> =>
  new Promise((resolve) => void socket.resume().on('close', () => resolve()))

test('a server is told the name it is asked for, and must show it', async () => {
  const names: unknown[] = []
  const peer = await answering(carrier, {
    SNICallback: (name: string, done: (error: null) => void) => {
      names.push(name)
      done(null)
    },
  })
  const { transport, flowTo, seeing, seeingSome } = await setUp()
  transport.send('one', flowTo(peer.port, 'sip.carrier.example'), 'r1')
  await peer.receiving(1)
  expect(names).toEqual(['sip.carrier.example'])
  transport.send('two', flowTo(peer.port, 'sip.other.example'), 'r2')
  await seeing('failed r2: ERR_TLS_CERT_ALTNAME_INVALID')
  await seeingSome(/^log no TLS connection can be made: ERR_TLS_CERT_ALTNAME_INVALID/)
  expect(peer.texts).toEqual(['one'])
})

test('messages to one name share a connection; another name at the same address gets its own', async () => {
  const peer = await answering(carrier)
  const { transport, flowTo } = await setUp()
  transport.send('one', flowTo(peer.port, 'sip.carrier.example'), 'r1')
  transport.send('two', flowTo(peer.port, 'SIP.carrier.example'), 'r2')
  await expect.poll(() => peer.texts.join('')).toBe('onetwo')
  expect(peer.accepted).toHaveLength(1)
  transport.send('three', flowTo(peer.port, 'localhost'), 'r3')
  await expect.poll(() => peer.accepted.length).toBe(2)
})

// RFC 5923 §5: what the Via offers counts for a peer that has proved its name, and of no other.
test('an alias is used for requests to a peer that has proved to be the one', async () => {
  const { transport, dial, seeing, flowTo } = await setUp({ clientCertificates: 'optional' })
  const socket = dial(pemOf(carrier))
  socket.write(options('c1', ';alias'))
  await seeing('message c1 on 1')
  transport.send('by name', flowTo(5_071, 'sip.carrier.example'), 'r1')
  expect(String((await emitted(socket, 'data'))[0])).toBe('by name')
  transport.send('by address', flowTo(5_071), 'r2')
  expect(String((await emitted(socket, 'data'))[0])).toBe('by address')
  transport.send('for another', flowTo(5_071, 'sip.other.example'), 'r3')
  await seeing('failed r3: ECONNREFUSED')
})

test.each([
  ['without a certificate', {}],
  ['with one that no CA vouches for', pemOf(stranger)],
])('an alias of a peer %s is not used', async (_what, shown) => {
  const { transport, dial, seeing, flowTo } = await setUp({ clientCertificates: 'optional' })
  dial(shown).write(options('c1', ';alias'))
  await seeing('message c1 on 1')
  transport.send('x', flowTo(5_071), 'r1')
  await seeing('failed r1: ECONNREFUSED')
})

test('an unproved connection is not used for a name, though it comes from the right address', async () => {
  const { transport, dial, seeing, flowTo, flows } = await setUp()
  const socket = dial()
  socket.write(options('c1'))
  await seeing('message c1 on 1')
  const port = flows[0]?.port ?? 0
  transport.send('by address', flowTo(port), 'r1')
  expect(String((await emitted(socket, 'data'))[0])).toBe('by address')
  transport.send('by name', flowTo(port, 'sip.carrier.example'), 'r2')
  await seeing('failed r2: ECONNREFUSED')
})

test('a handshake that is not finished in time is ended, and holds no place', async () => {
  const { transport, port } = await setUp({ limits: { handshakeMs: 30 } })
  const socket = connectPlain(port, '127.0.0.1')
  socket.on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  await closed(socket)
  await expect.poll(() => transport.connections).toBe(0)
})

test('a source that is not welcome gets no handshake', async () => {
  const asked: string[] = []
  const { dial } = await setUp({
    accepts: ({ address }) => {
      asked.push(address)
      return false
    },
  })
  let hasShaken = false
  await closed(dial().on('secureConnect', () => (hasShaken = true)))
  expect(hasShaken).toBe(false)
  expect(asked).toEqual(['127.0.0.1'])
})

test.each([
  [-30, undefined],
  [1, 'the certificate expires soon'],
  [3, 'the certificate has expired'],
])('%i days from now the log says: %s', (days, message) => {
  const said: string[] = []
  const now = () => Date.now() + days * 24 * 3_600_000
  new Credentials(own, (level, text) => void said.push(`${level} ${text}`), now).stop()
  expect(said).toEqual(message === undefined ? [] : [`warn ${message}`])
})

test('a file that changes is read again by itself', async () => {
  const files = { certFile: join(folder, 'watched.pem'), keyFile: join(folder, 'watched.key') }
  const install = ({ certFile, keyFile }: Certificate) => {
    copyFileSync(keyFile, files.keyFile)
    copyFileSync(certFile, files.certFile)
  }
  install(own)
  const credentials = new Credentials(files, () => undefined, longAgo, 10)
  onTestFinished(() => credentials.stop())
  let isRead = false
  credentials.onChange(() => (isRead = true))
  // Written again and again: what is there when the watch begins is no change.
  const write = () => {
    install(carrier)
    return isRead
  }
  await expect.poll(write).toBe(true)
  expect(credentials.settings.cert).toBe(readFileSync(carrier.certFile, 'utf8'))
})

test.each([
  ['certFile', 'missing.pem', 'ENOENT'],
  ['certFile', 'own.key', 'no start line'],
  ['keyFile', 'carrier.key', 'key values mismatch'],
  ['caFile', 'own.key', 'no start line'],
  ['chainFile', 'missing.pem', 'ENOENT'],
])('%s=%s is refused with its name and the reason', (option, name, reason) => {
  const file = join(folder, name)
  expect(() => new Credentials({ ...own, [option]: file }, () => undefined, longAgo)).toThrow(
    new RegExp(`^cannot use ${file} for TLS: .*${reason}`),
  )
})
