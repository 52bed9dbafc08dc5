import type { Log } from '../../../schema/contracts/log.ts'
import { UserAgent } from '../../call/user-agent/user-agent.ts'
import { createSipServer } from '../../sip-server/index.ts'
import type { World } from '../command.ts'

export interface Endpoint {
  readonly client: UserAgent
  readonly port: number
  stop(): Promise<void>
}

/**
 * One SIP endpoint of the demo on a free loopback port: an embedded server of its own with a user agent on it.
 */
export async function startEndpoint(
  world: World,
  log: Log,
  prepare: (client: UserAgent) => void,
  host = '127.0.0.1',
): Promise<Endpoint> {
  const secret = world.randomBytes(16).toString('hex')
  const server = createSipServer({
    listen: [{ protocol: 'udp', host, port: 0 }],
    secret,
    log,
  })
  await server.start()
  const client = new UserAgent(log)
  prepare(client)
  const open = server.connectApplication.bind(server)
  const connected = await client.connect({ kind: 'in-process', open, secret })
  const port = server.listeners[0]?.port
  if (connected.kind === 'refused' || port === undefined)
    throw new Error('a demo endpoint cannot connect to its SIP server')
  const stop = async () => {
    client.disconnect()
    await server.stop()
  }
  return { client, port, stop }
}
