import type { LRUCache } from 'lru-cache'
import { recentlyUsed } from '../../schema/recently-used.ts'
import { type Bucket, fullBucket, type RefillRate } from './token-buckets.ts'

/**
 * Accounts of one address and port that have shown their passwords, such as the lines of a phone.
 */
const MAX_FLOW_USERS = 16

/** One address and port, with packets of its own to spend. */
export interface ProvenFlow {
  /** Milliseconds UTC. */
  until: number
  readonly bucket: Bucket
  /** The accounts that have authenticated there, the latest first. */
  users: readonly string[]
}

export interface ProvenSource {
  until: number
  /** By port. */
  readonly flows: Map<number, ProvenFlow>
  /** Users that have authenticated there, and until when that counts. */
  readonly users: Map<string, number>
}

interface ProvenLimits extends RefillRate {
  readonly maxSources: number
  /** Ports, and users, of one source: an office behind one address. */
  readonly maxPerSource: number
  /** How long a proof counts; longer than the longest registration. */
  readonly lifeMs: number
}

/**
 * Sources that have answered a nonce with a right password: what is sent to them reaches them, so
 * their address is no forgery. Only a password makes an entry, so a flood of forged sources evicts
 * none.
 */
export class ProvenSources {
  readonly #limits: ProvenLimits
  /** In the order of their last proof. */
  readonly #sources: LRUCache<string, ProvenSource>

  constructor(limits: ProvenLimits) {
    this.#limits = limits
    this.#sources = recentlyUsed(limits.maxSources)
  }

  get size(): number {
    return this.#sources.size
  }

  /** Undefined: it has proved nothing, or too long ago. */
  find(key: string, now: number): ProvenSource | undefined {
    if (this.#sources.size === 0) return undefined
    const source = this.#sources.peek(key)
    return source !== undefined && source.until > now ? source : undefined
  }

  add(key: string, port: number, user: string, now: number): void {
    const until = now + this.#limits.lifeMs
    const source = this.#sources.peek(key) ?? emptySource(until)
    source.until = until
    this.#sources.set(key, source)
    const flow = source.flows.get(port) ?? {
      until,
      bucket: fullBucket(this.#limits, now),
      users: [],
    }
    flow.until = until
    if (flow.users[0] !== user)
      flow.users = [user, ...flow.users.filter((other) => other !== user)].slice(0, MAX_FLOW_USERS)
    this.#renew(source.flows, port, flow)
    this.#renew(source.users, user, until)
    this.#forgetOld(now)
  }

  /** Packets from this port count as unproven again. */
  forget(key: string, port: number): void {
    this.#sources.peek(key)?.flows.delete(port)
  }

  #renew<K, V>(entries: Map<K, V>, name: K, value: V): void {
    entries.delete(name)
    entries.set(name, value)
    if (entries.size <= this.#limits.maxPerSource) return
    // Many at once: each look for the first entry walks over the gaps of those before.
    let surplus = Math.ceil(entries.size / 4)
    for (const oldest of entries.keys()) {
      if (surplus === 0) return
      entries.delete(oldest)
      surplus -= 1
    }
  }

  #forgetOld(now: number): void {
    for (const key of this.#sources.rkeys()) {
      if ((this.#sources.peek(key)?.until ?? 0) > now) return
      this.#sources.delete(key)
    }
  }
}

const emptySource = (until: number): ProvenSource => ({
  until,
  flows: new Map<number, ProvenFlow>(),
  users: new Map<string, number>(),
})
