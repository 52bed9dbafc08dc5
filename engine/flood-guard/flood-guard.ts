/**
 * Admits or drops each packet before it is decoded. Floods are cut to a rate, scanners get no
 * answer, guessers are banned for a while. Carriers and nodes are never shut out. The source of a
 * datagram may be forged: it counts against sources that have proved nothing, and never against
 * others.
 */
import type { Log } from '../../schema/contracts/log.ts'
import { Bans, type StoredBan } from './bans.ts'
import {
  type Bucket,
  type BucketLimits,
  fullBucket,
  type RefillRate,
  takeFrom,
  TokenBuckets,
} from './token-buckets.ts'
import { sourceKey } from '../../schema/net/ip-address.ts'
import type { AccountLock, Ban } from '../../schema/contracts/engine.ts'
import { ProvenSources, type ProvenFlow, type ProvenSource } from './proven-sources.ts'
import { KnownSources, type IsKnown } from './known-sources.ts'
import { Failures } from './failures.ts'
import { StrangerNotices } from './stranger-notices.ts'

interface FloodGuardDeps {
  /** Milliseconds UTC. */
  readonly now: () => number
  /** Carriers, nodes and trusted networks. */
  readonly isExempt: IsKnown
  /**
   * Whether an instance announces this address: it is not banned for calls without a token, which
   * may be forged.
   */
  readonly isInstance?: (address: string) => boolean
  readonly log: Log
  readonly flood?: Partial<BucketLimits>
  /** The rate of all sources together that are neither exempt nor proven. */
  readonly strangers?: RefillRate
}

/** The source of a packet; that of a datagram may be forged. */
interface PacketSource {
  /** `udp`, whose source is proved by nothing, or one that has connections. */
  readonly protocol: string
  readonly address: string
  readonly port: number
}

/** A few hundred phones behind one address, all switched on at once, stay below. */
const defaultFlood: BucketLimits = { packetsPerSecond: 200, burst: 500, maxSources: 20_000 }
/** A tenth of what one process can read. 10,000 phones that come new register within 10 s. */
const defaultStrangers: RefillRate = { packetsPerSecond: 2_000, burst: 4_000 }
/** An INVITE that is refused costs about as much as so many other packets. */
const INVITE_COST = 5
const PROOF = { maxSources: 50_000, maxPerSource: 4_096, lifeMs: 7_500_000 }
const MAX_BANS = 10_000
/** Characters of a URI that the log shows. */
const MAX_SHOWN = 200
const BAN_MS = 600_000
/** Wrong passwords from one address, whatever the users. */
const addressFailures = { max: 20, windowMs: 60_000, maxKeys: 20_000 }
/** Wrong passwords for one account from one address: further ones are not even checked. */
const userFailures = { max: 10, windowMs: 300_000, maxKeys: 20_000 }
/** Calls from a source that is unknown. */
const unknownCalls = { max: 30, windowMs: 60_000, maxKeys: 20_000 }

/**
 * By an operator; for packets that only the source itself can have sent; for datagrams, whose
 * source may be forged.
 */
export type BanKind = 'operator' | 'proven' | 'claimed'

/** A ban that this process has decided on. */
export interface DetectedBan {
  readonly kind: BanKind
  readonly source: string
  readonly reason: Ban['reason']
  readonly durationMs: number
}

/** A source as it is banned and listed, of an address or of such a source. */
export const sourceOf = (given: string): string =>
  given.endsWith('/64') ? given : sourceKey(given)

type Rejection = 'banned' | 'flood' | 'strangers' | 'scanner'

export class FloodGuard {
  readonly #deps: FloodGuardDeps
  readonly #flood: BucketLimits
  readonly #strangers: RefillRate
  readonly #notices: StrangerNotices
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
  #onBan: (ban: DetectedBan) => void = () => undefined
  readonly #addressFailures = new Failures(addressFailures)
  readonly #flowFailures = new Failures(addressFailures)
  readonly #userFailures = new Failures(userFailures)
  /** The part of each address and port in them. */
  readonly #ownFailures = new Failures(userFailures)
  readonly #unknownCalls = new Failures(unknownCalls)
  readonly #claimedCalls = new Failures(unknownCalls)
  readonly #dropped = { banned: 0, flood: 0, strangers: 0, scanner: 0 }
  #banned = 0

