/**
 * Who is listened to at all: asked for each packet before it is decoded. Floods are cut to a rate,
 * scanners meet silence, guessers are banned for a while. Carriers and nodes are never shut out.
 */
import { Bans, type Ban, type BanReason } from './bans.ts'
import { Failures } from './failures.ts'
import { isFromScanner, isScannerName } from './scanners.ts'
import { sourceKey } from './source-key.ts'
import { TokenBuckets, type BucketLimits } from './token-buckets.ts'

export interface GuardDeps {
  /** Milliseconds UTC. */
  readonly now: () => number
  /** Carriers, nodes and trusted networks. Asked only about packets that would be dropped. */
  readonly isExempt: (address: string, port: number) => boolean
  readonly log: (
    level: 'info' | 'warn',
    message: string,
    fields: Readonly<Record<string, unknown>>,
  ) => void
  readonly flood?: Partial<BucketLimits>
}

/** A few hundred phones behind one address, all switched on at once, stay below. */
const defaultFlood: BucketLimits = { packetsPerSecond: 200, burst: 500, maxSources: 20_000 }
const MAX_BANS = 10_000
const BAN_MS = 600_000
/** Wrong passwords from one address, whatever the users. */
const addressFailures = { max: 20, windowMs: 60_000, maxKeys: 20_000 }
/** Wrong passwords for one user from one address: further ones are not even checked. */
const userFailures = { max: 10, windowMs: 300_000, maxKeys: 20_000 }
/** Calls from a source that is nobody's. */
const unknownCalls = { max: 30, windowMs: 60_000, maxKeys: 20_000 }
/** A source that was told about is not told about again for this long. */
const QUIET_MS = 600_000
const MAX_TOLD = 20_000

export class Guard {
  readonly #deps: GuardDeps
  readonly #buckets: TokenBuckets
  readonly #bans = new Bans(MAX_BANS)
  readonly #addressFailures = new Failures(addressFailures)
  readonly #userFailures = new Failures(userFailures)
  readonly #unknownCalls = new Failures(unknownCalls)
  /** First drops: each source is logged once. */
  readonly #told = new Failures({ max: 1, windowMs: QUIET_MS, maxKeys: MAX_TOLD })
  readonly #dropped = { banned: 0, flood: 0, scanner: 0 }
  #banned = 0

  constructor(deps: GuardDeps) {
    this.#deps = deps
    this.#buckets = new TokenBuckets({ ...defaultFlood, ...deps.flood })
  }

  /** False: the packet is to be dropped in silence. */
  admit(
    source: { readonly address: string; readonly port: number },
    packet: Buffer | string,
  ): boolean {
    return this.#admit(source, () => isFromScanner(packet))
  }

  /** The same for a request that another SIP server took: false, it is to be refused. */
  admitRequest(
    source: { readonly address: string; readonly port: number },
    userAgent: string | undefined,
  ): boolean {
    return this.#admit(source, () => userAgent !== undefined && isScannerName(userAgent))
  }

  #admit(
    source: { readonly address: string; readonly port: number },
    isScanner: () => boolean,
  ): boolean {
    const now = this.#deps.now()
    const key = sourceKey(source.address)
    const objection = this.#objectionTo(key, isScanner, now)
    if (objection === undefined || this.#deps.isExempt(source.address, source.port)) return true
    this.#dropped[objection] += 1
    if (objection !== 'banned' && this.#told.add(`${objection} ${key}`, now))
      this.#deps.log('warn', notices[objection], { source: key })
    return false
  }

  /** A wrong password, given with a nonce that this very address was sent. */
  authFailed(address: string, user: string): void {
    const now = this.#deps.now()
    const key = sourceKey(address)
    if (this.#userFailures.add(`${key} ${user}`, now))
      this.#deps.log('warn', 'wrong passwords: no more are checked', { source: key, user })
    if (this.#addressFailures.add(key, now)) this.#ban(key, 'password_guessing', BAN_MS)
  }

  authSucceeded(address: string, user: string): void {
    this.#userFailures.forget(`${sourceKey(address)} ${user}`)
  }

  /** Answers as to a wrong password, whatever the password. */
  isLockedOut(address: string, user: string): boolean {
    return this.#userFailures.isReached(`${sourceKey(address)} ${user}`, this.#deps.now())
  }

  /** A call was refused because nobody knows its source. */
  unknownSource(address: string): void {
    const key = sourceKey(address)
    if (this.#unknownCalls.add(key, this.#deps.now())) this.#ban(key, 'unknown_calls', BAN_MS)
  }

  bans(): readonly Ban[] {
    return this.#bans.list(this.#deps.now())
  }

  /** Bans a source by hand. Carriers and nodes go on being heard. */
  ban(address: string, durationMs: number): void {
    this.#ban(sourceKey(address), 'operator', durationMs)
  }

  /** Takes an address, or a source as `bans` shows it. False: it was not banned. */
  unban(source: string): boolean {
    const key = source.endsWith('/64') ? source : sourceKey(source)
    this.#addressFailures.forget(key)
    this.#unknownCalls.forget(key)
    this.#userFailures.forgetAll(`${key} `)
    return this.#bans.lift(key)
  }

  /** Present sizes, and totals since the start. */
  telemetry(): Readonly<Record<string, number>> {
    return {
      guard_sources: this.#buckets.size,
      guard_bans: this.bans().length,
      guard_bans_total: this.#banned,
      guard_dropped_banned_total: this.#dropped.banned,
      guard_dropped_flood_total: this.#dropped.flood,
      guard_dropped_scanner_total: this.#dropped.scanner,
    }
  }

  #objectionTo(
    key: string,
    isScanner: () => boolean,
    now: number,
  ): 'banned' | 'flood' | 'scanner' | undefined {
    if (this.#bans.holds(key, now)) return 'banned'
    if (!this.#buckets.take(key, now)) return 'flood'
    return isScanner() ? 'scanner' : undefined
  }

  #ban(source: string, reason: BanReason, durationMs: number): void {
    this.#banned += 1
    this.#bans.add(source, reason, this.#deps.now(), durationMs)
    this.#deps.log('warn', 'a source is banned', { source, reason, seconds: durationMs / 1_000 })
  }
}

const notices = {
  flood: 'a source sends too much: the rest is dropped',
  scanner: 'a scanner meets silence',
} as const
