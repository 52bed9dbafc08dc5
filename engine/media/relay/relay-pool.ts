/** The relays of `RTPENGINE`: which of them answer, and which one gets the next session. */
import type { Cancel } from '../../../schema/clock.ts'
import type { RelayStatus, EngineHappening } from '../../../schema/contracts/engine.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import { openNgSocket } from './ng-client.ts'
import type { Relay, Relays } from './relays.ts'
import {
  MonitoredRelay,
  type RelaySetting,
  type MonitoredRelayDeps,
  type RelayChange,
} from './monitored-relay.ts'

export interface RelayPoolDeps extends Pick<MonitoredRelayDeps, 'open' | 'now' | 'schedule'> {
  readonly relays: readonly RelaySetting[]
  /** The present addresses of hosts. */
  readonly hosts: {
    watch(owner: string, hosts: readonly string[]): void
    addressesOf(host: string): readonly string[]
  }
  /** The prefix of all cookies, unique for this process. */
  readonly cookiePrefix: string
  readonly log: Log
  readonly onChange: (relay: Relay, change: RelayChange) => void
}

const CHECK_EVERY_MS = 100

export class RelayPool implements Relays {
  readonly #deps: RelayPoolDeps
  readonly #members: readonly Member[]
  #cookies = 0
  #cancelCheck: Cancel | undefined

  constructor(deps: RelayPoolDeps) {
    this.#deps = deps
    this.#members = deps.relays.map((setting) => this.#memberOf(setting))
  }

  start(): void {
    this.#deps.hosts.watch(
      'relays',
      this.#members.map(({ host }) => host),
    )
    this.#check()
  }

  stop(): void {
    this.#cancelCheck?.()
    this.#deps.hosts.watch('relays', [])
    for (const { relay } of this.#members) relay.stop()
  }

  /** Takes turns by weight, without bursts (smooth weighted round robin). */
  pick(except: ReadonlySet<string> = new Set()): Relay | undefined {
    const usable = this.#members.filter(({ relay }) => relay.isAlive && !except.has(relay.name))
    const weighted = usable.filter(({ relay }) => relay.weight > 0)
    const candidates = weighted.length > 0 ? weighted : usable
    for (const member of candidates) member.credit += member.share
    const chosen = candidates.reduce<Member | undefined>(
      (best, member) => (best === undefined || member.credit > best.credit ? member : best),
      undefined,
    )
    if (chosen === undefined) return undefined
    chosen.credit -= candidates.reduce((sum, { share }) => sum + share, 0)
    return chosen.relay
  }

  byName(name: string): Relay | undefined {
    return this.#members.find(({ relay }) => relay.name === name)?.relay
  }

  all(): readonly Relay[] {
    return this.#members.map(({ relay }) => relay)
  }

  status(): readonly RelayStatus[] {
    return this.#members.map(({ relay }) => relay.status)
  }

  #memberOf(setting: RelaySetting): Member {
    const { open, now, schedule, cookiePrefix } = this.#deps
    const relay: MonitoredRelay = new MonitoredRelay({
      ...setting,
      open,
      now,
      schedule,
      newCookie: () => `${cookiePrefix}_${(this.#cookies++).toString(36)}`,
      onChange: (change) => this.#noteChange(relay, change),
    })
    return { relay, host: setting.host, share: Math.max(setting.weight, 1), credit: 0 }
  }

  #check(): void {
    for (const { relay, host } of this.#members) relay.check(this.#deps.hosts.addressesOf(host))
    this.#cancelCheck = this.#deps.schedule(() => this.#check(), CHECK_EVERY_MS)
  }

  #noteChange(relay: Relay, change: RelayChange): void {
    const { log, onChange } = this.#deps
    const [level, message] = messages[change]
    log(level, message, { relay: relay.name })
    onChange(relay, change)
  }
}

interface Member {
  readonly relay: MonitoredRelay
  readonly host: string
  /** Relays with weight 0 have equal shares. */
  readonly share: number
  credit: number
}

const messages = {
  answers: ['info', 'media relay answers'],
  silent: ['warn', 'media relay does not answer'],
  restarted: ['warn', 'media relay has started anew: its sessions are lost'],
} as const

/** For the relays of `RTPENGINE`, on real sockets. Their changes become events. */
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
