/** Next hops over real sockets: a DNS server, targets that are dead, and peers with and without TCP. */
import { once } from 'node:events'
import { createServer } from 'node:net'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createSipServer, type Listener, type SipServer } from '../../../engine/sip-server/index.ts'
import { DnsServer } from '../../support/dns-server.ts'
import { freePort } from '../../support/free-port.ts'
import { SipPeer } from '../../support/sip-peer.ts'
import { connectInProcess, type ConnectedSrf } from '../../support/srf.ts'
import { fastTimers } from '../../support/sip-rig.ts'

let dns: DnsServer
let server: SipServer
let app: ConnectedSrf
const peers: SipPeer[] = []

beforeEach(async () => {
  dns = await DnsServer.start()
  server = createSipServer({
    listen: [
      { protocol: 'udp', host: '127.0.0.1', port: 0 },
      { protocol: 'tcp', host: '127.0.0.1', port: 0 },
    ],
    secret: 'cymru',
    timers: fastTimers,
    dnsServers: [dns.address],
    mayReach: (host, { address: at }) => host !== 'alias.example' || at !== '127.0.0.1',
  })
  await server.start()
  app = await connectInProcess(server)
})

afterEach(async () => {
  for (const peer of peers.splice(0)) peer.close()
  app.close()
  await server.stop()
  dns.close()
})

async function peerBy(protocol: Listener['protocol'], port?: number): Promise<SipPeer> {
  const listener = server.listeners.find((each) => each.protocol === protocol)
  if (listener === undefined) throw new Error(`no listener for ${protocol}`)
  const peer = await SipPeer.open(listener, { port })
  peers.push(peer)
  return peer
}

const srv = (service: string, target: string, port: number, priority: number) => ({
  type: 'SRV' as const,
  name: `${service}.pbx.example`,
  data: { priority, weight: 10, port, target },
})

const address = (name: string, data: string) => ({ type: 'A' as const, name, ttl: 60, data })

/** Sends one OPTIONS; answers with the status of its final response. */
async function ask(uri: string, headers: Record<string, string> = {}): Promise<number> {
  const request = await app.srf.request(uri, { method: 'OPTIONS', headers })
  return new Promise((resolve) => {
    request.once('response', ({ status }: { status: number }) => resolve(status))
  })
}

test('NAPTR, SRV and A lead to the peer, by the transport that they say', async () => {
  const peer = await peerBy('tcp')
  dns.serve(
    {
      type: 'NAPTR',
      name: 'pbx.example',
      data: {
        order: 1,
        preference: 1,
        flags: 's',
        services: 'SIP+D2T',
        regexp: '',
        replacement: '_sip._tcp.pbx.example',
      },
    },
    srv('_sip._tcp', 'node.pbx.example', peer.port, 1),
    address('node.pbx.example', '127.0.0.1'),
  )
  const answered = ask('sip:b@pbx.example')
  const request = await peer.next('OPTIONS')
  expect(request.get('Via')).toMatch(/^SIP\/2\.0\/TCP /)
  peer.reply(request, 200, { tag: 't' })
  expect(await answered).toBe(200)
})

test('a dead target, a silent one and one that answers 503 are passed over, in this order', async () => {
  const [silent, refusing, alive] = await Promise.all([peerBy('udp'), peerBy('udp'), peerBy('udp')])
  dns.serve(
    // No listener of ours can send there.
    srv('_sip._udp', 'unknown.pbx.example', 5060, 1),
    srv('_sip._udp', 'node.pbx.example', silent.port, 2),
    srv('_sip._udp', 'node.pbx.example', refusing.port, 3),
    srv('_sip._udp', 'node.pbx.example', alive.port, 4),
    address('node.pbx.example', '127.0.0.1'),
  )
  const answered = ask('sip:b@pbx.example')
  const ignored = await silent.next('OPTIONS')
  const refused = await refusing.next('OPTIONS')
  refusing.reply(refused, 503, { tag: 'r' })
  const taken = await alive.next('OPTIONS')
  alive.reply(taken, 200, { tag: 'a' })
  expect(await answered).toBe(200)
  const branches = [ignored, refused, taken].map((message) => message.get('Via'))
  expect(new Set(branches).size).toBe(3)
  expect(new Set([ignored, refused, taken].map((message) => message.get('Call-ID'))).size).toBe(1)
})

test('a name does not lead to an address that it may not reach, by no record', async () => {
  const peer = await peerBy('udp')
  dns.serve(address('alias.example', '127.0.0.1'), address('node.pbx.example', '127.0.0.1'), {
    ...srv('_sip._udp', 'node.pbx.example', peer.port, 1),
    name: '_sip._udp.alias.example',
  })
  expect(await ask(`sip:b@alias.example:${peer.port}`)).toBe(503)
  expect(await ask('sip:b@alias.example')).toBe(503)
  expect(peer.inbox).toEqual([])
  const answered = ask(`sip:b@node.pbx.example:${peer.port}`)
  peer.reply(await peer.next('OPTIONS'), 200, { tag: 't' })
  expect(await answered).toBe(200)
})

test('a name of this machine works without a DNS server that knows it', async () => {
  const peer = await peerBy('udp')
  const answered = ask(`sip:b@localhost:${peer.port}`)
  const request = await peer.next('OPTIONS')
  peer.reply(request, 200, { tag: 't' })
  expect(await answered).toBe(200)
})

test('a large request goes by TCP where the peer has it', async () => {
  const peer = await peerBy('tcp')
  const answered = ask(`sip:b@127.0.0.1:${peer.port}`, { 'X-Filling': 'x'.repeat(1_300) })
  const request = await peer.next('OPTIONS')
  expect(request.get('Via')).toMatch(/^SIP\/2\.0\/TCP /)
  peer.reply(request, 200, { tag: 't' })
  expect(await answered).toBe(200)
})

test('a large request falls back to UDP where the peer has no TCP, which is remembered', async () => {
  const peer = await peerBy('udp', await freePort())
  const answered = async (): Promise<string> => {
    const status = ask(`sip:b@127.0.0.1:${peer.port}`, { 'X-Filling': 'x'.repeat(1_300) })
    const request = await peer.next('OPTIONS')
    peer.reply(request, 200, { tag: 't' })
    return `${await status} ${request.get('Via').slice(0, 11)}`
  }
  expect(await answered()).toBe('200 SIP/2.0/UDP')
  // It would be tried now, if its failure were forgotten.
  const late = createServer((socket) => socket.destroy()).listen(peer.port, '127.0.0.1')
  await once(late, 'listening')
  expect(await answered()).toBe('200 SIP/2.0/UDP')
  late.close()
})
