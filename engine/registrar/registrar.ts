/**
 * The registrar (RFC 3261 §10.3): who an extension's phone is, and where it can be reached.
 * Requests and answers are plain data; `engine/call/app.ts` joins them to the SIP server.
 */
import type { Schedule } from '../../schema/clock.ts'
import type { RegisteredExtension } from './binding-table.ts'
import {
  type Binding,
  bindingLimits,
  register,
  type Registration,
  type BindingSource,
  type ContactTarget,
  targetOf,
} from './bindings.ts'
import { Authenticator, type DigestVerdict } from './digest/authenticator.ts'
import { ExtensionDirectory, type ExtensionRecord } from './extension-directory.ts'
import type { Home } from './hop/flow-token.ts'
import type { PhoneHop } from './hop/phone-hop.ts'
import { Registrations, type RegistrationsDeps } from './registrations.ts'
import type { HookPort } from '../../schema/contracts/hooks.ts'
import type { WrongPassword } from './wrong-passwords.ts'
import {
  headerNamed,
  ANONYMOUS_HOST,
  bracketed,
  parseNameAddr,
  parseOptionTags,
  parseUri,
  readAddress,
  reasonPhrase,
  splitList,
  unescapeText,
} from '../../schema/sip/index.ts'
import type { ExtensionStatus } from '../../schema/contracts/engine.ts'
import { contactsOf } from './contact.ts'
import { numberOrText } from '../../schema/rules/numbers.ts'

/** A request as it came. */
interface PhoneRequest {
  readonly method: string
  readonly headers: RequestHeaders
  readonly source: BindingSource
}

export interface PhoneAnswer {
  readonly status: number
  readonly reason: string
  /** A header that stands several times has several values. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  /** The sender has not shown that its address is its own: see `ReceivedRequest.isFromStranger`. */
  readonly isToStranger?: true
}

/** The sender of an INVITE. */
export type Caller =
  /** The From header names no domain of ours (`domain` is what it names): not a phone's call. */
  | { readonly kind: 'stranger'; readonly domain?: string }
  | { readonly kind: 'extension'; readonly extension: ExtensionRecord }
  /** `answer`: a challenge, or 403 for a number that is not the caller's. */
  | { readonly kind: 'refused'; readonly answer: PhoneAnswer }

export interface RegistrarDeps extends RegistrationsDeps {
  /** Milliseconds UTC by the clock of the machine (schema/clock.ts). */
  readonly wallNow: () => number
  /** At least 32 random bytes of this process: nonces of another process are stale. */
  readonly secret: Buffer
  /** How long a nonce is good. */
  readonly nonceSeconds: number
  /**
   * The protection against guessing, of accounts (`user@domain`); `isLockedOut` answers like a
   * wrong password.
   */
  readonly guard: {
    isLockedOut(source: BindingSource, user: string): boolean
    authFailed(source: BindingSource, user: string): void
    authSucceeded(source: BindingSource, user: string): void
    /** A phone registers with a domain that no tenant has. */
    unknownDomain(source: BindingSource, domain: string): void
  }
  /** Reports a wrong password of a phone of this tenant. */
  readonly onWrongPassword: (failure: WrongPassword) => void
  /**
   * How phones are reached that have registered at other instances; absent: every instance reaches
   * them alike.
   */
  readonly hop?: Pick<PhoneHop, 'targetOf' | 'isReachable'> | undefined
  /**
   * Whether it is a proxy of ours for phones of this tenant; a tenant's nodes, which it writes
   * itself, are none.
   */
  readonly isProxy: (source: BindingSource, tenantId: number) => boolean
  /** The operator's own code; absent: there is none. */
  readonly hooks?: Pick<HookPort, 'has' | 'ask'> | undefined
}

const RETRY_AFTER_SECONDS = 5
/** A phone waits so long at most before its password is checked and its binding is stored. */
const BATCH = { waitMs: 50, maxItems: 100 }

/** A REGISTER with credentials that waits for its batch. */
interface PendingRegister {
  readonly request: PhoneRequest
  readonly identity: Identity
  readonly resolve: (answer: PhoneAnswer) => void
  readonly reject: (error: unknown) => void
}

export class Registrar {
  readonly #deps: RegistrarDeps
  readonly #directory: ExtensionDirectory
  readonly #authenticator: Authenticator
  readonly #registrations: Registrations
  readonly #batch: Batch<PendingRegister>
  readonly #totals = { accepted: 0, challenged: 0, failed: 0 }

