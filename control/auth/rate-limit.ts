/**
 * Limits requests per caller (SPECIFICATION.md §8), and sets the headers that report it:
 * `X-RateLimit-*`, and `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers.
 */
import { createHash } from 'node:crypto'
import type { Context } from 'hono'
import type { LRUCache } from 'lru-cache'
import type { Clocks } from '../../schema/clock.ts'
import type { RequestShares, Share } from '../../schema/contracts/limits.ts'
import { sourceKey } from '../../schema/net/ip-address.ts'
import { recentlyUsed } from '../../schema/recently-used.ts'
import type { KeyUsage } from './key-usage.ts'
import type { Principal } from './principal.ts'
import { ApiError } from '../http/api-error.ts'
import { maxBytes } from '../http/body.ts'
import {
  type ControlEnv,
  answerOf,
  requestHeader,
  setAnswerHeader,
  type Step,
  whenKnown,
} from '../http/control-env.ts'
import type { Platform } from '../http/platform.ts'
import type { WorkBudget, WorkBudgets } from '../http/work-budget.ts'

const WINDOW_MS = 60_000

/** Requests per minute of a person's session. */
export const SESSION_RPM = 600
/** Requests without a valid credential. Tokens cannot be guessed, so this only stops floods. */
const PER_ADDRESS = 12_000
/**
 * Each request of a node to `/api/ocs` is one call of a customer: the `rate_limit_rpm` of its key
 * would reject calls. This limit, 20,000 per second, is more than one process can answer; it only
 * bounds the window.
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
 * Keys, sessions and logins are limited on all nodes of a database together. What protects the
 * process, floods of addresses and of other nodes' calls, is limited on each node.
 */
export class RateLimits {
  readonly #windows: RequestWindows
  readonly #buckets: Readonly<Record<Policy, LRUCache<number | string, Bucket>>> = {
    key: recentlyUsed(MAX_CALLERS, closeWindow),
    node: recentlyUsed(MAX_NODES),
    session: recentlyUsed(MAX_CALLERS, closeWindow),
    address: recentlyUsed(MAX_CALLERS),
    login: recentlyUsed(MAX_CALLERS, closeWindow),
  }

  constructor(windows: RequestWindows) {
    this.#windows = windows
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
    return policy === 'node' || policy === 'address'
      ? new RateWindow(limit, WINDOW_MS)
      : this.#windows.open(policy, String(name), limit, WINDOW_MS)
  }
}

const closeWindow = ({ window }: Bucket): void => window.close?.()

const loginPaths: ReadonlySet<string> = new Set([
  '/api/v1/auth/login',
  '/api/v1/auth/session',
  '/api/client/auth/login',
])

export const isLogin = (c: Context<ControlEnv>): boolean =>
  c.req.method === 'POST' && loginPaths.has(c.req.path)

export function rateLimit(
  limits: RateLimits,
  budgets: WorkBudgets,
  usage: KeyUsage,
  clocks: Clocks,
): Step {
  return (c) => {
    const bucket = bucketOf(c, limits)
    const time = clocks.steadyNow()
    const present = clocks.now()
    const budget = bucket.policy === 'node' ? undefined : budgetOf(c, budgets)
    const bytes = Number(requestHeader(c, 'content-length') ?? 0)
    if (budget !== undefined && budget.waitMs() > 0) {
      describe(bucket, time, present, (name, value) => setAnswerHeader(c, name, value))
      throw budget.refusal(bytes)
    }
    c.set('budget', budget)
    // Bodies that are announced together do not all find room. A larger one will be refused unread.
    budget?.takeBytes(Math.min(bytes, maxBytes(c.req.path)))
    void budget?.measure()
    return whenKnown(bucket.window.admit(time), (isAdmitted) => {
      describe(bucket, time, present, (name, value) => setAnswerHeader(c, name, value))
      if (!isAdmitted) throw exceeded(bucket.window.opensAt(time) - time)
      const principal = acceptedOf(c)
      if (principal?.kind === 'key') answerOf(c).used = usage.seen(principal.keyId, present)
    })
  }
}

