/** Nodes and gateways of the demo and of `test-pbx`: applications of drachtio-srf (examples/). */
import brokenCarrier from '../examples/broken-carrier.ts'
import testPbx from '../examples/test-pbx.ts'
import type Srf from 'drachtio-srf'
import { UserAgent } from './call/user-agent/user-agent.ts'
import type { Endpoint } from './endpoint.ts'
import type { Log } from '../schema/contracts/log.ts'
import {
  type ApplicationFunction,
  serveApplication,
} from './hooks/application/start-application.ts'

interface PlaceOfNode {
  readonly host: string
  /** 0: a free one. */
  readonly port: number
}

interface NodeWorld {
  readonly randomBytes: (size: number) => Buffer
}

const anyPort: PlaceOfNode = { host: '127.0.0.1', port: 0 }

/** @throws {ListenError} the address cannot be bound. */
export const startPbxNode = (
  world: NodeWorld,
  log: Log,
  place: PlaceOfNode = anyPort,
): Promise<Endpoint> => start(testPbx, world, log, place)

/**
 * `onRefused`: it has refused one more call.
 *
 * @throws {ListenError} the address cannot be bound.
 */
export const startBrokenCarrier = (
  world: NodeWorld,
  log: Log,
  place: PlaceOfNode,
  onRefused: () => void,
): Promise<Endpoint> => start((srf: Srf) => brokenCarrier(srf, onRefused), world, log, place)

async function start(
  application: ApplicationFunction,
  { randomBytes }: NodeWorld,
  log: Log,
  { host, port: wanted }: PlaceOfNode,
): Promise<Endpoint> {
  const { port, createPort, stop } = await serveApplication(application, {
    listen: { protocol: 'udp', host, port: wanted },
    randomSecret: () => randomBytes(24).toString('base64url'),
    log,
  })
  const client = new UserAgent({ port: createPort(), log })
  await client.connect()
  return {
    client,
    port,
    uri: `sip:${host}:${port};transport=udp`,
    stop: () => {
      client.disconnect()
      return stop()
    },
  }
}
