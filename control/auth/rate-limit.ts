/**
 * Limits requests per caller (SPECIFICATION.md §8), and sets the headers that report it:
 * `X-RateLimit-*`, and `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers.
 */
import { createHash } from 'node:crypto'
import type { Context } from 'hono'
import type { LRUCache } from 'lru-cache'
import type { Clocks } from '../../schema/clock.ts'
import { sourceKey } from '../../schema/net/ip-address.ts'
import type { Store } from '../../schema/open.ts'
import { execute } from '../../schema/sql/query.ts'
import type { PreparedStatement } from '../../schema/sql/statements.ts'
import { isUnstored } from '../../schema/storage/storage.ts'
import type { KeyUsage } from './key-usage.ts'
import type { Principal } from './principal.ts'
import { ApiError } from '../http/api-error.ts'
import {
  type ControlEnv,
  answerOf,
  setAnswerHeader,
  type Step,
  whenKnown,
} from '../http/control-env.ts'
import { recentlyUsed } from '../http/recently-used.ts'

const WINDOW_MS = 60_000

/** Requests per minute of a person's session. */
export const SESSION_RPM = 600
/** Requests without a valid credential. Tokens cannot be guessed, so this only stops floods. */
const PER_ADDRESS = 12_000
/**
 * Each request of a node to `/api/ocs` is one call of a customer: the `rate_limit_rpm` of its key would
 * reject calls. This limit, 20,000 per second, is more than one process can answer; it only bounds the
 * window.
 */
const PER_NODE = 1_200_000
/** Passwords can be guessed. */
const LOGINS_PER_ADDRESS = 10

type Policy = 'key' | 'node' | 'session' | 'address' | 'login'

interface Bucket {
  readonly window: RequestWindow
  readonly policy: Policy
}

/** Callers remembered per kind. An evicted one starts with an empty window. */
const MAX_CALLERS = 20_000
/** Fewer, because their windows are large. */
const MAX_NODES = 100

/**
 * Keys, sessions and logins are limited on all nodes of a database together. What protects the process, floods of
 * addresses and of other nodes' calls, is limited on each node.
 */
export class RateLimits {
  readonly #permits: Permits | undefined
  readonly #buckets: Readonly<Record<Policy, LRUCache<number | string, Bucket>>> = {
    key: recentlyUsed(MAX_CALLERS),
    node: recentlyUsed(MAX_NODES),
    session: recentlyUsed(MAX_CALLERS),
    address: recentlyUsed(MAX_CALLERS),
    login: recentlyUsed(MAX_CALLERS),
  }

  /** @param permits undefined: no other process serves from this database. */
  constructor(permits: Permits | undefined) {
    this.#permits = permits
  }

  forPrincipal(principal: Principal): Bucket {
    return principal.kind === 'key'
      ? this.#bucket('key', principal.keyId, principal.limits.rateLimitRpm)
      : this.#bucket('session', principal.actor, SESSION_RPM)
  }

  /** Charging is counted apart from other requests of the same key. */
  forNode(keyId: number): Bucket {
    return this.#bucket('node', keyId, PER_NODE)
  }

  forAddress(address: string): Bucket {
    return this.#bucket('address', sourceKey(address), PER_ADDRESS)
  }

  forLogin(address: string): Bucket {
    return this.#bucket('login', sourceKey(address), LOGINS_PER_ADDRESS)
  }

  #bucket(policy: Policy, name: number | string, limit: number): Bucket {
    const buckets = this.#buckets[policy]
    const known = buckets.get(name)
    if (known !== undefined) {
      if (known.window.limit !== limit) known.window.setLimit(limit)
      return known
    }
    const bucket = { window: this.#newWindow(policy, name, limit), policy }
    buckets.set(name, bucket)
    return bucket
  }

  #newWindow(policy: Policy, name: number | string, limit: number): RequestWindow {
    return this.#permits === undefined || policy === 'node' || policy === 'address'
      ? new RateWindow(limit, WINDOW_MS)
      : new SharedWindow(this.#permits, { kind: policy, name: String(name) }, limit, WINDOW_MS)
  }
}

const loginPaths: ReadonlySet<string> = new Set([
  '/api/v1/auth/login',
  '/api/v1/auth/session',
  '/api/client/auth/login',
])

export const isLogin = (c: Context<ControlEnv>): boolean =>
  c.req.method === 'POST' && loginPaths.has(c.req.path)

