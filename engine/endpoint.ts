/**
 * SIP endpoints of our own on loopback: the caller of the demo, and the phone of a test call.
 */
import type { Log } from '../schema/contracts/log.ts'
import { createSipServer } from './sip-server/index.ts'
import { UserAgent } from './call/user-agent/user-agent.ts'

export interface Endpoint {
  readonly client: UserAgent
  readonly port: number
  /** Where it is called. */
  readonly uri: string
  stop(): Promise<void>
}

export interface EndpointListener {
  readonly protocol: 'udp' | 'tcp'
  readonly host: string
  /** Absent: a free one. */
  readonly port?: number
}

const onLoopback: EndpointListener = { protocol: 'udp', host: '127.0.0.1' }

/**
 * An embedded SIP server of its own, with a user agent on it. `prepare` sets the handlers of
 * requests.
 *
 * @throws {ListenError} the address cannot be bound.
 */
export async function startEndpoint(
  log: Log,
  prepare: (client: UserAgent) => void,
  { protocol, host, port: wanted = 0 } = onLoopback,
): Promise<Endpoint> {
  const server = createSipServer({ listen: [{ protocol, host, port: wanted }], log })
  await server.start()
  const client = new UserAgent({ port: server.createPort(), log })
  prepare(client)
  const connected = await client.connect()
  const port = server.listeners[0]?.port
  if (connected.kind === 'refused' || port === undefined)
    throw new Error('an endpoint cannot connect to its SIP server')
  const stop = async () => {
    client.disconnect()
    await server.stop()
  }
  const place = `${host.includes(':') ? `[${host}]` : host}:${port}`
  return { client, port, uri: `sip:${place};transport=${protocol}`, stop }
}

/** The session description of an endpoint that would talk G.711; nothing is ever sent. */
export const silentAudio = [
  'v=0',
  'o=- 1 1 IN IP4 127.0.0.1',
  's=-',
  'c=IN IP4 127.0.0.1',
  't=0 0',
  'm=audio 40000 RTP/AVP 0',
  'a=rtpmap:0 PCMU/8000',
  '',
].join('\r\n')

/** A phone that is picked up at once. */
export const startTestPhone = (log: Log, listener: EndpointListener): Promise<Endpoint> =>
  startEndpoint(
    log,
    (client) =>
      client.handle('INVITE', (request) =>
        client.accept(request, { body: silentAudio, headers: {} }, () => undefined),
      ),
    listener,
  )