  constructor(deps: RegistrarDeps) {
    const { store, now, schedule } = deps
    this.#deps = deps
    this.#directory = new ExtensionDirectory(store)
    const secret = deps.secret.toString('hex')
    const nonceLifetimeMs = deps.nonceSeconds * 1_000
    const directory = this.#directory
    this.#authenticator = new Authenticator({ directory, secret, nonceLifetimeMs, now })
    this.#registrations = new Registrations(deps)
    this.#batch = new Batch({ ...BATCH, schedule, work: (items) => this.#workOff(items) })
  }

  /** Reads extensions and bindings. Until then there are none. */
  async load(): Promise<void> {
    await this.#registrations.follow()
    await this.#directory.load()
    await this.#takeStored(true)
  }

  /** Answers a REGISTER. Resolves when what it changed is durable. */
  async handle(request: PhoneRequest): Promise<PhoneAnswer> {
    const { headers } = request
    const identity = identityOf(headerNamed(headers, 'to'))
    if (identity === undefined) return toStranger(answer(400, 'Bad To Header'))
    const unsupported = unsupportedOptions(headerNamed(headers, 'require'))
    if (unsupported !== '')
      return toStranger(answer(420, 'Bad Extension', { Unsupported: unsupported }))
    if (this.#registrations.isOverloaded) return toStranger(unavailable)
    const { domain } = identity
    if (this.#directory.tenantOf(domain) === undefined)
      this.#deps.guard.unknownDomain(request.source, domain)
    if (headerNamed(headers, 'authorization') === undefined)
      return this.#challenge(401, request, identity, { kind: 'missing' })
    return new Promise((resolve, reject) => this.#batch.add({ request, identity, resolve, reject }))
  }

  #workOff(pending: readonly PendingRegister[]): void {
    for (const register of pending) {
      const { resolve, reject } = register
      this.#decide(register).then(resolve, reject)
    }
    this.#registrations.flushUnlessFailing()
  }

  async #decide({ request, identity }: PendingRegister): Promise<PhoneAnswer> {
    const { headers, source } = request
    const verdict = this.#verify(request, identity, headerNamed(headers, 'authorization'))
    if (verdict.kind !== 'known') return this.#challenge(401, request, identity, verdict)
    // No third-party registration: a password is good for its own extension.
    if (verdict.extension.extension !== identity.user) return answer(403, 'Forbidden')
    const registration = registrationOf(headers, source, this.#deps.instance)
    if (!this.#isTrustedPath(registration, identity.domain)) return answer(403, 'Path Not Allowed')
    const asked = this.#askHook(verdict.extension, registration)
    const refusal = asked && (await asked)
    // Its password may have been changed meanwhile.
    const { domain, extension, secrets } = verdict.extension
    const isOutdated = asked && this.#directory.secretOf(domain, extension) !== secrets['SHA-256']
    if (isOutdated === true) return answer(403, 'Forbidden')
    return refusal ?? this.#register(verdict.extension, registration)
  }

  /** The refusal of a hook; undefined: the phone is registered. One that leaves asks nobody. */
  #askHook(
    { extension, domain, tenantId }: ExtensionRecord,
    registration: Registration,
  ): Promise<PhoneAnswer | undefined> | undefined {
    const { hooks } = this.#deps
    const { userAgent, source } = registration
    const contact = addedContact(registration)
    if (contact === undefined || hooks?.has('onRegister') !== true) return undefined
    const { address, port } = source
    const phone = { extension, domain, tenantId, contact, userAgent, source: { address, port } }
    return hooks.ask('onRegister', phone).then((answered) => {
      if (answered.kind === 'failed') {
        const { by, why, fallback } = answered
        const about = { extension, domain, by, why, fallback }
        this.#deps.log('warn', 'a hook has failed', { hook: 'onRegister', ...about })
        return fallback === 'refuse' ? unavailable : undefined
      }
      const { status, reason } = (answered.kind === 'decided' && answered.decision.refuse) || {}
      return status === undefined ? undefined : answer(status, reason ?? reasonPhrase(status))
    })
  }

  /**
   * Authenticates the sender of an INVITE (or another request outside dialogs). A phone has to
   * prove the number in From by digest, or in P-Preferred-Identity when From is anonymous.
   * `mustExist` leaves alone what only looks like one of our extensions.
   */
  authenticate(request: PhoneRequest, mustExist = false): Caller {
    const { headers } = request
    const identity = mustExist ? callerIn(headerNamed(headers, 'from')) : claimedBy(headers)
    if (identity === undefined) return { kind: 'stranger' }
    const { domain, user } = identity
    const isOurs = mustExist
      ? this.#directory.find(domain, user) !== undefined
      : this.#directory.tenantOf(domain) !== undefined
    if (!isOurs) return mustExist ? { kind: 'stranger' } : { kind: 'stranger', domain }
    const verdict = this.#verify(request, identity, headerNamed(headers, 'proxy-authorization'))
    if (verdict.kind !== 'known')
      return { kind: 'refused', answer: this.#challenge(407, request, identity, verdict) }
    const { extension } = verdict
    if (extension.extension !== user) return { kind: 'refused', answer: answer(403, 'Forbidden') }
    return { kind: 'extension', extension }
  }

  /**
   * The answer to a request in a call of this extension; undefined: it comes from where a phone of
   * it has registered, or with its password.
   */
  challengeInCall(request: PhoneRequest, { domain, extension }: Home): PhoneAnswer | undefined {
    const { headers, source } = request
    const isThere = this.bindingsOf({ domain, extension }).some(
      (binding) => binding.source.address === source.address,
    )
    if (isThere) return undefined
    const identity = { domain, user: extension }
    const authorization = headerNamed(headers, 'proxy-authorization')
    const verdict = this.#verify(request, identity, authorization)
    if (verdict.kind !== 'known') return this.#challenge(407, request, identity, verdict)
    if (verdict.extension.extension !== extension) return answer(403, 'Forbidden')
    return undefined
  }

  /** The tenant of the extension that a request claims to come from; undefined: none of ours. */
  claimedTenant({ headers }: Pick<PhoneRequest, 'headers'>): number | undefined {
    const identity = claimedBy(headers)
    return identity && this.#directory.find(identity.domain, identity.user)?.tenantId
  }

  /** An extension by number and domain (any case), registered or not. */
  extensionAt(domain: string, extension: string): ExtensionRecord | undefined {
    return this.#directory.find(domain.toLowerCase(), extension)
  }

  /** Extensions with this number in the domains of whoever `isMeant`: two at most. */
  extensionsNamed(
    extension: string,
    isMeant: (found: Pick<ExtensionRecord, 'tenantId'>) => boolean,
  ): readonly ExtensionRecord[] {
    return this.#directory.named(extension, isMeant)
  }

  /** The tenant of a domain (any case); undefined: the domain is none of ours. */
  tenantOf(domain: string): number | undefined {
    return this.#directory.tenantOf(domain.toLowerCase())
  }

  /** The domain of a tenant's extensions, when there is one alone. */
  homeDomain(tenantId: number | null): string | undefined {
    return tenantId === null ? undefined : this.#directory.onlyDomainOf(tenantId)
  }

  /**
   * The phones of an extension that can be reached, the preferred ones first; none when it is not
   * registered. One that has registered at another instance is reached through that instance, while
   * it lives.
   */
  contactsOf(domain: string, extension: string): readonly ContactTarget[] {
    const { hop } = this.#deps
    const home = { domain: domain.toLowerCase(), extension }
    return this.bindingsOf(home)
      .flatMap((binding) => (hop ? (hop.targetOf(binding, home) ?? []) : targetOf(binding)))
      .toSorted((a, b) => b.q - a.q)
  }

  /**
   * The status of the phones that a call would reach now: the connections of an instance that is
   * gone are closed.
   */
  statusOf(domain: string, extension: string): ExtensionStatus {
    const bindings = this.bindingsOf({ domain: domain.toLowerCase(), extension }).filter(
      this.#isReachable,
    )
    const last = bindings.reduce<Binding | undefined>(
      (latest, binding) =>
        latest && latest.registeredAt > binding.registeredAt ? latest : binding,
      undefined,
    )
    return {
      status: bindings.length > 0 ? 'registered' : 'unregistered',
      userAgent: last?.userAgent || null,
      contacts: bindings.map(({ contact, userAgent, source, holder, expiresAt }) => ({
        uri: contact,
        userAgent,
        source,
        holder: holder || null,
        expiresAt,
      })),
    }
  }

  readonly #isReachable = (binding: Binding): boolean =>
    this.#deps.hop?.isReachable(binding) ?? true

  /** A connection is closed over which phones may have registered. */
  connectionClosed(source: BindingSource): void {
    this.#registrations.connectionClosed(source)
  }

  /** As `Registrations.end`, for a domain in any case. */
  endBindings(domain: string, extension: string, contact?: string): Promise<boolean> {
    return this.#registrations.end(domain.toLowerCase(), extension, contact)
  }

  /**
   * These extensions were written or deleted. Phones with an old password are not reachable any
   * more.
   */
  async changed(extensionIds: readonly number[]): Promise<void> {
    await this.#directory.changed(extensionIds)
    await this.#registrations.endOutdated(this.#isOutdated, extensionIds)
  }

  /** Tenants or their domains were written; undefined: perhaps all. */
  async reloadTenants(tenantIds?: readonly number[]): Promise<void> {
    await this.#directory.reloadTenants(tenantIds)
    await this.#registrations.endOutdated(
      (registered) =>
        tenantIds?.includes(registered.tenantId) !== false && this.#isOutdated(registered),
    )
  }

  /** Follows what others wrote: as `changed`. Without ids, of all extensions and tenants. */
  async reload(extensionIds?: readonly number[]): Promise<void> {
    if (extensionIds !== undefined) return this.changed(extensionIds)
    await this.#directory.load()
    await this.#registrations.endOutdated(this.#isOutdated)
  }

  readonly #isOutdated = ({ domain, extension, secret }: RegisteredExtension): boolean =>
    this.#directory.secretOf(domain, extension) !== secret

  /** Writes all waiting bindings: another process reads them next. */
  async flush(): Promise<void> {
    this.#batch.flush()
    await this.#registrations.flush()
  }

  /** Takes the bindings that another process has written instead of its own. */
  catchUp(): Promise<void> {
    return this.#takeStored(false)
  }

  #takeStored(isStart: boolean): Promise<void> {
    const { guard } = this.#deps
    return this.#registrations.load(
      ({ binding, extension, domain }) =>
        guard.authSucceeded(binding.source, accountOf(extension, domain)),
      isStart,
    )
  }

