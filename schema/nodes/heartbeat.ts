/**
 * A node says every second that it lives, and hears of the others. While it is heard, and for a set time after, what it
 * holds of wallets is its own; then it grants nothing any more, because another node may have taken that back.
 */
import type { Cancel, Schedule } from '../clock.ts'
import type { Log } from '../contracts/log.ts'
import type { NodeCondition, NodeIdentity, NodesPort, NodeStatus } from '../contracts/nodes.ts'
import { HEARTBEAT_TTL_MS } from './node-registry.ts'
import type { ServerNotices } from '../postgres/notices.ts'
import type { Storage } from '../storage/storage.ts'
import type { NodeTable } from '../database.ts'

export interface HeartbeatDeps {
  readonly identity: NodeIdentity
  /** Of the API. */
  readonly address: string
  readonly version: string
  /** How long it grants without the server. Milliseconds; absent: for the time to live. */
  readonly awayMs?: number
  /** A connection that waits for no other statements. */
  readonly connection: Pick<ServerNotices, 'query'>
  readonly storage: Storage
  readonly settings: { readonly differing: NodesPort['differingSettings'] }
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  readonly schedule: Schedule
  readonly log: Log
}

const BEAT_MS = 1_000
/** The time to live, and a minute for clocks and timers. After it, and the longest grant, nothing granted goes on. */
export const GONE_MS = HEARTBEAT_TTL_MS + 60_000
/** Before others take this node for gone it stops using what it holds of limits. */
const HOLDING_MS = GONE_MS - 10_000

/** Ages by the clock of the server, which has written them. */
const COLUMNS = `name, epoch::float8, address, sip_uri, sip_addresses, version, state, live_calls::float8,
    started_at::float8, heartbeat_at::float8, longest_grant_seconds::float8, extract(epoch FROM clock_timestamp()) * 1000 - heartbeat_at::float8 AS silent`

/** Beats, and lists all nodes: a statement of its own would see the row of this one as it was before. */
const beat = `WITH own AS (
    UPDATE node SET state = $3, live_calls = $4, address = $5, version = $6, sip_uri = $7, sip_addresses = $8,
      longest_grant_seconds = greatest(longest_grant_seconds, $9),
      heartbeat_at = floor(extract(epoch FROM clock_timestamp()) * 1000)
    WHERE name = $1 AND epoch = $2 RETURNING *
  )
  SELECT ${COLUMNS}, TRUE AS is_own FROM own
  UNION ALL
  SELECT ${COLUMNS}, FALSE AS is_own FROM node WHERE NOT EXISTS (SELECT FROM own WHERE own.name = node.name)
  ORDER BY name`

/** A node that was silent for so long is fenced before what it holds is freed: it may be paused, not dead. */
const fenceGone = `UPDATE node SET epoch = epoch + 1, state = 'stopped'
  WHERE state <> 'stopped'
    AND heartbeat_at + longest_grant_seconds * 1000 < extract(epoch FROM clock_timestamp()) * 1000 - $1`

interface Row extends Omit<NodeTable, 'install_id' | 'longest_grant_seconds' | 'away_ms'> {
  readonly longest_grant_seconds: number
  readonly silent: number
  /** The beat has taken place. */
  readonly is_own: boolean
}

interface Heard extends Omit<NodeStatus, 'isThis'> {
  /** Steady time at which it was heard last. */
  readonly heardAt: number
  /** Steady time from which on nothing goes on that it has granted. */
  readonly goneAt: number
}

export class Heartbeat implements NodesPort {
  readonly #deps: HeartbeatDeps
  #state: NodeTable['state'] = 'starting'
  #address: string
  #sipUri = ''
  #sipAddresses: readonly string[] = []
  #countCalls = (): number => 0
  #longestGrantSeconds = (): number => 0
  /** When the last write that took place was sent: the server has a later time. */
  #heardAt: number
  #nodes: readonly Heard[] = []
  #isFenced = false
  #isFailing = false
  #isBeating = false
  #cancel: Cancel

  /** @param registeredAt steady time before the registration was sent. */
  constructor(deps: HeartbeatDeps, registeredAt: number) {
    this.#deps = deps
    this.#address = deps.address
    this.#heardAt = registeredAt
    this.#cancel = deps.schedule(() => this.#tick(), BEAT_MS)
  }

  get identity(): NodeIdentity {
    return this.#deps.identity
  }

  get differingSettings(): NodesPort['differingSettings'] {
    return this.#deps.settings.differing
  }

  /** What this run of the node holds of wallets is its own: no other node has taken it back. */
  isHoldingMoney(): boolean {
    return this.condition === 'valid'
  }

  /** What this node holds of limits is its own. While the database is away, calls go on within that. */
  isHolding(): boolean {
    return !this.#isFenced && this.heartbeatAgeMs < HOLDING_MS + this.#longerMs
  }

  get condition(): NodeCondition {
    if (this.#isFenced) return 'fenced'
    return this.heartbeatAgeMs < this.#awayMs ? 'valid' : 'unheard'
  }

  get #awayMs(): number {
    return this.#deps.awayMs ?? HEARTBEAT_TTL_MS
  }

  /** For so long after the time to live it still grants: others wait for it as for a longer grant. */
  get #longerMs(): number {
    return Math.max(0, this.#awayMs - HEARTBEAT_TTL_MS)
  }

