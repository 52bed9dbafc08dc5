/** The places that names may lead to, with a real DNS server. */
import { expect, onTestFinished, test } from 'vitest'
import { createSipServer } from '../../../engine/sip-server/index.ts'
import { DnsServer } from '../../support/dns-server.ts'
import { SipPeer } from '../../support/sip-peer.ts'
import { connectInProcess, responseTo } from '../../support/srf.ts'

test('a name does not lead to an address that it may not reach, by no record', async () => {
  const dns = await DnsServer.start()
  onTestFinished(() => dns.close())
  const server = createSipServer({
    listen: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }],
    secret: 'cymru',
    dnsServers: [dns.address],
    mayReach: (host, { address }) => host !== 'alias.example' || address !== '127.0.0.1',
  })
  await server.start()
  onTestFinished(() => server.stop())
  const { srf, close } = await connectInProcess(server)
  onTestFinished(close)
  const [listener] = server.listeners
  if (listener === undefined) throw new Error('no listener')
  const peer = await SipPeer.open(listener)
  onTestFinished(() => peer.close())
  const { port } = peer
  const ask = async (uri: string): Promise<number> =>
    (await responseTo(await srf.request(uri, { method: 'OPTIONS' }))).status
  const address = (name: string) => ({ type: 'A', name, ttl: 60, data: '127.0.0.1' }) as const
  const data = { priority: 1, weight: 10, port, target: 'node.example' }
  const srv = { type: 'SRV', name: '_sip._udp.alias.example', data } as const
  dns.serve(address('alias.example'), address('node.example'), srv)
  expect(await ask(`sip:b@alias.example:${port}`)).toBe(503)
  expect(await ask('sip:b@alias.example')).toBe(503)
  expect(peer.inbox).toEqual([])
  const answered = ask(`sip:b@node.example:${port}`)
  peer.reply(await peer.next('OPTIONS'), 200, { tag: 't' })
  expect(await answered).toBe(200)
})
