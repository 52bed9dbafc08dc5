/** The measurement on real sockets. */
import { afterEach, expect, test } from 'vitest'
import { createSipServer, type SipServer } from '../../../engine/sip-server/index.ts'
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
