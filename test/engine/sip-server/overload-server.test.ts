/** The measurement on real sockets. */
import { afterEach, expect, test } from 'vitest'
import { createSipServer, type SipServer } from '../../../engine/sip-server/index.ts'
import { type PeerMessage, SipPeer } from '../../support/sip-peer.ts'
import { eventually } from '../../support/waiting.ts'

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
    await eventually(() => expect(server.load.lagMs).toBeGreaterThan(0))
    expect(server.load).toMatchObject({ share: 1, refused: 0 })
    expect(seen).toEqual([])
  },
)

test('as long as the process cannot keep up, new calls are refused, but not emergencies', async () => {
  server = createSipServer({
    listen: [{ protocol: 'udp', host: '127.0.0.1', port: 0 }],
    secret: 'cymru',
    isUrgent: (uri) => uri.startsWith('sip:112@'),
  })
  const startedAt = performance.now()
  await server.start()
  const [listener] = server.listeners
  if (listener === undefined) throw new Error('no listener')
  const peer = await SipPeer.open(listener)
  const work = setInterval(busy, 0)
  try {
    await eventually(() => expect(server.load.share).toBeLessThan(0.6))
    // Code that has just been loaded is slow at first.
    expect(performance.now() - startedAt).toBeGreaterThan(5_000)
    // No application takes a call that is let in: such calls hear of 5 seconds.
    const refusals = async (uri: string): Promise<number> => {
      for (let i = 0; i < 40; i++) peer.request('INVITE', peer.leg(uri))
      const answers: PeerMessage[] = []
      for (let i = 0; i < 40; i++) answers.push(await peer.next((answer) => answer.status >= 300))
      return answers.filter((answer) => answer.get('Retry-After') === '1').length
    }
    expect(await refusals('sip:112@127.0.0.1')).toBe(0)
    expect(await refusals('urn:service:sos.police')).toBe(0)
    const refused = await refusals('sip:18005551212@127.0.0.1')
    expect(refused).toBeGreaterThan(0)
    expect(server.load.refused).toBe(refused)
  } finally {
    clearInterval(work)
    peer.close()
  }
})

/** Work of other parts of the process: a turn of the loop takes 300 ms. */
function busy(): void {
  const end = performance.now() + 300
  while (performance.now() < end) crypto.randomUUID()
}
