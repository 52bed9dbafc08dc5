/**
 * Limits requests per caller (SPECIFICATION.md §8), and sets the headers that report it:
 * `X-RateLimit-*`, and `RateLimit-Policy` and `RateLimit` of draft-ietf-httpapi-ratelimit-headers.
 */
import type { Context } from 'hono'
import type { LRUCache } from 'lru-cache'
import type { Clocks } from '../../schema/clock.ts'
import { sourceKey } from '../../schema/net/ip-address.ts'
import { recentlyUsed } from '../../schema/recently-used.ts'
import type { KeyUsage } from './key-usage.ts'
import type { Principal } from './principal.ts'
import { RateWindow, type RequestWindow, type RequestWindows } from './rate-window.ts'
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
import type { WorkBudget, WorkBudgets } from '../http/work-budget.ts'

const WINDOW_MS = 60_000

/** Requests per minute of a person's session. */
export const SESSION_RPM = 600
/**
 * Requests per minute of an address without a valid credential. Tokens cannot be guessed, so this
 * only stops floods.
 */
const PER_ADDRESS = 12_000
/**
 * Each request of a node to `/api/ocs` is one call of a customer: the `rate_limit_rpm` of its key
 * would reject calls. This limit, 20,000 per second, is more than one process can answer; it only
 * bounds the window.
 */
const PER_NODE = 1_200_000
/** Logins per minute of an address: passwords can be guessed. */
const LOGINS_PER_ADDRESS = 10

type Policy = 'key' | 'node' | 'session' | 'address' | 'login'

interface Bucket {
  readonly window: RequestWindow
  readonly policy: Policy
}

/** Callers remembered per kind. An evicted one starts with an empty window. */
const MAX_CALLERS = 20_000
/** The same for nodes: fewer, because their windows are large. */
const MAX_NODES = 100

/**
 * Keys, sessions and logins are limited on all instances of a database together. Floods of
 * addresses and of other nodes' calls are limited on each instance, which that protects.
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
  '/api/v1/auth/login/code',
  '/api/v1/auth/login/enrolment',
  '/api/v1/auth/session/code',
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
  // The answer is there at once: windows of addresses are this process's alone.
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
