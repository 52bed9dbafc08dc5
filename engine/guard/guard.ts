/**
 * Who is listened to at all: asked for each packet before it is decoded. Floods are cut to a rate,
 * scanners meet silence, guessers are banned for a while. Carriers and nodes are never shut out. The source
 * of a datagram may be forged: it counts against sources that have proved nothing, and never against others.
 */
import type { Log } from '../../schema/contracts/log.ts'
import { sourceKey } from '../../schema/net/ip-address.ts'
import type { Ban } from '../../schema/contracts/engine.ts'
import { Bans, type StoredBan } from './bans.ts'
import { Failures } from './failures.ts'
import { type IsKnown, KnownSources } from './known-sources.ts'
import { Notices } from './notices.ts'
import { kindOf, kindOfMethod, type PacketKind } from './packet-kind.ts'
import { type ProvenFlow, type ProvenSource, ProvenSources } from './proven.ts'
import { isFromScanner, isScannerName } from './scanners.ts'
import {
  type Bucket,
  type BucketLimits,
  fullBucket,
  type Rate,
  takeFrom,
  TokenBuckets,
} from './token-buckets.ts'

export interface GuardDeps {
  /** Milliseconds UTC. */
  readonly now: () => number
  /** Carriers, nodes and trusted networks. */
  readonly isExempt: IsKnown
  /** Whether a node says that its requests come from there: calls without a token, which may be forged, ban it not. */
  readonly isNode?: (address: string) => boolean
  readonly log: Log
  readonly flood?: Partial<BucketLimits>
  /** What all sources may send together that are neither exempt nor proven. */
  readonly strangers?: Rate
}

/** Where a packet comes from, or says that it comes from. */
export interface PacketSource {
  /** `udp`, whose source is proved by nothing, or one that has connections. */
  readonly protocol: string
  readonly address: string
  readonly port: number
}

/** A few hundred phones behind one address, all switched on at once, stay below. */
const defaultFlood: BucketLimits = { packetsPerSecond: 200, burst: 500, maxSources: 20_000 }
/** A tenth of what one process can read. 10,000 phones that come new register within 10 s. */
const defaultStrangers: Rate = { packetsPerSecond: 2_000, burst: 4_000 }
/** An INVITE that is refused costs about as much as so many other packets. */
const INVITE_COST = 5
const PROOF = { maxSources: 50_000, maxPerSource: 4_096, lifeMs: 7_500_000 }
const MAX_BANS = 10_000
const BAN_MS = 600_000
/** Wrong passwords from one address, whatever the users. */
const addressFailures = { max: 20, windowMs: 60_000, maxKeys: 20_000 }
/** Wrong passwords for one user from one address: further ones are not even checked. */
const userFailures = { max: 10, windowMs: 300_000, maxKeys: 20_000 }
/** Calls from a source that is unknown. */
const unknownCalls = { max: 30, windowMs: 60_000, maxKeys: 20_000 }

/** By an operator; for what only the source itself can have done; for what datagrams with that source did, which may be forged. */
export type BanKind = 'operator' | 'proven' | 'claimed'

/** A ban that this process has found a reason for. */
export interface FoundBan {
  readonly kind: BanKind
  readonly source: string
  readonly reason: Ban['reason']
  readonly durationMs: number
}

/** A source as it is banned and listed, of an address or of such a source. */
export const sourceOf = (given: string): string =>
  given.endsWith('/64') ? given : sourceKey(given)

type Rejection = 'banned' | 'flood' | 'strangers' | 'scanner'

