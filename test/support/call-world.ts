/** What the rig of call control stands on: memory or sockets, and the link to the application. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { InProcessClient, Machine } from '../../engine/sip-server/index.ts'
import type { ManualTime } from './manual-time.ts'
import { machineNetwork, type PeerNetwork } from './peer-socket.ts'
import type { VirtualWorld } from './virtual-world.ts'
import { patienceMs, turnOfEventLoop } from './waiting.ts'

/** The network, the clock and the waiting of one rig. */
export type World = Pick<
  VirtualWorld,
  'moved' | 'soon' | 'settle' | 'advance' | 'until' | 'untilSipTimersEnd'
> & {
  readonly machine?: Machine
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

type Link = (client: InProcessClient, world: World) => InProcessClient

/** How payloads of the server reach the application: see `CallRigOptions`. */
export const links: Record<'in process' | 'in bursts' | 'late' | 'without Trying', Link> = {
  'in process': (client) => client,
  'in bursts': (client, world) => heldBack(client, world, (act) => act()),
  late: (client, world) => heldBack(client, world, setImmediate),
  'without Trying': withoutTrying,
}

function withoutTrying(client: InProcessClient): InProcessClient {
  return {
    onPayload: (payload) => {
      if (!payload.includes('\r\nSIP/2.0 100 ')) client.onPayload(payload.replace('-tollgate', ''))
    },
    onClose: () => client.onClose(),
  }
}

/** Holds payloads back for a moment, then hands over what has gathered. */
function heldBack(
  client: InProcessClient,
  world: World,
  perform: (act: () => void) => void,
): InProcessClient {
  let gathered: string[] = []
  const flush = (): void => {
    const burst = gathered
    gathered = []
    for (const payload of burst) perform(() => client.onPayload(payload))
  }
  return {
    onPayload: (payload) => {
      world.moved()
      if (gathered.push(payload) === 1) world.soon(flush)
    },
    onClose: () => client.onClose(),
  }
}