  get heartbeatAgeMs(): number {
    return this.#deps.now() - this.#heardAt
  }

  list(): readonly NodeStatus[] {
    const now = this.#deps.now()
    return this.#nodes.map(({ heardAt, goneAt: _, ...node }) => {
      const isLost = node.state !== 'stopped' && now - heardAt >= HEARTBEAT_TTL_MS
      const isThis = node.name === this.identity.name
      return { ...node, isThis, ...(isLost && { state: 'lost' }) }
    })
  }

  /** Nodes that cannot come back as what they were: what they hold may be freed. */
  gone(): readonly NodeIdentity[] {
    const now = this.#deps.now()
    const silent = this.#nodes.filter(({ goneAt }) => now >= goneAt)
    return silent
      .filter(({ state }) => state === 'stopped')
      .map(({ name, epoch }) => ({ name, epoch }))
  }

  countCalls(count: () => number): void {
    this.#countCalls = count
  }

  /** How long a grant of this process may last. Told from the next heartbeat on; never less than before. */
  grantsFor(longestSeconds: () => number): void {
    this.#longestGrantSeconds = longestSeconds
  }

  /** Tells it at once. */
  async become(
    state: NodeTable['state'],
    address = this.#address,
    sipUri = this.#sipUri,
    sipAddresses = this.#sipAddresses,
  ): Promise<void> {
    this.#state = state
    this.#address = address
    this.#sipUri = sipUri
    this.#sipAddresses = sipAddresses
    await this.#beat()
  }

  /** The process ends in order. */
  async end(): Promise<void> {
    await this.become('stopped')
    this.stop()
  }

  /** Beats no more. */
  stop(): void {
    this.#cancel()
    this.#cancel = () => undefined
  }

  #tick(): void {
    this.#cancel = this.#deps.schedule(() => this.#tick(), BEAT_MS)
    // One that waits for its answer is not joined by others.
    if (!this.#isBeating) void this.#beat()
  }

  async #beat(): Promise<void> {
    if (this.#isFenced) return
    const { identity, connection, now, version } = this.#deps
    const sentAt = now()
    this.#isBeating = true
    const run = [identity.name, identity.epoch]
    const sip = [this.#sipUri, this.#sipAddresses.join(' ')]
    const rest = [this.#state, this.#countCalls(), this.#address, version, ...sip]
    const longestGrantSeconds = this.#longestGrantSeconds() + Math.ceil(this.#longerMs / 1_000)
    const rows = await connection.query<Row>(beat, [...run, ...rest, longestGrantSeconds])
    this.#isBeating = false
    const isWritten = rows?.some((row) => row.is_own)
    if (isWritten === false) this.#fence()
    else this.#note(rows !== undefined)
    if (rows === undefined) return
    if (isWritten === true) this.#heardAt = Math.max(this.#heardAt, sentAt)
    this.#nodes = rows.map((row) => heard(row, now()))
    if (rows.some((row) => row.state !== 'stopped' && row.silent >= goneMs(row)))
      await connection.query(fenceGone, [GONE_MS])
  }

  #fence(): void {
    this.#isFenced = true
    this.stop()
    this.#deps.log(
      'error',
      'node: another process has taken over its name: no new calls are taken here; when the live ones are over, stop this process',
      { ...this.identity },
    )
  }

  /** Statements of others fail in their own time; this one is sent every second. */
  #note(isWorking: boolean): void {
    const { storage } = this.#deps
    if (isWorking) storage.working(this)
    else if (!this.#isFailing)
      storage.failing(this, new Error('the database server does not answer'))
    this.#isFailing = !isWorking
  }
}

const goneMs = (row: Row): number => GONE_MS + row.longest_grant_seconds * 1_000

const heard = (row: Row, now: number): Heard => ({
  name: row.name,
  epoch: row.epoch,
  address: row.address,
  version: row.version,
  sipUri: row.sip_uri || null,
  sipAddresses: row.sip_addresses.split(' ').filter((address) => address !== ''),
  state: row.state,
  liveCalls: row.live_calls,
  startedAt: row.started_at,
  heartbeatAt: row.heartbeat_at,
  heardAt: now - Math.max(0, row.silent),
  goneAt: now - Math.max(0, row.silent) + goneMs(row),
})

/** The one process that serves an SQLite database. */
export interface OnlyNodeDeps {
  readonly name: string
  readonly address: () => string
  readonly version: string
  readonly state: () => 'starting' | 'serving' | 'draining'
  readonly liveCalls: () => number
  /** Milliseconds UTC. */
  readonly startedAt: number
  readonly now: () => number
}

export class OnlyNode implements NodesPort {
  readonly identity: NodesPort['identity']
  readonly condition = 'valid'
  readonly differingSettings = new Map<string, readonly string[]>()
  readonly heartbeatAgeMs = 0
  readonly #deps: OnlyNodeDeps

  constructor(deps: OnlyNodeDeps) {
    this.identity = { name: deps.name, epoch: 0 }
    this.#deps = deps
  }

  list(): readonly NodeStatus[] {
    const { address, version, state, liveCalls, startedAt, now } = this.#deps
    return [
      {
        ...this.identity,
        address: address(),
        version,
        state: state(),
        startedAt,
        liveCalls: liveCalls(),
        heartbeatAt: now(),
        isThis: true,
        sipUri: null,
        sipAddresses: [],
      },
    ]
  }
}
