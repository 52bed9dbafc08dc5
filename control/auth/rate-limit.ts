/**
 * Limits requests per caller (SPECIFICATION.md §8), and sets the headers that report it:
 * `X-RateLimit-*`, and `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers.
 */
import type { Clocks } from '../../schema/clock.ts'
import type { Context } from 'hono'
import type { LRUCache } from 'lru-cache'
import { sourceKey } from '../../schema/net/source-address.ts'
import { SESSION_RPM } from './keys/key-limits.ts'
import type { KeyUsage } from './keys/key-usage.ts'
import type { Principal } from './principal.ts'
import { ApiError } from '../http/api-error.ts'
import {
  answerOf,
  type ControlEnv,
  setAnswerHeader,
  type Step,
  whenKnown,
} from '../http/control-env.ts'
import type { Permits } from './permits.ts'
import { RateWindow, type RequestWindow } from './rate-window.ts'
import { SharedWindow } from './shared-window.ts'
import { recentlyUsed } from '../http/recently-used.ts'

const WINDOW_MS = 60_000

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

/** Callers remembered per kind. An evicted one starts with an empty window. */
const MAX_CALLERS = 20_000
/** Fewer, because their windows are large. */
const MAX_NODES = 100

interface Bucket<W extends RequestWindow = RequestWindow> {
  readonly window: W
  readonly policy: 'key' | 'node' | 'session' | 'address' | 'login'
}

/**
 * Keys, sessions and logins are limited on all nodes of a database together. What protects the process, floods of
 * addresses and of other nodes' calls, is limited on each node.
 */
export class RateLimits {
  readonly #permits: Permits | undefined
  readonly #keys = recentlyUsed<number, Bucket>(MAX_CALLERS)
  readonly #nodes = recentlyUsed<number, Bucket<RateWindow>>(MAX_NODES)
  readonly #sessions = recentlyUsed<string, Bucket>(MAX_CALLERS)
  readonly #addresses = recentlyUsed<string, Bucket<RateWindow>>(MAX_CALLERS)
  readonly #logins = recentlyUsed<string, Bucket>(MAX_CALLERS)

  /** @param permits undefined: no other process serves from this database. */
  constructor(permits: Permits | undefined) {
    this.#permits = permits
  }

  forPrincipal(principal: Principal): Bucket {
    return principal.kind === 'key'
      ? this.#shared(this.#keys, principal.keyId, 'key', principal.limits.rateLimitRpm)
      : this.#shared(this.#sessions, principal.actor, 'session', SESSION_RPM)
  }

  /** Charging is counted apart from other requests of the same key. */
  forNode(keyId: number): Bucket<RateWindow> {
    return bucketIn(this.#nodes, keyId, 'node', ownWindow(PER_NODE))
  }

  forAddress(address: string): Bucket<RateWindow> {
    return bucketIn(this.#addresses, sourceKey(address), 'address', ownWindow(PER_ADDRESS))
  }

  forLogin(address: string): Bucket {
    return this.#shared(this.#logins, sourceKey(address), 'login', LOGINS_PER_ADDRESS)
  }

  #shared<K extends string | number>(
    buckets: LRUCache<K, Bucket>,
    name: K,
    policy: 'key' | 'session' | 'login',
    limit: number,
  ): Bucket {
    const permits = this.#permits
    const make = (): RequestWindow =>
      permits === undefined
        ? new RateWindow(limit, WINDOW_MS)
        : new SharedWindow(permits, { kind: policy, name: String(name) }, limit, WINDOW_MS)
    const bucket = bucketIn(buckets, name, policy, make)
    if (bucket.window.limit !== limit) bucket.window.setLimit(limit)
    return bucket
  }
}

const ownWindow = (limit: number) => (): RateWindow => new RateWindow(limit, WINDOW_MS)

function bucketIn<K extends string | number, W extends RequestWindow>(
  buckets: LRUCache<K, Bucket<W>>,
  name: K,
  policy: Bucket['policy'],
  make: () => W,
): Bucket<W> {
  const known = buckets.get(name)
  if (known !== undefined) return known
  const bucket = { window: make(), policy }
  buckets.set(name, bucket)
  return bucket
}

const loginPaths: ReadonlySet<string> = new Set([
  '/api/v1/auth/login',
  '/api/v1/auth/session',
  '/api/client/auth/login',
])

export const isLogin = (c: Context<ControlEnv>): boolean =>
  c.req.method === 'POST' && loginPaths.has(c.req.path)

const isCharging = (c: Context<ControlEnv>, { scopes }: Principal): boolean =>
  c.req.path.startsWith('/api/ocs/') && scopes.has('ocs:write')

export function rateLimit(limits: RateLimits, usage: KeyUsage, clocks: Clocks): Step {
  return (c) => {
    const presented = c.get('presented')
    const principal = presented.kind === 'accepted' ? presented.principal : undefined
    const bucket = bucketOf(c, limits, principal)
    const time = clocks.steadyNow()
    const present = clocks.now()
    return whenKnown(bucket.window.admit(time), (isAdmitted) => {
      describe(bucket, time, present, (name, value) => setAnswerHeader(c, name, value))
      if (!isAdmitted) throw exceeded(bucket.window.opensAt(time) - time)
      if (principal?.kind === 'key') answerOf(c).used = usage.seen(principal.keyId, present)
    })
  }
}

/**
 * Counts what a request holds beside itself, such as the other members of a batch; 429 when the window has no
 * room for all of them.
 */
export const countMembers =
  (limits: RateLimits, clocks: Clocks) =>
  async (c: Context<ControlEnv>, more: number): Promise<void> => {
    const presented = c.get('presented')
    const principal = presented.kind === 'accepted' ? presented.principal : undefined
    const bucket = bucketOf(c, limits, principal)
    const time = clocks.steadyNow()
    let isAdmitted = true
    for (let count = 0; count < more && isAdmitted; count += 1)
      isAdmitted = await bucket.window.admit(time)
    describe(bucket, time, clocks.now(), (name, value) => answerOf(c).changeEarly(name, value))
    if (!isAdmitted) throw exceeded(bucket.window.opensAt(time) - time)
  }

function bucketOf(
  c: Context<ControlEnv>,
  limits: RateLimits,
  principal: Principal | undefined,
): Bucket {
  if (isLogin(c)) return limits.forLogin(c.get('clientAddress'))
  if (principal?.kind === 'key' && isCharging(c, principal)) return limits.forNode(principal.keyId)
  if (principal !== undefined) return limits.forPrincipal(principal)
  return limits.forAddress(c.get('clientAddress'))
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
  bucket.window.admit(time)
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
