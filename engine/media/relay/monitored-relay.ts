import type { Schedule } from '../../../schema/clock.ts'
import type { RelayStatus } from '../../../schema/contracts/engine.ts'
import { type NgSocket, type NgSocketEvents, type RelayAddress, NgClient } from './ng-client.ts'
import type { Relay, NgAnswer, NgDictionary, NgRequest, NgValue } from './relays.ts'
import { isDictionary, SkippedKeys } from './bencode.ts'

export interface RelaySetting {
  /** `host:port`; IPv6 in brackets. */
  readonly name: string
  readonly host: string
  readonly port: number
  /** Its share of new sessions. 0: only while no other relay answers. */
  readonly weight: number
}

/**
 * The relay answers, for the first time or again; it no longer answers; it has restarted, and its
 * sessions are lost.
 */
export type RelayChange = 'answers' | 'silent' | 'restarted'

export interface MonitoredRelayDeps extends RelaySetting {
  readonly open: (address: RelayAddress, events: NgSocketEvents) => NgSocket
  readonly now: () => number
  readonly schedule: Schedule
  readonly newCookie: () => string
  readonly onChange: (change: RelayChange) => void
}

/**
 * A relay is pinged after this silence, and has 600 ms to answer: a dead one is noticed within a
 * second.
 */
const PING_AFTER_MS = 200

const FIGURES_EVERY_MS = 5_000

/** Then a name that has no address counts as silent. */
const LOOK_UP_MS = 1_000

/** Uptimes are whole seconds. */
const UPTIME_ERROR_MS = 1_500

/** Most of the statistics of a session. */
const skippedKeys = new SkippedKeys([
  'created',
  'created_us',
  'last signal',
  'tag',
  'subscriptions',
  'subscribers',
  'index',
  'protocol',
  'family',
  'endpoint',
  'advertised endpoint',
  'crypto',
  'bytes',
  'errors',
  'lowest MOS',
  'highest MOS',
  'MOS progression',
  'samples',
  'ingress SSRCs',
  'egress SSRCs',
  'totals',
])

/** The weight of the latest round trip. */
const LATENCY_WEIGHT = 0.1

/** One relay: its requests, its state and its counters. */
export class MonitoredRelay implements Relay {
  readonly name: string
  readonly weight: number
  readonly #deps: MonitoredRelayDeps
  #client: NgClient | undefined
  #address: string | undefined
  /** While its name has never had an address. */
  #nowhereSince: number | undefined
  /** A new one may be used: it has not been silent for long. */
  #state: 'new' | 'alive' | 'dead' = 'new'
  #seenAt = 0
  #lostAt: number | undefined
  #isPinged = false
  #figuresAt = 0
  #startedAt = 0
  #figuresSeenAt = 0
  #sessionsSoFar = 0
  #sessions: number | null = null
  #latencyMs: number | null = null
  readonly #totals = { requests: 0, timeouts: 0, errors: 0, restarts: 0 }

  constructor(deps: MonitoredRelayDeps) {
    this.#deps = deps
    this.name = deps.name
    this.weight = deps.weight
  }

  get isAlive(): boolean {
    return this.#client !== undefined && this.#state !== 'dead'
  }

  get seenAt(): number {
    return this.#seenAt
  }

  get lostAt(): number | undefined {
    return this.#lostAt
  }

  get status(): RelayStatus {
    return {
      name: this.name,
      weight: this.weight,
      isAlive: this.isAlive,
      latencyMs: this.#latencyMs,
      sessions: this.#sessions,
      outstanding: this.#client?.outstanding ?? 0,
      ...this.#totals,
    }
  }

