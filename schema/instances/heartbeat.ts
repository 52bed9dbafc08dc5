/**
 * An instance writes every second that it lives, and reads the rows of the others. While its writes
 * succeed, and for a set time after the last one, its shares of wallets are its own. Then it grants
 * nothing, because another instance may have taken the shares back.
 */
import type { Cancel, Schedule } from '../clock.ts'
import type { Log } from '../contracts/log.ts'
import type {
  Fenced,
  InstanceCondition,
  InstanceIdentity,
  InstancesPort,
  InstanceStatus,
} from '../contracts/instances.ts'
import { CLOCK_OF_INSTANCE, HEARTBEAT_TTL_MS } from './instance-registry.ts'
import { CLOCK_TOLERANCE_MS, type ServerClock } from './server-clock.ts'
import type { ServerNotices } from '../changes/server-notices.ts'
import type { Storage } from '../storage/storage.ts'
import type { InstanceTable } from '../tables/installation.ts'

export interface HeartbeatDeps {
  readonly identity: InstanceIdentity
  /**
   * Identifies the disk. Absent: a process that was fenced does not come back for its live calls.
   */
  readonly installId?: string
  /** Address of the API. */
  readonly address: string
  readonly version: string
  /**
   * How long the instance grants while the server is unreachable. Milliseconds; absent: for the
   * time to live.
   */
  readonly offlineMs?: number
  /** A connection that waits for no other statements. */
  readonly connection: Pick<ServerNotices, 'query'>
  readonly storage: Storage
  readonly settings: { readonly differing: InstancesPort['differingSettings'] }
  /** Milliseconds by the steady clock. */
  readonly now: () => number
  /**
   * The clock of the machine, in milliseconds UTC, and the clock of the server. Absent: they are
   * not compared.
   */
  readonly clocks?: { readonly ofMachine: () => number; readonly ofServer: ServerClock }
  readonly schedule: Schedule
  readonly log: Log
}

/** The log adds by how many seconds: positive where the machine is ahead. */
const CLOCK_DIFFERS =
  'the clock of this machine differs from that of the database server: synchronize it (NTP)'
/** The row with the difference is written again when it has changed by more. */
const CLOCK_STEP_MS = 1_000
const isOff = (differenceMs: number): boolean => Math.abs(differenceMs) > CLOCK_TOLERANCE_MS

const BEAT_MS = 1_000
/**
 * The time to live, and a minute for clocks and timers. An instance that is silent for longer is
 * gone once its longest grant ends.
 */
export const GONE_MS = HEARTBEAT_TTL_MS + 60_000
/** An instance stops using its shares of limits before others treat it as gone. */
const HOLDING_MS = GONE_MS - 10_000

/** Ages are by the clock of the server, which wrote the times. */
const COLUMNS = `name, epoch::float8, address, sip_uri, sip_addresses, version, state,
    live_calls::float8, started_at::float8, heartbeat_at::float8, longest_grant_seconds::float8,
    extract(epoch FROM clock_timestamp()) * 1000 - heartbeat_at::float8 AS silent_ms,
    (SELECT value FROM setting WHERE setting.name = '${CLOCK_OF_INSTANCE}' || NODE.name)
      AS clock_ms`
const columnsOf = (table: 'own' | 'node'): string => COLUMNS.replace('NODE', table)

/** Writes the difference of a clock to a row that the other instances read. */
const noteClock = `INSERT INTO setting (name, value) VALUES ('${CLOCK_OF_INSTANCE}' || $1, $2)
  ON CONFLICT (name) DO UPDATE SET value = excluded.value`
const forgetClock = `DELETE FROM setting WHERE name = '${CLOCK_OF_INSTANCE}' || $1`

/**
 * Writes the heartbeat and lists all instances. A separate list in the same statement would show
 * the old row of this instance.
 */