  constructor(deps: FloodGuardDeps) {
    this.#deps = deps
    this.#flood = { ...defaultFlood, ...deps.flood }
    this.#strangers = deps.strangers ?? defaultStrangers
    this.#notices = new StrangerNotices(deps.log)
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
    // A source that has just become exempt is admitted at once.
    if (!rejection || this.#deps.isExempt(source.address, source.port)) return true
    this.#dropped[rejection] += 1
    if (rejection === 'strangers') this.#notices.reportOnce(notices.strangers, 'all', now)
    else if (rejection !== 'banned') this.#notices.reportOnce(notices[rejection], key, now)
    return false
  }

  /**
   * A wrong password for an account (`user@domain`), given with a nonce that this very address was
   * sent.
   */
  authFailed(source: PacketSource, user: string): void {
    const now = this.#deps.now()
    const key = sourceKey(source.address)
    this.#ownFailures.add(`${key} ${source.port} ${user}`, now)
    if (this.#userFailures.add(`${key} ${user}`, now))
      this.#notices.report('wrong passwords: no more are checked', { source: key, user }, now)
    // A phone that turns to guessing loses what it has proved; the others behind its address do
    // not.
    if (this.#flowFailures.add(`${key} ${source.port}`, now)) this.#proven.forget(key, source.port)
    if (this.#addressFailures.add(key, now)) this.#detected('proven', key, 'password_guessing', now)
  }

  /** A phone names a domain that no tenant has: this is logged, and has no other effect. */
  unknownDomain({ address }: PacketSource, domain: string): void {
    this.#notices.reportOnce(notices.domain, sourceKey(address), this.#deps.now(), { domain })
  }

  /** Guesses of others at this address still count against them. */
  authSucceeded({ address, port }: PacketSource, user: string): void {
    const key = sourceKey(address)
    const now = this.#deps.now()
    const own = `${key} ${port} ${user}`
    this.#userFailures.take(`${key} ${user}`, this.#ownFailures.countOf(own, now), now)
    this.#ownFailures.forget(own)
    this.#proven.add(key, port, user, now)
  }

  /**
   * Answers as to a wrong password, whatever the password: after too many wrong ones for this
   * account, and at a banned address for accounts that had not proved to be there before. An
   * address and port that has shown the password of the account answers for its own wrong ones
   * alone.
   */
  isLockedOut({ address, port }: PacketSource, user: string): boolean {
    const now = this.#deps.now()
    const key = sourceKey(address)
    if (this.#userFailures.isReached(`${key} ${user}`, now)) {
      const hasShown = flowOf(this.#proven.find(key, now), port, now)?.users.includes(user)
      if (hasShown !== true || this.#ownFailures.isReached(`${key} ${port} ${user}`, now))
        return true
    }
    if (!this.#bans.proven.has(key, now)) return false
    const proof = this.#proven.find(key, now)
    return flowOf(proof, port, now) === undefined && !((proof?.users.get(user) ?? 0) > now)
  }

  /** A call was refused because its source is unknown. Returns what counts as that source. */
  unknownSource(source: PacketSource): string {
    const now = this.#deps.now()
    const key = sourceKey(source.address)
    // Probably forged: a ban would spread to all instances, and be shown to operators.
    const isInstance = this.#deps.isInstance?.(source.address) === true
    if (isInstance || this.#deps.isExempt(source.address, source.port)) return key
    if (flowOf(this.#proven.find(key, now), source.port, now) !== undefined) return key
    const isClaimed = source.protocol === 'udp'
    const calls = isClaimed ? this.#claimedCalls : this.#unknownCalls
    const kind = isClaimed ? 'claimed' : 'proven'
    if (calls.add(key, now)) this.#detected(kind, key, 'unknown_calls', now)
    return key
  }

  /**
   * A request in a call was refused because it comes from another address than its party. No ban: a
   * party may have moved.
   */
  refusedInCall({ address }: PacketSource, method: string, call: string | undefined): void {
    const fields = { source: sourceKey(address), method, call }
    const message =
      'a request in a call was refused: it comes from none of the addresses of its party'
    this.#notices.report(message, fields, this.#deps.now())
  }

  /**
   * The Contact or Record-Route of a party is not followed: it names a place that the party may
   * not.
   */
  wayNotFollowed({ address }: Pick<PacketSource, 'address'>, to: string, call: string | undefined) {
    const fields = { to: to.slice(0, MAX_SHOWN), call }
    this.#notices.reportOnce(notices.way, sourceKey(address), this.#deps.now(), fields)
  }

  /** Whether a phone has proved itself at this address, from whatever port. */
  isProven(address: string): boolean {
    return this.#proven.find(sourceKey(address), this.#deps.now()) !== undefined
  }

  /** Whether packets of this address are dropped unless their source has proved itself. */
  isBanned(address: string): boolean {
    const key = sourceKey(address)
    return this.#allBans().some((bans) => bans.has(key, this.#deps.now()))
  }

  /** Such a ban holds for phones that have proved themselves, too. */
  isBannedByOperator(address: string): boolean {
    return this.#bans.operator.has(sourceKey(address), this.#deps.now())
  }

  bans(): readonly Ban[] {
    const now = this.#deps.now()
    return this.#allBans()
      .flatMap((bans) => bans.list(now))
      .toSorted((one, other) => one.since - other.since)
  }

  /** Bans a source for an operator. Packets of carriers and nodes are admitted all the same. */
  ban(address: string, durationMs: number): void {
    const now = this.#deps.now()
    this.#ban({ kind: 'operator', source: sourceKey(address), reason: 'operator', durationMs }, now)
  }

  /** Takes an address, or a source as `bans` shows it. False: it was not banned. */
  unban(source: string): boolean {
    const key = sourceOf(source)
    for (const counts of [this.#addressFailures, this.#unknownCalls, this.#claimedCalls])
      counts.forget(key)
    const wasLocked = this.locks().some((lock) => lock.source === key)
    for (const counts of [this.#userFailures, this.#ownFailures, this.#flowFailures])
      counts.forgetAll(`${key} `)
    return this.#allBans().filter((bans) => bans.lift(key)).length > 0 || wasLocked
  }

  /** The accounts whose passwords are not checked at an address, because too many were wrong. */
  locks(): readonly AccountLock[] {
    return this.#userFailures.reached(this.#deps.now()).map(({ key, since, until }) => {
      const end = key.indexOf(' ')
      return { source: key.slice(0, end), user: key.slice(end + 1), since, until }
    })
  }

  /** Takes back `ban`. Bans that the guard decided on stay, with the counts against the source. */
  endOperatorBan(source: string): void {
    this.#bans.operator.lift(sourceOf(source))
  }

  /** Calls `handler` with each ban that the guard decides on. */
  onBan(handler: (ban: DetectedBan) => void): void {
    this.#onBan = handler
  }

  /** A ban of this instance is stored for all instances. */
  noteStored(kind: BanKind, source: string): void {
    this.#bans[kind].noteStored(source)
  }

  /** Follows the bans that are stored for all instances, as `Bans.takeStored` says. */
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

  /** A phone behind a banned address may register; after that its packets are admitted. */
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

  #detected(kind: BanKind, source: string, reason: Ban['reason'], now: number): void {
    const ban = { kind, source, reason, durationMs: BAN_MS }
    this.#ban(ban, now)
    this.#onBan(ban)
  }

  #ban({ kind, source, reason, durationMs }: DetectedBan, now: number): void {
    this.#banned += 1
    this.#bans[kind].add(source, reason, now, durationMs)
    this.#notices.report('a source is banned', { source, reason, seconds: durationMs / 1_000 }, now)
  }
}

const notices = {
  flood: 'a source sends too much: the rest is dropped',
  strangers: 'unknown sources send too much in all: the rest is dropped',
  scanner: 'a scanner meets silence',
  way: 'the Contact or Record-Route of a party is not followed: requests go to where it sends from',
  domain:
    'a request names a SIP domain that no tenant has, so no password was checked: if it is ' +
    'a phone, give it the domain of its tenant, or give this domain to a tenant',
} as const

function flowOf(
  proof: ProvenSource | undefined,
  port: number,
  now: number,
): ProvenFlow | undefined {
  const flow = proof?.flows.get(port)
  return flow !== undefined && flow.until > now ? flow : undefined
}

/** The kind of a packet, by its first bytes. `open`: a connection, before its first message. */
type PacketKind = 'register' | 'invite' | 'open' | 'other'

function kindOf(packet: Buffer | string): PacketKind {
  if (packet.length === 0) return 'open'
  if (codeAt(packet, 0) === 0x49 && codeAt(packet, 1) === 0x4e && codeAt(packet, 2) === 0x56)
    return 'invite'
  // REG: of the known methods only REFER begins alike.
  return codeAt(packet, 0) === 0x52 && codeAt(packet, 1) === 0x45 && codeAt(packet, 2) === 0x47
    ? 'register'
    : 'other'
}

function kindOfMethod(method: string): PacketKind {
  if (method === 'INVITE') return 'invite'
  return method === 'REGISTER' ? 'register' : 'other'
}

const codeAt = (packet: Buffer | string, at: number): number | undefined =>
  typeof packet === 'string' ? packet.charCodeAt(at) : packet[at]

/** Programs that scan the internet for SIP servers, as they name themselves in User-Agent. */
const scanners =
  /friendly-scanner|friendly-request|sipvicious|sipcli|sip-?scan|sundayddr|iwar\b|vaxsipuseragent|pplsip|sipptk|\bsmap 0\./i

/** Both spellings that are in use end like this. */
const NAMES = ['-Agent:', '-agent:'] as const
/** Not looked for behind so many bytes; no request of a scanner is as long. */
const MAX_HEAD = 1_500
/** The part of the value that is looked at. */
const MAX_VALUE = 64

/** Whether a request names a scanner as its sender. */
function isFromScanner(packet: Buffer | string): boolean {
  if (isResponse(packet)) return false
  // One copy as a string and searches in it cost a third of searches in the bytes.
  const head = typeof packet === 'string' ? packet : packet.toString('latin1', 0, MAX_HEAD)
  for (const name of NAMES) {
    const at = head.indexOf(name)
    if (at !== -1) return scanners.test(firstLine(head.slice(at + name.length, at + MAX_VALUE)))
  }
  return false
}

/** The same for the value of a User-Agent header. */
const isScannerName = (userAgent: string): boolean => scanners.test(userAgent.slice(0, MAX_VALUE))

function firstLine(text: string): string {
  const end = text.indexOf('\r')
  return end === -1 ? text : text.slice(0, end)
}

/** `SIP/2.0 …`; the only method that begins with S has another second letter. */
const isResponse = (packet: Buffer | string): boolean =>
  typeof packet === 'string' ? packet.startsWith('SI') : packet[0] === 0x53 && packet[1] === 0x49
