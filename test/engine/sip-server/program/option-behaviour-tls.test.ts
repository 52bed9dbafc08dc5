/**
 * The options of TLS from outside, as those of option-behaviour.test.ts: clients and servers of
 * `node:tls` on real sockets.
 */
import { readFileSync } from 'node:fs'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls'
import { expect, onTestFinished, test } from 'vitest'
import { Authority, loopbackNames, type Certificate } from '../../../support/certificates.ts'
import { requestOf } from '../../../support/sip-core.ts'
import { sdp, SipPeer } from '../../../support/sip-peer.ts'
import { SipServerProgram } from '../../../support/sip-server-program.ts'
import { connectByTcp } from '../../../support/srf.ts'
import { temporaryFolder } from '../../../support/temporary-folder.ts'
import { emitted } from '../../../support/waiting.ts'

const authority = new Authority(temporaryFolder())
const own = authority.sign('server', ...loopbackNames)
const client = authority.sign('client', ...loopbackNames)
const ca = readFileSync(authority.file)

const base =
  '--contact sips:127.0.0.1:0;transport=tls --admin 127.0.0.1:0 --secret cymru ' +
  `--key-file ${own.keyFile} --cert-file ${own.certFile}`

const start = (more = '', environment: Readonly<Record<string, string>> = {}) =>
  SipServerProgram.start(`${base} ${more}`, { environment })

const pemOf = ({ certFile, keyFile }: Certificate) => ({
  cert: readFileSync(certFile),
  key: readFileSync(keyFile),
})

/**
 * How a client fares: undefined, it is refused; else what was agreed, and the answer to its
 * request.
 */
async function served(port: number, options: ConnectionOptions = {}) {
  const socket: TLSSocket = connect({ host: '127.0.0.1', port, ca, ...options })
  onTestFinished(() => void socket.destroy())
  socket.on('error', () => undefined)
  socket.write(requestOf('OPTIONS', { via: 'SIP/2.0/TLS 127.0.0.1;branch=z9hG4bK1' }))
  const answer = await new Promise<string>((resolve) => {
    socket.once('data', (bytes: Buffer) => resolve(bytes.toString().split('\r\n', 1)[0] ?? ''))
    socket.once('close', () => resolve(''))
  })
  if (answer === '') return undefined
  const { standardName } = socket.getCipher()
  const chain = socket.getPeerCertificate(true)
  return { answer, cipher: standardName, version: socket.getProtocol(), chain }
}

const taken = expect.objectContaining({ answer: 'SIP/2.0 503 Service Unavailable' })

test('keyFile, certFile, chainFile: what the server shows', async () => {
  const plain = await served((await start()).port('tls'))
  expect(plain).toEqual(taken)
  expect(plain?.chain.subject.CN).toBe('server')
  const chained = await start(`--chain-file ${authority.file}`)
  // Without its authority a client sees the rest of the chain only where the server sends it.
  const seen = await served(chained.port('tls'), { ca: [], rejectUnauthorized: false })
  expect(seen?.chain.issuerCertificate?.subject.CN).toBe('authority')
  const single = await served((await start()).port('tls'), { ca: [], rejectUnauthorized: false })
  expect(single?.chain.issuerCertificate?.subject?.CN).not.toBe('authority')
})

test('minTlsVersion: older ones are refused', async () => {
  const port = (await start('--min-tls-version 1.3')).port('tls')
  expect(await served(port, { maxVersion: 'TLSv1.2' })).toBeUndefined()
  expect(await served(port)).toMatchObject({ version: 'TLSv1.3' })
  const lax = (await start('--min-tls-version 1.0')).port('tls')
  expect(await served(lax, { maxVersion: 'TLSv1.2' })).toMatchObject({ version: 'TLSv1.2' })
  const weak = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'ALL@SECLEVEL=0' } as const
  expect(await served(lax, weak)).toBeUndefined()
})