const beat = `WITH own AS (
    UPDATE node SET state = $3, live_calls = $4, address = $5, version = $6,
      sip_uri = $7, sip_addresses = $8,
      longest_grant_seconds = greatest(longest_grant_seconds, $9),
      heartbeat_at = floor(extract(epoch FROM clock_timestamp()) * 1000)
    WHERE name = $1 AND epoch = $2 RETURNING *
  )
  SELECT ${columnsOf('own')}, TRUE AS is_own FROM own
  UNION ALL
  SELECT ${columnsOf('node')}, FALSE AS is_own FROM node
  WHERE NOT EXISTS (SELECT FROM own WHERE own.name = node.name)
  ORDER BY name`

/** A silent instance is fenced before its shares are freed: it may be paused, not dead. */
const fenceGone = `UPDATE node SET epoch = epoch + 1, state = 'stopped'
  WHERE state <> 'stopped'
    AND heartbeat_at + longest_grant_seconds * 1000
      < extract(epoch FROM clock_timestamp()) * 1000 - $1`

/**
 * A fenced process comes back under its name, for its live calls: nobody else has the name, and
 * its shares were freed. Its epoch is a new one, so that nothing of it is freed again for the
 * earlier silence.
 */
const comeBack = `UPDATE node SET epoch = epoch + 1, state = 'draining',
    heartbeat_at = floor(extract(epoch FROM clock_timestamp()) * 1000)
  WHERE name = $1 AND install_id = $2 AND epoch > $3 AND state = 'stopped'
  RETURNING epoch::float8`

interface Row extends Omit<InstanceTable, 'install_id' | 'longest_grant_seconds' | 'away_ms'> {
  readonly longest_grant_seconds: number
  readonly silent_ms: number
  /** The difference of its clock; null: it has written none. */
  readonly clock_ms: string | null
  /** The heartbeat was written. */
  readonly is_own: boolean
}

interface KnownInstance extends Omit<InstanceStatus, 'isThis'> {
  /** Steady time of its last heartbeat. */
  readonly beatAt: number
  /** The steady time from which on none of its grants is in use. */
  readonly goneAt: number
}

export class Heartbeat implements InstancesPort {
  readonly #deps: HeartbeatDeps
  #identity: InstanceIdentity
  #state: InstanceTable['state'] = 'starting'
  #address: string
  #sipUri = ''
  #sipAddresses: readonly string[] = []
  #countCalls = (): number => 0
  #longestGrantSeconds = (): number => 0
  /** When the last successful heartbeat was sent: the server stored a later time. */
  #beatAt: number
  /** The same time by the clock of the machine, which goes on while it sleeps. */
  #beatWallAt: number
  #instances: readonly KnownInstance[] = []
  #isFenced = false
  /** It is fenced, and may hold money for its live calls. */
  #isBack = false
  #onFenced: (fenced: Fenced) => void = () => undefined
  #isFailing = false
  #isBeating = false
  #clockDifferenceMs = 0
  #cancel: Cancel

  /** @param registeredAt steady time before the registration was sent. */
  constructor(deps: HeartbeatDeps, registeredAt: number) {
    this.#deps = deps
    this.#identity = deps.identity
    this.#address = deps.address
    this.#beatAt = registeredAt
    this.#beatWallAt = this.#wallNow()
    this.#cancel = deps.schedule(() => this.#tick(), BEAT_MS)
  }

  get identity(): InstanceIdentity {
    return this.#identity
  }

  get differingSettings(): InstancesPort['differingSettings'] {
    return this.#deps.settings.differing
  }