export function rateLimit(limits: RateLimits, usage: KeyUsage, clocks: Clocks): Step {
  return (c) => {
    const bucket = bucketOf(c, limits)
    const time = clocks.steadyNow()
    const present = clocks.now()
    return whenKnown(bucket.window.admit(time), (isAdmitted) => {
      describe(bucket, time, present, (name, value) => setAnswerHeader(c, name, value))
      if (!isAdmitted) throw exceeded(bucket.window.opensAt(time) - time)
      const principal = acceptedOf(c)
      if (principal?.kind === 'key') answerOf(c).used = usage.seen(principal.keyId, present)
    })
  }
}

/**
 * Counts what a request holds besides itself, such as the other members of a batch; 429 when the window has no
 * room for all of them.
 */
export const countMembers =
  (limits: RateLimits, clocks: Clocks) =>
  async (c: Context<ControlEnv>, more: number): Promise<void> => {
    const bucket = bucketOf(c, limits)
    const time = clocks.steadyNow()
    let isAdmitted = true
    for (let count = 0; count < more && isAdmitted; count += 1)
      isAdmitted = await bucket.window.admit(time)
    describe(bucket, time, clocks.now(), (name, value) => answerOf(c).changeEarly(name, value))
    if (!isAdmitted) throw exceeded(bucket.window.opensAt(time) - time)
  }

function acceptedOf(c: Context<ControlEnv>): Principal | undefined {
  const presented = c.get('presented')
  return presented.kind === 'accepted' ? presented.principal : undefined
}

function bucketOf(c: Context<ControlEnv>, limits: RateLimits): Bucket {
  const principal = acceptedOf(c)
  if (isLogin(c)) return limits.forLogin(c.get('clientAddress'))
  if (principal === undefined) return limits.forAddress(c.get('clientAddress'))
  const isCharging = c.req.path.startsWith('/api/ocs/') && principal.scopes.has('ocs:write')
  return isCharging && principal.kind === 'key'
    ? limits.forNode(principal.keyId)
    : limits.forPrincipal(principal)
}

/**
 * Sets the headers for what was rejected before it was a request (400, 408, 431), and counts a hit of its
 * address.
 */
export function describeRefused(
  limits: RateLimits,
  address: string,
  clocks: Clocks,
  set: (name: string, value: string) => void,
): void {
  const bucket = limits.forAddress(address)
  const time = clocks.steadyNow()
  // At once: windows of addresses are of this process alone.
  void bucket.window.admit(time)
  describe(bucket, time, clocks.now(), set)
}

/** The window uses steady time; `present` is the time of other clocks. */
function describe(
  { window, policy }: Bucket,
  now: number,
  present: number,
  set: (name: string, value: string) => void,
): void {
  const remaining = String(window.remaining(now))
  const resetsAt = window.oldestLeavesAt(now)
  const limit = String(window.limit)
  set('X-RateLimit-Limit', limit)
  set('X-RateLimit-Remaining', remaining)
  set('X-RateLimit-Reset', String(Math.ceil((resetsAt - now + present) / 1_000)))
  const seconds = Math.ceil((resetsAt - now) / 1_000)
  set('RateLimit-Policy', `"${policy}";q=${limit};w=${WINDOW_MS / 1_000}`)
  set('RateLimit', `"${policy}";r=${remaining};t=${seconds}`)
}

export const exceeded = (waitMs: number): ApiError =>
  new ApiError(429, 'rate_limited', 'Too many requests', {
    headers: { 'Retry-After': String(Math.max(1, Math.ceil(waitMs / 1_000))) },
  })

/** How many requests of a client are admitted. Times are those of one steady clock, in milliseconds. */
export interface RequestWindow {
  readonly limit: number
  /** Counts a request unless the window is full: a denied one uses no quota. */
  admit(now: number): boolean | Promise<boolean>
  remaining(now: number): number
  /** When the oldest hit leaves the window; `now` when there is none. */
  oldestLeavesAt(now: number): number
  /** When the next hit will be admitted. */
  opensAt(now: number): number
  setLimit(limit: number): void
}

/**
 * An exact rolling window: at most `limit` hits in any `windowMs` milliseconds. The time of each hit is
 * stored in a ring that grows up to the limit, so memory grows only with use. 0.13 µs per hit.
 */
export class RateWindow implements RequestWindow {
  readonly #windowMs: number
  #limit: number
  #ring: Float64Array
  /** Index of the oldest hit. */
  #start = 0
  #count = 0
  /** The clock may step back; the window does not. */
  #latest = -Infinity

