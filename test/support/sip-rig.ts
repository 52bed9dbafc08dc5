/** A running SIP server with drachtio-srf on one side and scripted peers on the other. */
import { createSipServer, type SipServer } from '../../engine/sip-server/index.ts'
import { SipPeer } from './sip-peer.ts'
import { connectByTcp, connectInProcess, type ConnectedSrf, type Srf } from './srf.ts'

export interface Variant {
  readonly app: 'tcp' | 'in process'
  readonly sip: 'udp' | 'tcp'
}

/** Each guarantee holds for both ways to connect an application and for both SIP transports. */
export const variants: readonly Variant[] = [
  { app: 'tcp', sip: 'udp' },
  { app: 'tcp', sip: 'tcp' },
  { app: 'in process', sip: 'udp' },
  { app: 'in process', sip: 'tcp' },
]

export interface Rig {
  readonly server: SipServer
  readonly srf: Srf
  readonly app: ConnectedSrf
  /** Where a peer sends to: `sip:` URI of the server. */
  readonly uri: (user: string) => string
  readonly peer: () => Promise<SipPeer>
  /** One more application, connected in the same way. */
  readonly connect: (prepare?: (srf: Srf) => void) => Promise<ConnectedSrf>
  /** Ends everything. Throws when the server has logged an error. */
  readonly stop: () => Promise<void>
}

/**
 * Short, so that the whole life of a transaction takes 64·T1 = 640 ms; long enough that a busy
 * machine that stands still for half of that does not make a silent peer of itself.
 */
export const fastTimers = { t1Ms: 10, t2Ms: 80, t4Ms: 50, applicationMs: 3_000 }

/** @param prepare registers handlers before the application connects */
export async function startRig(
  variant: Variant,
  prepare: (srf: Srf) => void = () => undefined,
  timers: Partial<typeof fastTimers> = {},
  minSessionSeconds = 90,
): Promise<Rig> {
  const errors: string[] = []
  const server = createSipServer({
    listen: [{ protocol: variant.sip, host: '127.0.0.1', port: 0 }],
    admin: { host: '127.0.0.1', port: 0 },
    secret: 'cymru',
    timers,
    graceMs: 50,
    minSessionSeconds,
    log: (level, message, fields) => {
      if (level === 'error') errors.push(`${message} ${JSON.stringify(fields)}`)
    },
  })
  await server.start()
  const connector = variant.app === 'tcp' ? connectByTcp : connectInProcess
  const apps: ConnectedSrf[] = []
  const connect = async (prepareOther?: (srf: Srf) => void): Promise<ConnectedSrf> => {
    const app = await connector(server, {}, prepareOther)
    apps.push(app)
    return app
  }
  const app = await connect(prepare)
  const peers: SipPeer[] = []
  const [listener] = server.listeners
  if (listener === undefined) throw new Error('the server has no listener')
  return {
    server,
    srf: app.srf,
    app,
    uri: (user) =>
      `sip:${user}@127.0.0.1:${listener.port}${variant.sip === 'udp' ? '' : ';transport=tcp'}`,
    peer: async () => {
      const peer = await SipPeer.open(listener)
      peers.push(peer)
      return peer
    },
    connect,
    stop: async () => {
      for (const peer of peers) peer.close()
      for (const connected of apps) connected.close()
      await server.stop()
      if (errors.length > 0) throw new Error(errors.join('\n'))
    },
  }
}