  /**
   * Whether the shares of wallets belong to this run of the instance: no other instance has taken
   * them back.
   */
  isHoldingMoney(): boolean {
    return (!this.#isFenced || this.#isBack) && this.#silentMs < this.#offlineMs
  }

  /**
   * Whether the shares of limits belong to this instance. While the database is unreachable, calls
   * go on within them.
   */
  isHolding(): boolean {
    return (!this.#isFenced || this.#isBack) && this.#silentMs < HOLDING_MS + this.#extraMs
  }

  get condition(): InstanceCondition {
    if (this.#isFenced) return 'fenced'
    return this.#silentMs < this.#offlineMs ? 'valid' : 'unheard'
  }

  /**
   * The steady clock stands still while the machine sleeps: only a beat shows whether others have
   * taken its shares meanwhile.
   */
  get #silentMs(): number {
    return Math.max(this.heartbeatAgeMs, this.#wallNow() - this.#beatWallAt)
  }

  #wallNow(): number {
    return this.#deps.clocks?.ofMachine() ?? 0
  }

  mayHaveSlept(): boolean {
    return this.heartbeatAgeMs < this.#offlineMs && this.#silentMs >= this.#offlineMs
  }

  get #offlineMs(): number {
    return this.#deps.offlineMs ?? HEARTBEAT_TTL_MS
  }

  /**
   * How long the instance grants after the time to live. Other instances add it to the longest
   * grant.
   */
  get #extraMs(): number {
    return Math.max(0, this.#offlineMs - HEARTBEAT_TTL_MS)
  }

  get heartbeatAgeMs(): number {
    return this.#deps.now() - this.#beatAt
  }

  get clockDifferenceMs(): number {
    return this.#clockDifferenceMs
  }

  list(): readonly InstanceStatus[] {
    const now = this.#deps.now()
    return this.#instances.map(({ beatAt, goneAt: _, ...instance }) => {
      const isLost = instance.state !== 'stopped' && now - beatAt >= HEARTBEAT_TTL_MS
      const isThis = instance.name === this.identity.name
      return { ...instance, isThis, ...(isLost && { state: 'lost' }) }
    })
  }

  /** Runs of instances that cannot continue: their shares may be freed. */
  gone(): readonly InstanceIdentity[] {
    const now = this.#deps.now()
    const silent = this.#instances.filter(({ goneAt }) => now >= goneAt)
    return silent
      .filter(({ state }) => state === 'stopped')
      .map(({ name, epoch }) => ({ name, epoch }))
  }

  countCalls(count: () => number): void {
    this.#countCalls = count
  }

  /**
   * How long a grant of this process may last. The next heartbeat stores it; it never decreases.
   */
  grantsFor(longestSeconds: () => number): void {
    this.#longestGrantSeconds = longestSeconds
  }

  onFenced(handler: (fenced: Fenced) => void): void {
    this.#onFenced = handler
  }

  /** Stores the state at once. */
  async become(
    state: InstanceTable['state'],
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

  /** Sends no more heartbeats. */
  stop(): void {
    this.#cancel()
    this.#cancel = () => undefined
  }

  #tick(): void {
    this.#cancel = this.#deps.schedule(() => this.#tick(), BEAT_MS)
    // No second heartbeat starts while one waits for its answer.
    if (!this.#isBeating) void this.#beat()
  }

  async #beat(): Promise<void> {
    if (this.#isFenced && !this.#isBack) return
    const { identity } = this
    const { connection, now, version } = this.#deps
    const [sentAt, sentWallAt] = [now(), this.#wallNow()]
    this.#isBeating = true
    const run = [identity.name, identity.epoch]
    const sip = [this.#sipUri, this.#sipAddresses.join(' ')]
    const rest = [this.#state, this.#countCalls(), this.#address, version, ...sip]
    const longestGrantSeconds = this.#longestGrantSeconds() + Math.ceil(this.#extraMs / 1_000)
    const rows = await connection.query<Row>(beat, [...run, ...rest, longestGrantSeconds])
    this.#isBeating = false
    const stoodStillMs =
      rows === undefined ? 0 : this.#compareClocks(rows, { sentAt, answeredAt: now() })
    const isWritten = rows?.some((row) => row.is_own)
    if (isWritten === false) await this.#fence(Math.max(0, stoodStillMs))
    else this.#note(rows !== undefined)
    if (rows === undefined) return
    if (isWritten === true) this.#heard(sentAt, sentWallAt)
    this.#instances = rows.map((row) => knownInstance(row, now()))
    if (rows.some((row) => row.state !== 'stopped' && row.silent_ms >= goneMs(row)))
      await connection.query(fenceGone, [GONE_MS])
  }

  /**
   * Warns when the clock of this machine differs from the server's, once for each time that it
   * begins to. Returns for how long the steady clock has stood still.
   */
  #compareClocks(rows: readonly Row[], asked: { sentAt: number; answeredAt: number }): number {
    const { clocks, log } = this.#deps
    const [row] = rows
    if (row === undefined || clocks === undefined) return 0
    const serverAt = Math.floor(row.heartbeat_at + row.silent_ms)
    const stoodStillMs = clocks.ofServer.note({ ...asked, serverAt })
    const differenceMs = clocks.ofMachine() - clocks.ofServer.now()
    const wasOff = isOff(this.#clockDifferenceMs)
    this.#clockDifferenceMs = differenceMs
    this.#tellClock(rows)
    if (wasOff === isOff(differenceMs)) return stoodStillMs
    const seconds = Math.round(differenceMs / 1_000)
    if (wasOff) log('info', 'the clock of this machine agrees with the database server again')
    else log('warn', CLOCK_DIFFERS, { seconds })
    return stoodStillMs
  }

  /** Writes the difference to a row that the others read with the heartbeats. */
  #tellClock(rows: readonly Row[]): void {
    const { identity, connection } = this.#deps
    const told = rows.find(({ name }) => name === identity.name)?.clock_ms ?? null
    const differenceMs = Math.round(this.#clockDifferenceMs)
    if (!isOff(differenceMs)) {
      if (told !== null) void connection.query(forgetClock, [identity.name])
    } else if (told === null || Math.abs(Number(told) - differenceMs) > CLOCK_STEP_MS)
      void connection.query(noteClock, [identity.name, String(differenceMs)])
  }

  #heard(sentAt: number, sentWallAt: number): void {
    this.#beatAt = Math.max(this.#beatAt, sentAt)
    this.#beatWallAt = Math.max(this.#beatWallAt, sentWallAt)
  }

  /**
   * Another process has the name, or others have freed the shares of this one: it was paused, cut
   * off or asleep.
   */
  async #fence(stoodStillMs: number): Promise<void> {
    this.#isFenced = true
    this.#isBack = false
    this.stop()
    this.#deps.log(
      'error',
      'node: another process has taken over its name: no new calls are taken here; when ' +
        'the live ones are over, stop this process',
      { ...this.identity },
    )
    const { identity } = this
    const { connection, installId, now } = this.#deps
    if (installId !== undefined) {
      const [sentAt, sentWallAt] = [now(), this.#wallNow()]
      const values = [identity.name, installId, identity.epoch]
      const rows = await connection.query<{ epoch: number }>(comeBack, values)
      const [row] = rows ?? []
      if (row !== undefined) {
        this.#identity = { ...identity, epoch: row.epoch }
        this.#state = 'draining'
        this.#isBack = true
        this.#beatAt = sentAt
        this.#beatWallAt = sentWallAt
        this.#cancel = this.#deps.schedule(() => this.#tick(), BEAT_MS)
      }
    }
    this.#onFenced({ stoodStillMs, mayHold: this.#isBack })
  }

  /**
   * The heartbeat is sent every second, so it notices a failing server before other statements do.
   */
  #note(isWorking: boolean): void {
    const { storage } = this.#deps
    if (isWorking) storage.working(this)
    else if (!this.#isFailing)
      storage.failing(this, new Error('the database server does not answer'))
    this.#isFailing = !isWorking
  }
}

const goneMs = (row: Row): number => GONE_MS + row.longest_grant_seconds * 1_000

const knownInstance = (row: Row, now: number): KnownInstance => ({
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
  clockDifferenceMs: Number(row.clock_ms ?? 0),
  beatAt: now - Math.max(0, row.silent_ms),
  goneAt: now - Math.max(0, row.silent_ms) + goneMs(row),
})