  constructor(limit: number, windowMs: number) {
    this.#limit = limit
    this.#windowMs = windowMs
    this.#ring = new Float64Array(Math.min(limit, INITIAL_CAPACITY))
  }

  get limit(): number {
    return this.#limit
  }

  /** Counts a hit unless the window is full: a denied hit uses no quota. */
  admit(now: number): boolean {
    const time = this.#forget(now)
    if (this.#count >= this.#limit) return false
    if (this.#count === this.#ring.length) this.#resize(this.#count * 2)
    this.#ring[(this.#start + this.#count) % this.#ring.length] = time
    this.#count += 1
    return true
  }

  isFull(now: number): boolean {
    this.#forget(now)
    return this.#count >= this.#limit
  }

  remaining(now: number): number {
    this.#forget(now)
    return Math.max(0, this.#limit - this.#count)
  }

  /** When the oldest hit leaves the window, in milliseconds; `now` when there is none. */
  oldestLeavesAt(now: number): number {
    this.#forget(now)
    return this.#count === 0 ? now : this.#hit(0) + this.#windowMs
  }

  /** When the next hit will be admitted. After the limit was lowered, more than one hit must leave first. */
  opensAt(now: number): number {
    this.#forget(now)
    return this.#count < this.#limit ? now : this.#hit(this.#count - this.#limit) + this.#windowMs
  }

  /** Takes effect immediately; earlier hits count against the new limit. */
  setLimit(limit: number): void {
    this.#limit = limit
  }

  clear(): void {
    this.#count = 0
  }

  /** A hit at `t` counts until `t + windowMs`, exclusive. */
  #forget(now: number): number {
    const time = Math.max(now, this.#latest)
    this.#latest = time
    while (this.#count > 0 && this.#hit(0) + this.#windowMs <= time) {
      this.#start = (this.#start + 1) % this.#ring.length
      this.#count -= 1
    }
    return time
  }

  #hit(index: number): number {
    return this.#ring[(this.#start + index) % this.#ring.length] ?? 0
  }

  #resize(capacity: number): void {
    const ring = new Float64Array(Math.max(1, Math.min(capacity, this.#limit)))
    for (let i = 0; i < this.#count; i += 1) ring[i] = this.#hit(i)
    this.#ring = ring
    this.#start = 0
  }
}

const INITIAL_CAPACITY = 16

/** What is counted together, such as the requests of a key. */
export interface CountedBy {
  readonly kind: 'key' | 'session' | 'login' | 'failed login'
  /** May be text of a client. */
  readonly name: string
}

export interface Granted {
  /** From 0 to as many as were wanted. */
  readonly granted: number
  /** Of the window, by all nodes, with these. */
  readonly used: number
  /** When the oldest ones leave the window. */
  readonly opensInMs: number
}

interface Row {
  readonly granted: number
  readonly used: number
  readonly opens_in_ms: number
}

/** Counts that the nodes of one database share: how often something has happened within a window. */
export class Permits {
  readonly #take: PreparedStatement<Row>
  readonly #forget: PreparedStatement<unknown>

  /** @param store on a database server. */
  constructor(store: Pick<Store, 'statements'>) {
    this.#take = store.statements.prepare('SELECT * FROM take_permits($1, $2, $3, $4)')
    this.#forget = store.statements.prepare('DELETE FROM rate_grant WHERE bucket = $1')
  }

  /** Takes up to `wanted` of the `limit` that all nodes together have in each window. */
  async take(bucket: CountedBy, limit: number, wanted: number, windowMs: number): Promise<Granted> {
    const row = await this.#take.get([nameOf(bucket), limit, wanted, windowMs])
    if (row === undefined) throw new Error('take_permits returned no row')
    return { granted: row.granted, used: row.used, opensInMs: Math.max(1, row.opens_in_ms) }
  }

  /** Begins the window of a bucket anew. */
  async clear(bucket: CountedBy): Promise<void> {
    await this.#forget.run([nameOf(bucket)])
  }
}

/** Deletes a few permits whose windows ended before this time. Milliseconds UTC. Resolves with their number. */
export function forgetPermits(
  store: Pick<Store, 'statements' | 'db'>,
  before: number,
  limit: number,
): Promise<number> {
  const old = store.db
    .selectFrom('rate_grant')
    .select('id')
    .where('ends_at', '<', before)
    .limit(limit)
  return execute(store, store.db.deleteFrom('rate_grant').where('id', 'in', old))
}

const nameOf = ({ kind, name }: CountedBy): string =>
  `${kind} ${createHash('sha256').update(name).digest('base64url')}`

const USABLE_MS = 5_000
/** A node takes at most this part of the limit at once. */
const LARGEST_PART = 1 / 25
/**
 * While the database is away, each node admits this part of the limit by itself: 16 nodes together do not exceed it.
 * In the minute in which it went away, what was admitted before is added to that.
 */
const PART_ALONE = 1 / 16
/** So long it is not asked again. */
const AWAY_MS = 1_000

/**
 * A rolling window of requests that several nodes admit together: never more than the limit. A node takes permits
 * from the database, one at first and more while they are used up quickly, so that a client at its
 * limit costs a node some thirty statements a minute. A permit is used within five seconds or not at all, and counts for a minute
 * after these: a client that is at its limit gets it in each 65 s, and permits that a node did not use are lost to the
 * others for as long.
 */
export class SharedWindow implements RequestWindow {
  readonly #permits: Permits
  readonly #bucket: CountedBy
  readonly #windowMs: number
  readonly #alone: RateWindow
  #limit: number
  #left = 0
  #usableUntil = -Infinity
  #wanted = 1
  #used = 0
  #opensAt = -Infinity
  #closedUntil = -Infinity
  #isAway = false
  #asksAgainAt = -Infinity
  #asking: Promise<void> | undefined

  constructor(permits: Permits, bucket: CountedBy, limit: number, windowMs: number) {
    this.#permits = permits
    this.#bucket = bucket
    this.#limit = limit
    this.#windowMs = windowMs
    this.#alone = new RateWindow(partOf(limit, PART_ALONE), windowMs)
  }

  get limit(): number {
    return this.#limit
  }

  /** `now` is steady time. */
  admit(now: number): boolean | Promise<boolean> {
    return this.#admitAtOnce(now) ?? this.#admitLater(now)
  }

  remaining(now: number): number {
    if (this.#isAway) return this.#alone.remaining(now)
    const left = now < this.#usableUntil ? this.#left : 0
    return Math.max(0, this.#limit - this.#used) + left
  }

  oldestLeavesAt(now: number): number {
    return Math.max(now, this.#isAway ? this.#alone.oldestLeavesAt(now) : this.#opensAt)
  }

  opensAt(now: number): number {
    return Math.max(now, this.#isAway ? this.#alone.opensAt(now) : this.#closedUntil)
  }

  setLimit(limit: number): void {
    this.#limit = limit
    this.#alone.setLimit(partOf(limit, PART_ALONE))
    this.#left = 0
    this.#closedUntil = -Infinity
  }

  /** Undefined: the database has to be asked. */
  #admitAtOnce(now: number): boolean | undefined {
    if (this.#isAway) return this.#admitAlone(now)
    if (now < this.#closedUntil) return false
    if (this.#left === 0 || now >= this.#usableUntil) return undefined
    this.#left -= 1
    return true
  }

  /** No request waits for a database that is away. */
  #admitAlone(now: number): boolean {
    if (now >= this.#asksAgainAt) this.#asked(now).catch(() => undefined)
    return this.#alone.admit(now)
  }

  async #admitLater(now: number): Promise<boolean> {
    for (;;) {
      await this.#asked(now)
      const verdict = this.#admitAtOnce(now)
      if (verdict !== undefined) return verdict
    }
  }

  /** One question at a time. */
  #asked(now: number): Promise<void> {
    this.#asking ??= this.#ask(now).finally(() => (this.#asking = undefined))
    return this.#asking
  }

  /** From before the question on, because the answer may be late. */
  async #ask(now: number): Promise<void> {
    const isBusy = this.#left === 0 && now < this.#usableUntil
    const most = partOf(this.#limit, LARGEST_PART)
    this.#wanted = isBusy ? Math.min(this.#wanted * 2, most) : 1
    try {
      const windowMs = this.#windowMs + USABLE_MS
      const { granted, used, opensInMs } = await this.#permits.take(
        this.#bucket,
        this.#limit,
        this.#wanted,
        windowMs,
      )
      this.#left = granted
      this.#used = used
      this.#usableUntil = now + USABLE_MS
      this.#opensAt = now + opensInMs
      if (granted === 0) this.#closedUntil = this.#opensAt
      this.#isAway = false
    } catch (error) {
      if (!isUnstored(error)) throw error
      this.#isAway = true
      this.#asksAgainAt = now + AWAY_MS
    }
  }
}

const partOf = (limit: number, part: number): number => Math.max(1, Math.floor(limit * part))
