/** What names may lead to, with a real DNS server. */
import { afterEach, beforeEach, expect, test } from 'vitest'
import { createSipServer, type Listener, type SipServer } from '../../../engine/sip-server/index.ts'
import { DnsServer } from '../../support/dns-server.ts'
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
