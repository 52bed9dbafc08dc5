/** The relays of `RTPENGINE`, on real sockets; what becomes of them is told as events. */
import type { EngineHappening } from '../../../schema/contracts/engine.ts'
import { openNgSocket } from './ng-socket.ts'
import { RelayPool, type RelayPoolDeps, type RelaySetting } from './relay-pool.ts'

interface CreateRelaysDeps extends Pick<RelayPoolDeps, 'hosts' | 'now' | 'schedule' | 'log'> {
  readonly randomBytes: (size: number) => Buffer
  readonly events: { add(happening: EngineHappening): void }
}

const eventOf = { answers: 'relay.up', silent: 'relay.down', restarted: 'relay.restarted' } as const

/** Undefined without relays. */
export function createRelays(
  relays: readonly RelaySetting[],
  { hosts, now, schedule, log, randomBytes, events }: CreateRelaysDeps,
): RelayPool | undefined {
  if (relays.length === 0) return undefined
  return new RelayPool({
    relays,
    hosts,
    now,
    schedule,
    log,
    open: openNgSocket,
    cookiePrefix: randomBytes(6).toString('base64url'),
    onChange: ({ name: relay }, change) =>
      events.add({ type: eventOf[change], tenantId: null, relay }),
  })
}
