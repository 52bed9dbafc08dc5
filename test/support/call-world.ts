/** What the rig of call control stands on: memory or sockets, and the link to the application. */
import { setTimeout as sleep } from 'node:timers/promises'
import { connectToServer } from '../../engine/call/user-agent/drachtio/connection.ts'
import type { OpenServer } from '../../engine/call/user-agent/user-agent.ts'
import type { AppEvent, Application } from '../../engine/sip-server/application.ts'
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

/** Connects to drachtio servers elsewhere. */
export const openServer =
  ({ now, schedule }: Pick<ManualTime, 'now' | 'schedule'>, log: Log): OpenServer =>
  (place, application) =>
    connectToServer(place, application, { now, schedule, log })

type Link = (application: Application, world: World) => Application

/** How events of the server reach the application: see `CallRigOptions`. */
export const links: Record<'in process' | 'in bursts' | 'late' | 'without Trying', Link> = {
  'in process': (application) => application,
  'in bursts': (application, world) => heldBack(application, world, (act) => act()),
  late: (application, world) => heldBack(application, world, setImmediate),
  'without Trying': withoutTrying,
}

function withoutTrying(application: Application): Application {
  return {
    onEvent: (event) => {
      if (event.kind === 'response' && event.message.status === 100) return
      const isWelcome = event.kind === 'authenticated'
      application.onEvent(isWelcome ? { ...event, version: 'v1.0.0' } : event)
    },
    onClose: () => application.onClose(),
  }
}

/** Holds events back for a moment, then hands over what has gathered. */
function heldBack(
  application: Application,
  world: World,
  perform: (act: () => void) => void,
): Application {
  let gathered: AppEvent[] = []
  const flush = (): void => {
    const burst = gathered
    gathered = []
    for (const event of burst) perform(() => application.onEvent(event))
  }
  return {
    onEvent: (event) => {
      world.moved()
      if (gathered.push(event) === 1) world.soon(flush)
    },
    onClose: () => application.onClose(),
  }
}