  /** Present sizes, and totals since the start. */
  telemetry(): Readonly<Record<string, number>> {
    const { extensions, bindings, keptAlive } = this.#registrations.stats()
    return {
      registered_extensions: extensions,
      registered_contacts: bindings,
      contacts_kept_alive: keptAlive,
      registrations_total: this.#totals.accepted,
      registration_challenges_total: this.#totals.challenged,
      authentication_failures_total: this.#totals.failed,
      digest_nonces: this.#authenticator.nonces,
    }
  }

  /** Writes what waits. */
  async stop(): Promise<void> {
    this.#batch.flush()
    await this.#registrations.stop()
  }

  /** The bindings that calls use: a Path is trusted only while the proxy that wrote it is ours. */
  bindingsOf({ domain, extension }: Home): readonly Binding[] {
    const bindings = this.#registrations.bindingsOf(domain, extension)
    return bindings.filter((binding) => this.#isTrustedPath(binding, domain))
  }

  #isTrustedPath({ path, source }: Pick<Registration, 'path' | 'source'>, domain: string): boolean {
    if (path.length === 0 || leadsBack(path, source)) return true
    return this.#deps.isProxy(source, this.#directory.tenantOf(domain) ?? 0)
  }

  #verify(
    request: PhoneRequest,
    identity: Identity,
    authorization: string | undefined,
  ): DigestVerdict {
    const { guard } = this.#deps
    const { method, source } = request
    const { user, domain: realm } = identity
    const verdict = this.#authenticator.verify({
      method,
      realm,
      authorization,
      address: source.address,
    })
    // A domain that no tenant has has no passwords: there is none that could be wrong.
    if (verdict.kind === 'wrong' && this.#directory.tenantOf(realm) !== undefined) {
      this.#totals.failed += 1
      guard.authFailed(source, accountOf(verdict.username, realm))
      this.#reportWrong(source.address, realm, verdict.username)
    }
    // After too many guesses the right one looks like the others.
    const account = accountOf(user, realm)
    if (guard.isLockedOut(source, account)) return { kind: 'missing' }
    if (verdict.kind === 'known') {
      guard.authSucceeded(source, account)
      this.#authenticator.answered(verdict.extension, source.address, verdict.algorithm)
    }
    return verdict
  }

  #reportWrong(address: string, realm: string, username: string): void {
    const tenantId = this.#directory.tenantOf(realm)
    const extensionId = this.#directory.find(realm, username)?.extensionId
    if (tenantId !== undefined) this.#deps.onWrongPassword({ address, tenantId, extensionId })
  }

  #challenge(
    status: 401 | 407,
    { headers, source }: PhoneRequest,
    { user, domain: realm }: Identity,
    verdict: DigestVerdict,
  ): PhoneAnswer {
    this.#totals.challenged += 1
    const challenges = this.#authenticator.challenges({
      realm,
      user,
      address: source.address,
      userAgent: headerNamed(headers, 'user-agent'),
      isPage: source.protocol === 'ws' || source.protocol === 'wss',
      isStale: verdict.kind === 'stale',
    })
    const challenge =
      status === 401
        ? answer(401, 'Unauthorized', { 'WWW-Authenticate': challenges })
        : answer(407, 'Proxy Authentication Required', { 'Proxy-Authenticate': challenges })
    // A wrong answer to a nonce has come from where the nonce was sent.
    return verdict.kind === 'wrong' ? challenge : toStranger(challenge)
  }

  async #register(record: ExtensionRecord, request: Registration): Promise<PhoneAnswer> {
    const { domain, extension, extensionId, tenantId, secrets } = record
    const now = this.#deps.now()
    const present = this.#registrations.bindingsOf(domain, extension)
    const result = register(present, request, now, bindingLimits, this.#isReachable)
    if (result.kind === 'refused') return answer(result.status, result.reason, result.headers)
    const { bindings, saved, refreshed, removed } = result
    if (saved.length + refreshed.length + removed.length > 0) {
      const secret = secrets['SHA-256']
      const registered = { domain, extension, extensionId, tenantId, secret, bindings }
      const change = { saved, refreshed, removed }
      const written = await this.#registrations.change(registered, change)
      if (written === 'late') return unavailable
      if (written === 'gone') return answer(500, 'Server Internal Error')
    }
    this.#totals.accepted += 1
    const shown = listing(bindings, request.knowsPath ? request.path : [], now)
    return answer(200, 'OK', { ...shown, Date: new Date(this.#deps.wallNow()).toUTCString() })
  }
}

const accountOf = (user: string, domain: string): string => `${user}@${domain}`

function answer(status: number, reason: string, headers: PhoneAnswer['headers'] = {}): PhoneAnswer {
  return { status, reason, headers }
}

const toStranger = (answer: PhoneAnswer): PhoneAnswer => ({ ...answer, isToStranger: true })

const unavailable = answer(503, 'Service Unavailable', {
  'Retry-After': String(RETRY_AFTER_SECONDS),
})

interface BatchDeps<Item> {
  readonly schedule: Schedule
  readonly waitMs: number
  readonly maxItems: number
  readonly work: (items: readonly Item[]) => void
}

/**
 * Collects items, and works on all that came within `waitMs` of the first one together, in order;
 * at once when there are many. To wake up for each item would cost more than the work.
 */
class Batch<Item> {
  readonly #deps: BatchDeps<Item>
  #items: Item[] = []
  #cancel: (() => void) | undefined

  constructor(deps: BatchDeps<Item>) {
    this.#deps = deps
  }

  add(item: Item): void {
    const { schedule, waitMs, maxItems } = this.#deps
    this.#items.push(item)
    if (this.#items.length >= maxItems) this.flush()
    else this.#cancel ??= schedule(() => this.flush(), waitMs)
  }

  /** Works on the waiting items. */
  flush(): void {
    this.#cancel?.()
    this.#cancel = undefined
    const items = this.#items
    this.#items = []
    if (items.length > 0) this.#deps.work(items)
  }
}

// Reads REGISTER requests, and writes the bindings into their answers. Pure.

function registrationOf(
  headers: RequestHeaders,
  source: BindingSource,
  holder: string,
): Registration {
  const expires = headerNamed(headers, 'expires')?.trim() ?? ''
  return {
    contacts: contactsOf(headerNamed(headers, 'contact')),
    expiresSeconds: /^\d{1,10}$/.test(expires) ? Number(expires) : undefined,
    callId: headerNamed(headers, 'call-id') ?? '',
    cseq: Number.parseInt(headerNamed(headers, 'cseq') ?? '0', 10),
    path: pathOf(headerNamed(headers, 'path')),
    knowsPath: hasOption(headers, 'supported', 'path') || hasOption(headers, 'require', 'path'),
    userAgent: (headerNamed(headers, 'user-agent') ?? '').slice(0, MAX_USER_AGENT),
    source,
    holder,
  }
}

const MAX_USER_AGENT = 128

/** The first Contact that a REGISTER adds or keeps; undefined: it only asks, or takes away. */
function addedContact({ contacts, expiresSeconds }: Registration): string | undefined {
  if (contacts.kind !== 'list') return undefined
  return contacts.contacts.find(({ expiresSeconds: own }) => (own ?? expiresSeconds) !== 0)?.uri
}

/** RFC 3261 §10.3 step 8: all bindings with their remaining time; RFC 3327 §5.3: the Path. */
function listing(
  bindings: readonly Binding[],
  path: readonly string[],
  now: number,
): Record<string, string> {
  const headers: Record<string, string> = {}
  if (bindings.length > 0)
    headers['Contact'] = bindings.map((binding) => contactValue(binding, now)).join(', ')
  if (path.length > 0) headers['Path'] = path.join(', ')
  return headers
}

function contactValue({ contact, q, instance, regId, expiresAt }: Binding, now: number): string {
  const preference = q === 1_000 ? '' : `;q=${(q / 1_000).toFixed(3).replace(/0+$/, '0')}`
  const phone = instance === null ? '' : `;+sip.instance="${instance}"`
  const flow = regId === null ? '' : `;reg-id=${regId}`
  return `<${contact}>;expires=${Math.ceil((expiresAt - now) / 1_000)}${preference}${phone}${flow}`
}

/** Headers by name in any spelling; names that a stack knows usually come in small letters. */
type RequestHeaders = Readonly<Record<string, string | undefined>>

const hasOption = (headers: RequestHeaders, name: string, wanted: string): boolean =>
  parseOptionTags([headerNamed(headers, name) ?? '']).includes(wanted)

/** The options in the `Require` of a REGISTER that we do not support: all but `path` (RFC 3327). */
const unsupportedOptions = (require: string | undefined): string =>
  splitList(require ?? '')
    .filter((option) => option.toLowerCase() !== 'path')
    .join(', ')

/** The user and domain of a From or To header. */
interface Identity {
  /** User part without parameters, `%` escapes resolved. */
  readonly user: string
  /** Small letters, without port; fit to stand in quotes. */
  readonly domain: string
}

/** Undefined: no user at a domain. */
function identityOf(value: string | undefined): Identity | undefined {
  const uri = value === undefined ? undefined : parseUri(readAddress(value).uri)
  if (uri === undefined || uri.user === '' || uri.host === '') return undefined
  if (uri.user.length > MAX_USER || uri.host.length > MAX_HOST) return undefined
  const [escaped = ''] = uri.user.split(';', 1)
  const user = unescapeText(escaped)
  return user === undefined ? undefined : { user, domain: bracketed(uri.host.toLowerCase()) }
}

const MAX_USER = 128
const MAX_HOST = 255

/** The identity of a caller; its number in the normal form, because calls are charged by that. */
function callerIn(value: string | undefined): Identity | undefined {
  const identity = identityOf(value)
  return identity && { ...identity, user: numberOrText(identity.user) }
}

/**
 * The identity that a request claims. RFC 3325 §6: a phone that hides its number tells only its own
 * server.
 */
function claimedBy(headers: RequestHeaders): Identity | undefined {
  const claimed = callerIn(headerNamed(headers, 'from'))
  if (claimed?.domain !== ANONYMOUS_HOST) return claimed
  // RFC 3325 §9.2: one sip and one tel URI, in any order; only the first of them names a user at a
  // domain.
  for (const value of splitList(headerNamed(headers, 'p-preferred-identity') ?? '')) {
    const preferred = callerIn(value)
    if (preferred !== undefined) return preferred
  }
  return undefined
}

const MAX_PATH = 8

const pathOf = (header: string | undefined): readonly string[] =>
  header === undefined ? [] : splitList(header).slice(0, MAX_PATH)

/**
 * Whether the next proxy of a Path is the very host that has sent it; by address, names say
 * nothing. RFC 3327 §5.3 leaves it to the registrar which Path to trust. It says where calls to a
 * phone are sent, with a Request-URI that the phone has chosen: a phone that named a carrier's
 * address there could send calls to that carrier in our name, without a payer.
 */
export function leadsBack(
  [next]: readonly string[],
  { address }: Pick<BindingSource, 'address'>,
): boolean {
  // The address alone in its brackets, so that nothing around it is read differently elsewhere.
  if (next?.startsWith('<') !== true || !next.endsWith('>')) return false
  const uri = parseUri(parseNameAddr(next)?.uri ?? '')
  if (uri?.host.toLowerCase() !== address.toLowerCase() || uri.headers.length > 0) return false
  // RFC 3261 §19.1.1: `maddr` stands in the place of the host; an escaped name could be read as
  // that.
  return [...uri.params.keys()].every((name) => name !== 'maddr' && /^[\w.-]+$/.test(name))
}