test('ciphers: a client with none of the list is refused, one with one is served', async () => {
  const [allowed, forbidden] = ['ECDHE-ECDSA-AES256-GCM-SHA384', 'ECDHE-ECDSA-AES128-GCM-SHA256']
  const port = (await start(`--tls-cipherlist ${allowed}`)).port('tls')
  const by = (ciphers: string) => served(port, { ciphers, maxVersion: 'TLSv1.2' })
  expect(await by(forbidden)).toBeUndefined()
  expect(await by(allowed)).toMatchObject({ cipher: 'TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384' })
  // Suites of TLS 1.3 are another list of OpenSSL: it is spoken all the same, unless the list names
  // some.
  const modern = { minVersion: 'TLSv1.3', ciphers: 'TLS_AES_128_GCM_SHA256' } as const
  expect(await served(port, modern)).toMatchObject({ cipher: 'TLS_AES_128_GCM_SHA256' })
  const named = await start(`--tls-cipherlist TLS_AES_256_GCM_SHA384:${allowed}`)
  expect(await served(named.port('tls'), modern)).toBeUndefined()
  expect(await served(named.port('tls'))).toMatchObject({ cipher: 'TLS_AES_256_GCM_SHA384' })
})

test('caFile, verifiesClients, clientCertificates: who must show a certificate of the authority', async () => {
  const settings = [
    { DRACHTIO_TLS_VERIFY_CLIENT_CERT: 'true' },
    { SIP_TLS_CLIENT_CERTIFICATES: 'required' },
  ]
  for (const environment of settings) {
    const port = (await start(`--ca ${authority.file}`, environment)).port('tls')
    expect(await served(port)).toBeUndefined()
    expect(await served(port, pemOf(client))).toEqual(taken)
    const stranger = new Authority(temporaryFolder(), 'other').sign('stranger', ...loopbackNames)
    expect(await served(port, pemOf(stranger))).toBeUndefined()
  }
})

test('verifiesServers: whether a server that is called must be known', async () => {
  const stranger = new Authority(temporaryFolder(), 'other').sign('stranger', ...loopbackNames)
  const call = async (environment: Readonly<Record<string, string>>) => {
    const program = await start('', environment)
    const place = { address: '127.0.0.1', advertisedHost: '127.0.0.1', port: 0, advertisedPort: 0 }
    const peer = await SipPeer.open({ protocol: 'tls', ...place }, { tls: pemOf(stranger) })
    onTestFinished(() => peer.close())
    const app = await connectByTcp(program)
    onTestFinished(() => app.close())
    return { peer, calling: app.srf.createUAC(peer.uri, { localSdp: sdp('app') }) }
  }
  const lax = await call({ SIP_TLS_VERIFY: 'off' })
  lax.peer.reply(await lax.peer.next('INVITE'), 486, { tag: 'b' })
  await expect(lax.calling).rejects.toMatchObject({ status: 486 })
  const strict = await call({})
  await expect(strict.calling).rejects.toMatchObject({ status: 503 })
  expect(strict.peer.inbox).toEqual([])
})

test('tlsPort, adminTls: applications by TLS', async () => {
  const byPlace = await start('--admin-tls 127.0.0.1:0')
  const socket = connect({ host: '127.0.0.1', port: byPlace.place('admin-tls').port, ca })
  onTestFinished(() => void socket.destroy())
  socket.write('20#a|authenticate|cymru')
  const [answer] = await emitted(socket, 'data')
  expect(String(answer)).toContain('|response|a|OK|')
  const { port } = byPlace.place('admin-tls')
  await byPlace.stop()
  const byPort = await start(`--address 127.0.0.1 --tls-port ${port}`)
  expect(byPort.place('admin-tls')).toEqual({ host: '127.0.0.1', port })
})

test('handlerVerifies: whether the certificate of a request handler counts', async () => {
  const https = createHttpsServer(pemOf(own), (_question, response) => {
    response.end('{"action": "reject", "data": {"status": 486}}')
  })
  https.listen(0, '127.0.0.1')
  await emitted(https, 'listening')
  onTestFinished(() => void https.close())
  const { port } = https.address() as AddressInfo
  const ask = async (attribute: string): Promise<number> => {
    const handler = `<request-handler ${attribute}>https://127.0.0.1:${port}</request-handler>`
    const files = {
      'd.xml': `<drachtio><request-handlers>${handler}</request-handlers></drachtio>`,
    }
    const words = '-f d.xml --contact sip:127.0.0.1:0;transport=udp --admin 127.0.0.1:0 --secret s'
    const program = await SipServerProgram.start(words, { files })
    const peer = await program.peer()
    peer.request('OPTIONS', peer.leg(program.uri('a')))
    return (await peer.next(({ status }) => status > 199)).status
  }
  expect([await ask('verify-peer="true"'), await ask('verify-peer="false"')]).toEqual([500, 486])
})
