/** What Homer gets of a server: each message of each transport, both ways. */
import { expect, onTestFinished, test } from 'vitest'
import { createSipServer } from '../../../../engine/sip-server/index.ts'
import { datagramSink } from '../../../support/datagram-sink.ts'
import { SipPeer } from '../../../support/sip-peer.ts'

test.each(['udp', 'tcp'] as const)(
  'a request by %s and its answer are copied',
  async (protocol) => {
    const homer = await datagramSink()
    const server = createSipServer({
      listen: [{ protocol, host: '127.0.0.1', port: 0 }],
      capture: { host: '127.0.0.1', port: homer.port, agentId: 7 },
      secret: 's',
    })
    await server.start()
    onTestFinished(() => server.stop())
    const [listener] = server.listeners
    if (listener === undefined) throw new Error('no listener')
    const peer = await SipPeer.open(listener)
    onTestFinished(() => peer.close())
    await expect
      .poll(async () => {
        peer.request('OPTIONS', peer.leg(`sip:a@127.0.0.1:${listener.port}`))
        await peer.next('503 OPTIONS')
        return homer.received.map(
          (packet) => / ?(OPTIONS|SIP\/2\.0 503) /.exec(packet.toString('latin1'))?.[1],
        )
      })
      .toEqual(expect.arrayContaining(['OPTIONS', 'SIP/2.0 503']))
  },
)
