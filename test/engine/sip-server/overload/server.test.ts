/** The measurement on real sockets. */
import { afterEach, expect, test, vi } from 'vitest'
import { createSipServer, type SipServer } from '../../../../engine/sip-server/index.ts'
import { SipPeer } from '../../../support/sip-peer.ts'

let server: SipServer

afterEach(() => server.stop())

test.each(['127.0.0.1', '0.0.0.0', '::1'])(
  'a server on %s measures its own delay',
  async (host) => {
    const seen: string[] = []
    server = createSipServer({
      listen: [{ protocol: 'udp', host, port: 0 }],
      secret: 'cymru',
      admit: (_source, packet) => seen.push(packet.toString()) > 0,
    })
    await server.start()
    // Never exactly none: what was heard has been under way.
    await vi.waitFor(() => expect(server.load.lagMs).toBeGreaterThan(0), { timeout: 5_000 })
    expect(server.load).toMatchObject({ share: 1, refused: 0 })
    expect(seen).toEqual([])
  },
)

test('as long as the process cannot keep up, new calls are refused, but not emergencies', async () => {
  const clock = { offsetMs: 0 }
  server = createSipServer({
    listen: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }],
    secret: 'cymru',
    now: () => performance.timeOrigin + performance.now() + clock.offsetMs,
    isUrgent: (uri) => uri.startsWith('sip:112@'),
  })
  await server.start()
  const [listener] = server.listeners
  if (listener === undefined) throw new Error('no listener')
  const peer = await SipPeer.open(listener)
  const share = (): number => {
    // Each turn of the loop takes a second, as far as the server can tell.
    clock.offsetMs += 1_000
    return server.load.share
  }
  await vi.waitFor(() => expect(share()).toBeLessThan(0.02), { timeout: 10_000, interval: 110 })
  peer.request('INVITE', peer.leg('sip:18005551212@127.0.0.1'))
  expect((await peer.next(503)).get('Retry-After')).toBe('1')
  expect(server.load.refused).toBe(1)
  for (const uri of ['sip:112@127.0.0.1', 'urn:service:sos.police']) {
    peer.request('INVITE', peer.leg(uri))
    // Nobody is connected who would take it.
    await peer.next((answer) => answer.status >= 300)
  }
  expect(server.load.refused).toBe(1)
  peer.close()
})
