/**
 * Sources that have answered a nonce with a right password: what is sent to them reaches them, so their
 * address is no forgery. Only a password makes an entry, so a flood of forged sources evicts none.
 */
import { fullBucket, type Bucket, type Rate } from './token-buckets.ts'

/** One address and port, with packets of its own to spend. */
export interface ProvenFlow {
  /** Milliseconds UTC. */
  until: number
  readonly bucket: Bucket
}

export interface ProvenSource {
  until: number
  /** By port. */
  readonly flows: Map<number, ProvenFlow>
  /** Who has proved to be there, and until when that counts. */
  readonly users: Map<string, number>
}

export interface ProvenLimits extends Rate {
  readonly maxSources: number
  /** Ports, and users, of one source: an office behind one address. */
  readonly maxPerSource: number
  /** How long a proof counts; longer than the longest registration. */
  readonly lifeMs: number
}

export class ProvenSources {
  readonly #limits: ProvenLimits
  /** Those that proved themselves last stand at the end. */
  readonly #sources = new Map<string, ProvenSource>()

  constructor(limits: ProvenLimits) {
    this.#limits = limits
  }

  get size(): number {
    return this.#sources.size
  }

  /** Undefined: it has proved nothing, or too long ago. */
  find(key: string, now: number): ProvenSource | undefined {
    if (this.#sources.size === 0) return undefined
    const source = this.#sources.get(key)
    return source !== undefined && source.until > now ? source : undefined
  }

  add(key: string, port: number, user: string, now: number): void {
    const until = now + this.#limits.lifeMs
    const source = this.#sources.get(key) ?? emptySource(until)
    source.until = until
    this.#sources.delete(key)
    this.#sources.set(key, source)
    const flow = source.flows.get(port) ?? { until, bucket: fullBucket(this.#limits, now) }
    flow.until = until
    this.#renew(source.flows, port, flow)
    this.#renew(source.users, user, until)
    this.#forgetOld(now)
  }

  /** What comes from this port counts as unproven again. */
  forget(key: string, port: number): void {
    this.#sources.get(key)?.flows.delete(port)
  }

  #renew<K, V>(entries: Map<K, V>, name: K, value: V): void {
    entries.delete(name)
    entries.set(name, value)
    if (entries.size <= this.#limits.maxPerSource) return
    for (const [oldest] of entries) {
      entries.delete(oldest)
      return
    }
  }

  #forgetOld(now: number): void {
    for (const [key, { until }] of this.#sources) {
      if (until > now && this.#sources.size <= this.#limits.maxSources) return
      this.#sources.delete(key)
    }
  }
}

const emptySource = (until: number): ProvenSource => ({
  until,
  flows: new Map<number, ProvenFlow>(),
  users: new Map<string, number>(),
})
