/** The ground of the rig of call control: memory or sockets, and the link to the application. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { ServerAddress } from '../../engine/call/user-agent/drachtio/connection.ts'
import { DrachtioServers } from '../../engine/call/user-agent/drachtio/drachtio-servers.ts'
import type { SipPort, SipPortUser } from '../../engine/sip-server/application.ts'
import type { Machine } from '../../engine/sip-server/index.ts'
import type { Log } from '../../schema/contracts/log.ts'
import type { ManualTime } from './manual-time.ts'
import { machineNetwork, type PeerNetwork } from './peer-socket.ts'
import type { VirtualWorld } from './virtual-world.ts'
import { patienceMs, turnOfEventLoop } from './waiting.ts'

/** The network, the clock and the waiting of one rig. */
export type World = Pick<
  VirtualWorld,
  'moved' | 'soon' | 'settle' | 'advance' | 'until' | 'untilSipTimersEnd'
> & {
  /** The machine of one process; absent: the real one. */
  process?(): { readonly machine: Machine; kill(): void }
  readonly network: PeerNetwork
}

async function within(holds: () => boolean): Promise<boolean> {
  const deadline = performance.now() + patienceMs
  while (!holds() && performance.now() < deadline) await sleep(10)
  return holds()
}

/** Sockets and the real clock; only call control goes by `time`. */
export const socketWorld = (time: ManualTime): World => ({
  network: machineNetwork,
  moved: () => undefined,
  soon: (work) => void setTimeout(work, 20),
  settle: turnOfEventLoop,
  advance: (ms) => {
    time.advance(ms)
    return turnOfEventLoop()
  },
  until: within,
  untilSipTimersEnd: within,
})

/** Drachtio servers elsewhere. */
export const drachtioPort = (
  servers: readonly ServerAddress[],
  { now, schedule }: Pick<ManualTime, 'now' | 'schedule'>,
  log: Log,
): SipPort => new DrachtioServers({ servers, now, schedule, log })

type PortWrap = (port: SipPort, world: World) => SipPort

/** How events of the server reach call control: see `CallRigOptions`. */
export const portWraps: Record<'in process' | 'in bursts' | 'late' | 'without Trying', PortWrap> = {
  'in process': (port) => port,
  'in bursts': (port, world) => heldBack(port, world, (act) => act()),
  late: (port, world) => heldBack(port, world, setImmediate),
  'without Trying': (port) =>
    around(port, { reportsTrying: false, keepsSessionTimers: false }, (user) => ({
      ...user,
      onEvent: (event, sender) => {
        if (event.kind !== 'response' || event.message.status !== 100) user.onEvent(event, sender)
      },
    })),
}

/** The port with other properties and another user. */
const around = (
  port: SipPort,
  changed: Partial<SipPort>,
  wrap: (user: SipPortUser) => SipPortUser,
): SipPort => {
  const own: Partial<SipPort> = { ...changed, open: (user) => port.open(wrap(user)) }
  return new Proxy(port, {
    get: (_, name) => {
      const from = name in own ? own : port
      const value: unknown = Reflect.get(from, name)
      return typeof value === 'function' ? (value.bind(from) as unknown) : value
    },
  })
}

/** Holds events back for a moment, then hands over what has gathered. */
function heldBack(port: SipPort, world: World, perform: (act: () => void) => void): SipPort {
  let gathered: (() => void)[] = []
  const flush = (): void => {
    const burst = gathered
    gathered = []
    for (const act of burst) perform(act)
  }
  return around(port, {}, (user) => ({
    ...user,
    onEvent: (...event) => {
      world.moved()
      if (gathered.push(() => user.onEvent(...event)) === 1) world.soon(flush)
    },
  }))
}