  ask(command: NgRequest, done: (answer: NgAnswer) => void): void {
    this.#totals.requests += 1
    if (this.#client === undefined) done({ kind: 'timeout' })
    else this.#client.ask(command, done)
  }

  request(command: NgRequest): Promise<NgAnswer> {
    return new Promise((resolve) => this.ask(command, resolve))
  }

  /**
   * Asks a relay that is silent for a sign of life. Called several times a second, with the
   * addresses of its host.
   */
  check(addresses: readonly string[]): void {
    this.#follow(addresses)
    const now = this.#deps.now()
    if (this.#client === undefined) this.#waitForAddress(now)
    else if (this.isAlive && now >= this.#figuresAt) void this.#askFigures(now)
    else if (!this.#isPinged && now - this.#seenAt >= PING_AFTER_MS) void this.#ping()
  }

  stop(): void {
    const client = this.#client
    this.#client = undefined
    client?.close()
  }

  /** Keeps the address if the name still has it, or has none; else connects to the new one. */
  #follow(addresses: readonly string[]): void {
    const [first] = addresses
    const stays = this.#address !== undefined && addresses.includes(this.#address)
    if (first === undefined || stays) return
    this.#address = first
    const before = this.#client
    this.#client = this.#connect({ address: first, port: this.#deps.port })
    before?.close()
  }

  #waitForAddress(now: number): void {
    this.#nowhereSince ??= now
    if (now - this.#nowhereSince >= LOOK_UP_MS) this.#becomeDead()
  }

  #connect(address: RelayAddress): NgClient {
    const { open, newCookie, now, schedule } = this.#deps
    return new NgClient({
      newCookie,
      now,
      schedule,
      skippedKeys,
      open: (events) => open(address, events),
      onAnswer: (answer, tookMs) => this.#noteAnswer(answer, tookMs),
      onTimeout: (sentAt) => this.#noteTimeout(sentAt),
      onRefusal: () => this.#becomeDead(),
    })
  }

  async #ping(): Promise<void> {
    this.#isPinged = true
    await this.request({ command: 'ping' })
    this.#isPinged = false
  }

  async #askFigures(now: number): Promise<void> {
    this.#figuresAt = now + FIGURES_EVERY_MS
    const answer = await this.request({ command: 'statistics' })
    const figures = answer.kind === 'ok' ? figuresOf(answer.values) : undefined
    if (figures === undefined) return
    const { uptimeMs, sessions, sessionsSoFar } = figures
    const startedAt = this.#deps.now() - uptimeMs
    const isKnown = this.#startedAt > 0
    const isLater = startedAt > this.#startedAt + UPTIME_ERROR_MS
    if (isKnown && (isLater || sessionsSoFar < this.#sessionsSoFar)) {
      this.#totals.restarts += 1
      // Too quick to be missed.
      if ((this.#lostAt ?? 0) < this.#figuresSeenAt) this.#lostAt = startedAt
      this.#deps.onChange('restarted')
    }
    this.#figuresSeenAt = this.#deps.now()
    this.#startedAt = startedAt
    this.#sessionsSoFar = sessionsSoFar
    this.#sessions = sessions
  }

  #noteAnswer(answer: NgAnswer, tookMs: number): void {
    this.#seenAt = this.#deps.now()
    const before = this.#latencyMs ?? tookMs
    this.#latencyMs = before + (tookMs - before) * LATENCY_WEIGHT
    if (answer.kind === 'error') this.#totals.errors += 1
    if (this.#state === 'alive') return
    this.#state = 'alive'
    // It may have been restarted.
    this.#figuresAt = 0
    this.#deps.onChange('answers')
  }

  /** A relay that has answered another request since then is alive. */
  #noteTimeout(sentAt: number): void {
    this.#totals.timeouts += 1
    if (this.#seenAt <= sentAt) this.#becomeDead()
  }

  #becomeDead(): void {
    if (this.#state === 'dead') return
    this.#state = 'dead'
    this.#lostAt = this.#seenAt
    this.#deps.onChange('silent')
  }
}

/**
 * Reads an answer to `statistics`. `sessionsSoFar`: since the start of the relay. Undefined: this
 * version has other figures.
 */
function figuresOf(values: NgDictionary) {
  const { statistics } = values
  if (!isDictionary(statistics)) return undefined
  const { currentstatistics: current, totalstatistics: totals } = statistics
  if (!isDictionary(current) || !isDictionary(totals)) return undefined
  const uptime = numberOf(totals['uptime'])
  const sessions = numberOf(current['sessionstotal'])
  const sessionsSoFar = numberOf(totals['managedsessions'])
  if (uptime === undefined || sessions === undefined || sessionsSoFar === undefined)
    return undefined
  return { uptimeMs: uptime * 1_000, sessions, sessionsSoFar }
}

/** The uptime is a text in version 10.5, and a number in others. */
function numberOf(value: NgValue | undefined): number | undefined {
  const number = typeof value === 'string' || typeof value === 'number' ? Number(value) : NaN
  return Number.isFinite(number) ? number : undefined
}