/**
 * Counts what a request holds besides itself, such as the other members of a batch; 429 when the
 * window has no room for all of them.
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

/** Who does not act for a tenant is counted alone. */
function budgetOf(c: Context<ControlEnv>, budgets: WorkBudgets): WorkBudget {
  const principal = acceptedOf(c)
  if (principal === undefined) return budgets.of('address', sourceKey(c.get('clientAddress')))
  const { tenantId, actor } = principal
  return tenantId === null ? budgets.of('platform', actor) : budgets.of('tenant', tenantId)
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
 * Sets the headers for what was rejected before it was a request (400, 408, 431), and counts a hit
 * of its address.
 */
export function describeRefused(
  limits: RateLimits,
  address: string,
  clocks: Clocks,
  set: (name: string, value: string) => void,
): void {
  const bucket = limits.forAddress(address)
  const time = clocks.steadyNow()
  // This takes effect at once: windows of addresses belong to this process alone.
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

/**
 * How many requests of a client are admitted. Times are those of one steady clock, in milliseconds.
 */
export interface RequestWindow {
  readonly limit: number
  /** Counts a request unless the window is full: a denied one uses no quota. */
  admit(now: number): boolean | Promise<boolean>
  /** Whether a request would be denied. */
  isFull(now: number): boolean | Promise<boolean>
  remaining(now: number): number
  /** When the oldest hit leaves the window; `now` when there is none. */
  oldestLeavesAt(now: number): number
  /** When the next hit will be admitted. */
  opensAt(now: number): number
  setLimit(limit: number): void
  /** Begins to count anew, on all nodes. */
  clear(): void
  /** It is not used any more. Absent: nobody has to know. */
  close?(): void
}

/** Opens the windows of this node. */
export class RequestWindows {
  readonly #deps: Pick<Platform, 'requestShares' | 'steadyNow'>

  constructor(deps: Pick<Platform, 'requestShares' | 'steadyNow'>) {
    this.#deps = deps
  }

  /** @param name what is counted together, such as `17` of keys; may be text of a client. */
  open(kind: SharedKind, name: string, limit: number, windowMs: number): RequestWindow {
    const { requestShares: shares, steadyNow } = this.#deps
    if (shares === undefined) return new RateWindow(limit, windowMs)
    const resource = `${kind} ${createHash('sha256').update(name).digest('base64url').slice(0, 22)}`
    return new SharedWindow(shares, resource, limit, windowMs, steadyNow)
  }
}

type SharedKind = 'key' | 'session' | 'login' | 'failed login'

/**
 * An exact rolling window: at most `limit` hits in any `windowMs` milliseconds. The time of each
 * hit is stored in a ring that grows up to the limit, so memory grows only with use. 0.13 µs per
 * hit.
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

  /** Hits in the window. */
  count(now: number): number {
    this.#forget(now)
    return this.#count
  }

  isFull(now: number): boolean {
    return this.count(now) >= this.#limit
  }

  remaining(now: number): number {
    return Math.max(0, this.#limit - this.count(now))
  }

  /** When the oldest hit leaves the window, in milliseconds; `now` when there is none. */
  oldestLeavesAt(now: number): number {
    this.#forget(now)
    return this.#count === 0 ? now : this.#hit(0) + this.#windowMs
  }

  /**
   * When the next hit will be admitted. After the limit was lowered, more than one hit must leave
   * first.
   */
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

/**
 * While the database is away, a node admits this part of the limit: 16 nodes together do not exceed
 * it.
 */
const PART_ALONE = 1 / 16

/**
 * A rolling window of requests that several nodes admit together: never more than the limit. The
 * node counts its own requests, and has a share of the limit for them.
 */
class SharedWindow implements RequestWindow {
  readonly #hits: RateWindow
  readonly #share: Share
  readonly #shares: RequestShares
  readonly #resource: string
  readonly #windowMs: number

  constructor(
    shares: RequestShares,
    resource: string,
    limit: number,
    windowMs: number,
    now: () => number,
  ) {
    this.#hits = new RateWindow(limit, windowMs)
    this.#shares = shares
    this.#resource = resource
    this.#windowMs = windowMs
    const used = (): number => this.#hits.count(now())
    this.#share = shares.of(resource, used, () => this.#hits.clear())
  }

  get limit(): number {
    return this.#hits.limit
  }

  admit(now: number): boolean | Promise<boolean> {
    if (this.#hits.isFull(now)) return false
    if (this.#share.admits(this.limit)) return this.#hits.admit(now)
    // No request waits for a database that is away.
    return this.#share.isAnswered ? this.#ask(now) : this.#admitAlone(now)
  }

  async isFull(now: number): Promise<boolean> {
    if (this.#hits.isFull(now)) return true
    const hold = await this.#share.obtain(this.limit)
    hold.end()
    return hold.isKnown ? !hold.isGiven : this.#aloneRemaining(now) === 0
  }

  remaining(now: number): number {
    if (!this.#share.isAnswered) return this.#aloneRemaining(now)
    return Math.max(0, this.#hits.remaining(now) - this.#share.elsewhere)
  }

  oldestLeavesAt(now: number): number {
    return this.#hits.oldestLeavesAt(now)
  }

  /** When requests of other nodes leave the window is not known here. */
  opensAt(now: number): number {
    if (this.#hits.isFull(now)) return this.#hits.opensAt(now)
    return this.#hits.count(now) > 0 ? this.#hits.oldestLeavesAt(now) : now + this.#windowMs
  }

  setLimit(limit: number): void {
    this.#hits.setLimit(limit)
  }

  clear(): void {
    this.#hits.clear()
    this.#shares.reset(this.#resource)
  }

  close(): void {
    this.#shares.forget(this.#resource)
  }

  async #ask(now: number): Promise<boolean> {
    const hold = await this.#share.obtain(this.limit)
    const isGiven = hold.isGiven && this.#share.admits(this.limit, 1)
    const isAdmitted = hold.isKnown ? isGiven && this.#hits.admit(now) : this.#admitAlone(now)
    hold.end()
    return isAdmitted
  }

  #admitAlone(now: number): boolean {
    return this.#aloneRemaining(now) > 0 && this.#hits.admit(now)
  }

  #aloneRemaining(now: number): number {
    const part = Math.max(1, Math.floor(this.limit * PART_ALONE))
    return Math.max(0, part - this.#hits.count(now))
  }
}