export class Guard {
  readonly #deps: GuardDeps
  readonly #flood: BucketLimits
  readonly #strangers: Rate
  readonly #notices: Notices
  readonly #known: KnownSources
  readonly #proven: ProvenSources
  /** Apart, so that forged datagrams take nothing from the connections of the same address. */
  readonly #datagrams: { readonly sources: TokenBuckets; readonly share: Bucket }
  readonly #connections: { readonly sources: TokenBuckets; readonly share: Bucket }
  readonly #bans = {
    operator: new Bans(MAX_BANS),
    proven: new Bans(MAX_BANS),
    claimed: new Bans(MAX_BANS),
  }
  #onBan: (ban: FoundBan) => void = () => undefined
  readonly #addressFailures = new Failures(addressFailures)
  readonly #flowFailures = new Failures(addressFailures)
  readonly #userFailures = new Failures(userFailures)
  readonly #unknownCalls = new Failures(unknownCalls)
  readonly #claimedCalls = new Failures(unknownCalls)
  readonly #dropped = { banned: 0, flood: 0, strangers: 0, scanner: 0 }
  #banned = 0

  constructor(deps: GuardDeps) {
    this.#deps = deps
    this.#flood = { ...defaultFlood, ...deps.flood }
    this.#strangers = deps.strangers ?? defaultStrangers
    this.#notices = new Notices(deps.log)
    this.#known = new KnownSources(deps.isExempt)
    const { packetsPerSecond, burst } = this.#flood
    this.#proven = new ProvenSources({ ...PROOF, packetsPerSecond, burst })
    const now = deps.now()
    const shared = () => ({
      sources: new TokenBuckets(this.#flood),
      share: fullBucket(this.#strangers, now),
    })
    this.#datagrams = shared()
    this.#connections = shared()
  }

  /** False: the packet is to be dropped in silence. An empty packet is a new connection. */
  admit(source: PacketSource, packet: Buffer | string): boolean {
    return this.#admit(source, kindOf(packet), () => isFromScanner(packet))
  }

  /** The same for a request that another SIP server took: false, it is to be refused. */
  admitRequest(source: PacketSource, method: string, userAgent: string | undefined): boolean {
    const isScanner = (): boolean => userAgent !== undefined && isScannerName(userAgent)
    return this.#admit(source, kindOfMethod(method), isScanner)
  }

  #admit(source: PacketSource, kind: PacketKind, isScanner: () => boolean): boolean {
    const now = this.#deps.now()
    if (this.#known.has(source.address, source.port, now)) return true
    const key = sourceKey(source.address)
    const rejection = this.#rejectionFor(source, key, kind, now) ?? (isScanner() && 'scanner')
    // One that has just become known is heard at once.
    if (!rejection || this.#deps.isExempt(source.address, source.port)) return true
    this.#dropped[rejection] += 1
    if (rejection === 'strangers') this.#notices.tellOnce(notices.strangers, 'all', now)
    else if (rejection !== 'banned') this.#notices.tellOnce(notices[rejection], key, now)
    return false
  }

  /** A wrong password, given with a nonce that this very address was sent. */
  authFailed(source: PacketSource, user: string): void {
    const now = this.#deps.now()
    const key = sourceKey(source.address)
    if (this.#userFailures.add(`${key} ${user}`, now))
      this.#notices.tell('wrong passwords: no more are checked', { source: key, user }, now)
    // A phone that turns to guessing loses what it has proved; the others behind its address do not.
    if (this.#flowFailures.add(`${key} ${source.port}`, now)) this.#proven.forget(key, source.port)
    if (this.#addressFailures.add(key, now)) this.#found('proven', key, 'password_guessing', now)
  }

  /** A phone names a domain that no tenant has: it is told of, and counts for nothing else. */
  unknownDomain({ address }: PacketSource, domain: string): void {
    this.#notices.tellOnce(notices.domain, sourceKey(address), this.#deps.now(), { domain })
  }

  authSucceeded({ address, port }: PacketSource, user: string): void {
    const key = sourceKey(address)
    this.#userFailures.forget(`${key} ${user}`)
    this.#proven.add(key, port, user, this.#deps.now())
  }

  /**
   * Answers as to a wrong password, whatever the password: after too many wrong ones for this user, and
   * at a banned address for users who had not proved to be there before.
   */
  isLockedOut({ address, port }: PacketSource, user: string): boolean {
    const now = this.#deps.now()
    const key = sourceKey(address)
    if (this.#userFailures.isReached(`${key} ${user}`, now)) return true
    if (!this.#bans.proven.has(key, now)) return false
    const proof = this.#proven.find(key, now)
    return flowOf(proof, port, now) === undefined && !((proof?.users.get(user) ?? 0) > now)
  }

  /** A call was refused because its source is unknown. Returns what counts as that source. */
  unknownSource(source: PacketSource): string {
    const now = this.#deps.now()
    const key = sourceKey(source.address)
    // Forged, as far as one can tell: a ban would be told to all nodes, and shown to operators.
    const isNode = this.#deps.isNode?.(source.address) === true
    if (isNode || this.#deps.isExempt(source.address, source.port)) return key
    if (flowOf(this.#proven.find(key, now), source.port, now) !== undefined) return key
    const isClaimed = source.protocol === 'udp'
    const calls = isClaimed ? this.#claimedCalls : this.#unknownCalls
    const kind = isClaimed ? 'claimed' : 'proven'
    if (calls.add(key, now)) this.#found(kind, key, 'unknown_calls', now)
    return key
  }

  /** A request in a call was refused because it comes from another address than its party. No ban: a party may have moved. */
  refusedInCall({ address }: PacketSource, method: string, call: string | undefined): void {
    const fields = { source: sourceKey(address), method, call }
    const message =
      'a request in a call was refused: it comes from none of the addresses of its party'
    this.#notices.tell(message, fields, this.#deps.now())
  }

  /** Whether a phone has proved itself at this address, from whatever port. */
  isProven(address: string): boolean {
    return this.#proven.find(sourceKey(address), this.#deps.now()) !== undefined
  }

  /** Whether a source that has proved nothing is not heard. */
  isBanned(address: string): boolean {
    const key = sourceKey(address)
    return this.#allBans().some((bans) => bans.has(key, this.#deps.now()))
  }

  bans(): readonly Ban[] {
    const now = this.#deps.now()
    return this.#allBans()
      .flatMap((bans) => bans.list(now))
      .toSorted((one, other) => one.since - other.since)
  }

  /** Bans a source by hand. Carriers and nodes go on being heard. */
  ban(address: string, durationMs: number): void {
    const now = this.#deps.now()
    this.#ban({ kind: 'operator', source: sourceKey(address), reason: 'operator', durationMs }, now)
  }

  /** Takes an address, or a source as `bans` shows it. False: it was not banned. */
  unban(source: string): boolean {
    const key = sourceOf(source)
    for (const counts of [this.#addressFailures, this.#unknownCalls, this.#claimedCalls])
      counts.forget(key)
    for (const counts of [this.#userFailures, this.#flowFailures]) counts.forgetAll(`${key} `)
    return this.#allBans().filter((bans) => bans.lift(key)).length > 0
  }

  /** Takes back what `ban` did. What was found here stays, with what counts against the source. */
  endOperatorBan(source: string): void {
    this.#bans.operator.lift(sourceOf(source))
  }

  /** Calls `handler` with each ban that is found here, and not by an operator. */
  onBan(handler: (ban: FoundBan) => void): void {
    this.#onBan = handler
  }

  /** A ban of this node is stored for all nodes. */
  noteStored(kind: BanKind, source: string): void {
    this.#bans[kind].noteStored(source)
  }

  /** Follows the bans that are stored for all nodes, as `Bans.takeStored` says. */
  takeStored(
    bans: readonly (StoredBan & { readonly kind: BanKind })[],
    sources?: ReadonlySet<string>,
  ): void {
    for (const kind of ['operator', 'proven', 'claimed'] as const) {
      const ofKind = bans.filter((ban) => ban.kind === kind).map(({ kind: _, ...ban }) => ban)
      const sorted = ofKind.toSorted((one, other) => one.since - other.since)
      this.#bans[kind].takeStored(sorted, sources)
    }
  }

  /** Present sizes, and totals since the start. */
  telemetry(): Readonly<Record<string, number>> {
    return {
      guard_sources: this.#datagrams.sources.size + this.#connections.sources.size,
      guard_proven_sources: this.#proven.size,
      guard_bans: this.bans().length,
      guard_bans_total: this.#banned,
      guard_dropped_banned_total: this.#dropped.banned,
      guard_dropped_flood_total: this.#dropped.flood,
      guard_dropped_strangers_total: this.#dropped.strangers,
      guard_dropped_scanner_total: this.#dropped.scanner,
    }
  }

  #rejectionFor(
    source: PacketSource,
    key: string,
    kind: PacketKind,
    now: number,
  ): Rejection | undefined {
    if (this.#bans.operator.holds(key, now)) return 'banned'
    const proof = this.#proven.find(key, now)
    const flow = flowOf(proof, source.port, now)
    if (flow !== undefined) return takeFrom(flow.bucket, this.#flood, now) ? undefined : 'flood'
    const isUdp = source.protocol === 'udp'
    if (this.#isBanned(key, kind, isUdp, proof !== undefined, now)) return 'banned'
    const { sources, share } = isUdp ? this.#datagrams : this.#connections
    const bucket = sources.of(key, now)
    if (!takeFrom(bucket, this.#flood, now)) return 'flood'
    const cost = kind === 'invite' ? INVITE_COST : 1
    return takeFrom(share, this.#strangers, now, cost) ? undefined : 'strangers'
  }

  /** A phone behind a banned address may register, and is heard once it has proved who it is. */
  #isBanned(
    key: string,
    kind: PacketKind,
    isUdp: boolean,
    isProven: boolean,
    now: number,
  ): boolean {
    const isSayingWho = kind === 'register' || kind === 'open'
    if (!(isProven && isSayingWho) && this.#bans.proven.holds(key, now)) return true
    return isUdp && !isSayingWho && this.#bans.claimed.holds(key, now)
  }

  #allBans(): readonly Bans[] {
    return Object.values(this.#bans)
  }

  #found(kind: BanKind, source: string, reason: Ban['reason'], now: number): void {
    const ban = { kind, source, reason, durationMs: BAN_MS }
    this.#ban(ban, now)
    this.#onBan(ban)
  }

  #ban({ kind, source, reason, durationMs }: FoundBan, now: number): void {
    this.#banned += 1
    this.#bans[kind].add(source, reason, now, durationMs)
    this.#notices.tell('a source is banned', { source, reason, seconds: durationMs / 1_000 }, now)
  }
}

const notices = {
  flood: 'a source sends too much: the rest is dropped',
  strangers: 'unknown sources send too much in all: the rest is dropped',
  scanner: 'a scanner meets silence',
  domain:
    'a request names a SIP domain that no tenant has, so no password was checked: if it is a phone, give it the domain of its tenant, or give this domain to a tenant',
} as const

function flowOf(
  proof: ProvenSource | undefined,
  port: number,
  now: number,
): ProvenFlow | undefined {
  const flow = proof?.flows.get(port)
  return flow !== undefined && flow.until > now ? flow : undefined
}
