/**
 * The registrar (RFC 3261 §10.3): who an extension's phone is, and where it can be reached. Requests
 * and answers are plain data; `engine/call/app.ts` joins them to the SIP server.
 */
import type { Schedule } from '../../schema/clock.ts'
import type { ExtensionStatus } from '../../schema/contracts/registrations.ts'
import type { LocalStore } from '../../schema/open.ts'
import { headerNamed } from '../sip-server/message/index.ts'
import { Authenticator, type Verdict } from './digest/authenticator.ts'
import { Batch } from './batch.ts'
import { BindingStore } from './binding-store.ts'
import { BindingTable, type Registered } from './binding-table.ts'
import type { Binding, Registration, Source } from './bindings.ts'
import { bindingLimits, register } from './bindings.ts'
import { contactsOf } from './contact.ts'
import { leadsBack, pathOf } from './path.ts'
import { ExtensionDirectory, type ExtensionRecord } from './extension-directory.ts'
import { callerIn, claimedBy, hasOption, identityOf, unsupportedOptions } from './request.ts'
import type { Identity, RequestHeaders } from './request.ts'
import { targetOf, type ContactTarget } from './target.ts'

/** A request as it came. */
export interface PhoneRequest {
  readonly method: string
  readonly headers: RequestHeaders
  readonly source: Source
}

export interface PhoneAnswer {
  readonly status: number
  readonly reason: string
  /** A header that stands several times has several values. */
  readonly headers: Readonly<Record<string, string | readonly string[]>>
}

/** Who sends an INVITE. */
export type Caller =
  /** From names a domain that is none of ours: not a phone's call. */
  | { readonly kind: 'stranger' }
  | { readonly kind: 'extension'; readonly extension: ExtensionRecord }
  /** To be answered so: a challenge, or 403 for a number that is not the caller's. */
  | { readonly kind: 'refused'; readonly answer: PhoneAnswer }

export interface RegistrarDeps {
  readonly store: LocalStore
  /** Milliseconds by the steady clock, and UTC by that of the machine (schema/clock.ts). */
  readonly now: () => number
  readonly wallNow: () => number
  readonly schedule: Schedule
  /** At least 32 random bytes of this process: nonces of another process are stale. */
  readonly secret: Buffer
  /** How long a nonce is good. */
  readonly nonceSeconds: number
  /** Sends something that a NAT takes for traffic; errors are its own. */
  readonly keepAlive: (target: ContactTarget) => void
  /** What is done against guessing; `isLockedOut` answers like a wrong password. */
  readonly guard: {
    isLockedOut(source: Source, user: string): boolean
    authFailed(source: Source, user: string): void
    authSucceeded(source: Source, user: string): void
  }
  /** Whether it is a proxy of ours for phones of this tenant; a tenant's nodes, which it writes itself, are none. */
  readonly isProxy: (source: Source, tenantId: number) => boolean
  /** The phones of an extension are others than before. */
  readonly onRegistration: (change: {
    readonly tenantId: number
    readonly domain: string
    readonly extension: string
    readonly contacts: number
  }) => void
  readonly onStoreFailure: (error: unknown, waiting: number) => void
}

const RETRY_AFTER_SECONDS = 5
/** A phone waits so long at most before its password is looked at and its binding is stored. */
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
  readonly #bindings: BindingStore
  readonly #table: BindingTable
  readonly #batch: Batch<PendingRegister>
  readonly #totals = { accepted: 0, challenged: 0, failed: 0 }

  constructor(deps: RegistrarDeps) {
    const { store, now, schedule, keepAlive, onStoreFailure: onFailure } = deps
    this.#deps = deps
    this.#directory = new ExtensionDirectory(store)
    const secret = deps.secret.toString('hex')
    const nonceLifetimeMs = deps.nonceSeconds * 1_000
    const directory = this.#directory
    this.#authenticator = new Authenticator({ directory, secret, nonceLifetimeMs, now })
    this.#bindings = new BindingStore({ store, schedule, onFailure })
    this.#table = new BindingTable({
      ...{ now, schedule },
      keepAlive: (binding) => keepAlive(targetOf(binding)),
      onLapsed: (registered) => this.#tell(registered),
      onExpired: () => this.#bindings.removeExpired(now()),
    })
    this.#batch = new Batch({ ...BATCH, schedule, work: (items) => this.#workOff(items) })
    this.#restoreAll()
  }

  /** Answers a REGISTER. Resolves when what it changed is durable. */
  async handle(request: PhoneRequest): Promise<PhoneAnswer> {
    const { headers } = request
    const identity = identityOf(headerNamed(headers, 'to'))
    if (identity === undefined) return answer(400, 'Bad To Header')
    const unsupported = unsupportedOptions(headerNamed(headers, 'require'))
    if (unsupported !== '') return answer(420, 'Bad Extension', { Unsupported: unsupported })
    if (this.#bindings.isOverloaded)
      return answer(503, 'Service Unavailable', { 'Retry-After': String(RETRY_AFTER_SECONDS) })
    if (headerNamed(headers, 'authorization') === undefined)
      return this.#challenge(401, request, identity, { kind: 'missing' })
    return new Promise((resolve, reject) => this.#batch.add({ request, identity, resolve, reject }))
  }

  #workOff(pending: readonly PendingRegister[]): void {
    for (const register of pending) {
      const { resolve, reject } = register
      this.#decide(register).then(resolve, reject)
    }
    this.#bindings.flushUnlessFailing()
  }

  async #decide({ request, identity }: PendingRegister): Promise<PhoneAnswer> {
    const { headers, source } = request
    const verdict = this.#verify(request, identity, headerNamed(headers, 'authorization'))
    if (verdict.kind !== 'known') return this.#challenge(401, request, identity, verdict)
    // No third-party registration: a password is good for its own extension.
    if (verdict.extension.extension !== identity.user) return answer(403, 'Forbidden')
    const registration = registrationOf(headers, source)
    if (!this.#isTrustedPath(registration, identity.domain)) return answer(403, 'Path Not Allowed')
    return this.#register(verdict.extension, registration)
  }

  /**
   * Who sends an INVITE (or another request outside dialogs). A phone has to prove the number in
   * From by digest, or in P-Preferred-Identity when From is anonymous. `mustExist` leaves alone what
   * only looks like one of our extensions.
   */
  authenticate(request: PhoneRequest, mustExist = false): Caller {
    const { headers } = request
    const identity = mustExist ? callerIn(headerNamed(headers, 'from')) : claimedBy(headers)
    if (identity === undefined) return { kind: 'stranger' }
    const { domain, user } = identity
    const isOurs = mustExist
      ? this.#directory.find(domain, user) !== undefined
      : this.#directory.tenantOf(domain) !== undefined
    if (!isOurs) return { kind: 'stranger' }
    const verdict = this.#verify(request, identity, headerNamed(headers, 'proxy-authorization'))
    if (verdict.kind !== 'known')
      return { kind: 'refused', answer: this.#challenge(407, request, identity, verdict) }
    const { extension } = verdict
    if (extension.extension !== user) return { kind: 'refused', answer: answer(403, 'Forbidden') }
    return { kind: 'extension', extension }
  }

  /** Whose extension a request says that it comes from; undefined: none of ours. */
  claimedTenant({ headers }: Pick<PhoneRequest, 'headers'>): number | undefined {
    const identity = claimedBy(headers)
    return identity && this.#directory.find(identity.domain, identity.user)?.tenantId
  }

  /** An extension by number and domain (any case), registered or not. */
  extensionAt(domain: string, extension: string): ExtensionRecord | undefined {
    return this.#directory.find(domain.toLowerCase(), extension)
  }

  /** Whose extensions live in a domain (any case); undefined: it is none of ours. */
  tenantOf(domain: string): number | undefined {
    return this.#directory.tenantOf(domain.toLowerCase())
  }

  /** Where a tenant's extensions live, when that is one domain. */
  homeDomain(tenantId: number | null): string | undefined {
    return tenantId === null ? undefined : this.#directory.onlyDomainOf(tenantId)
  }

  /** The phones of an extension, the preferred ones first; none when it is not registered. */
  contactsOf(domain: string, extension: string): readonly ContactTarget[] {
    return this.#bindingsOf(domain, extension)
      .map(targetOf)
      .toSorted((a, b) => b.q - a.q)
  }

  statusOf(domain: string, extension: string): ExtensionStatus {
    const bindings = this.#bindingsOf(domain, extension)
    const last = bindings.reduce<Binding | undefined>(
      (latest, binding) =>
        latest && latest.registeredAt > binding.registeredAt ? latest : binding,
      undefined,
    )
    return {
      status: bindings.length > 0 ? 'registered' : 'unregistered',
      userAgent: last?.userAgent || null,
      contacts: bindings.map(({ contact, userAgent, source, expiresAt }) => ({
        ...{ uri: contact, userAgent, source, expiresAt },
      })),
    }
  }

  /**
   * Its phones are not reachable any more: its password has changed, or it is deleted. With `contact`, this one phone
   * until it registers again. False: there is none.
   */
  endBindings(domain: string, extension: string, contact?: string): boolean {
    const registered = this.#table.find(domain.toLowerCase(), extension)
    const { extensionId, bindings: present } = registered ?? { extensionId: 0, bindings: [] }
    const left = present.filter((each) => contact !== undefined && each.contact !== contact)
    if (registered === undefined || (contact && left.length === present.length)) return false
    const ended = { ...registered, bindings: left }
    this.#table.set(ended)
    if (contact === undefined) this.#bindings.removeAll(extensionId)
    else void this.#bindings.write({ extensionId, saved: [], refreshed: [], removed: [contact] })
    this.#tell(ended)
    return true
  }

  /** Follows what another process wrote: ends bindings of extensions that are gone or changed. */
  reload(): void {
    this.#directory.forget()
    for (const { domain, extension, secret } of [...this.#table.all()])
      if (this.#directory.find(domain, extension)?.secrets['SHA-256'] !== secret)
        this.endBindings(domain, extension)
  }

  /** Another process reads the bindings next: writes what waits. */
  flush(): void {
    this.#batch.flush()
    this.#bindings.flush()
  }

  /** Takes the bindings that another process has written instead of its own. */
  catchUp(): void {
    for (const registered of [...this.#table.all()])
      this.#table.set({ ...registered, bindings: [] })
    this.#restoreAll()
  }

  /** Present sizes, and totals since the start. */
  telemetry(): Readonly<Record<string, number>> {
    const { extensions, bindings, keptAlive } = this.#table.stats()
    return {
      registered_extensions: extensions,
      registered_contacts: bindings,
      contacts_kept_alive: keptAlive,
      registrations_total: this.#totals.accepted,
      registration_challenges_total: this.#totals.challenged,
      authentication_failures_total: this.#totals.failed,
      digest_nonces: this.#authenticator.stats().nonces,
    }
  }

  /** Writes what waits. */
  stop(): void {
    this.#table.stop()
    this.flush()
  }

  /** The bindings that calls use: a Path is trusted only while the proxy that wrote it is ours. */
  #bindingsOf(domain: string, extension: string): readonly Binding[] {
    const home = domain.toLowerCase()
    const bindings = this.#table.bindingsOf(home, extension)
    return bindings.filter((binding) => this.#isTrustedPath(binding, home))
  }

  #isTrustedPath({ path, source }: Pick<Registration, 'path' | 'source'>, domain: string): boolean {
    if (path.length === 0 || leadsBack(path, source)) return true
    return this.#deps.isProxy(source, this.#directory.tenantOf(domain) ?? 0)
  }

  #verify(request: PhoneRequest, identity: Identity, authorization: string | undefined): Verdict {
    const { guard } = this.#deps
    const { method, source } = request
    const { user, domain: realm } = identity
    const verdict = this.#authenticator.verify({
      ...{ method, realm, authorization },
      address: source.address,
    })
    if (verdict.kind === 'wrong') {
      this.#totals.failed += 1
      guard.authFailed(source, verdict.username)
    }
    // After too many guesses the right one looks like the others.
    if (guard.isLockedOut(source, user)) return { kind: 'missing' }
    if (verdict.kind === 'known') {
      guard.authSucceeded(source, user)
      this.#authenticator.answered(verdict.extension, source.address, verdict.algorithm)
    }
    return verdict
  }

  #challenge(
    status: 401 | 407,
    { headers, source }: PhoneRequest,
    { user, domain: realm }: Identity,
    verdict: Verdict,
  ): PhoneAnswer {
    this.#totals.challenged += 1
    const challenges = this.#authenticator.challenges({
      ...{ realm, user, address: source.address },
      userAgent: headerNamed(headers, 'user-agent'),
      isPage: source.protocol === 'ws' || source.protocol === 'wss',
      isStale: verdict.kind === 'stale',
    })
    return status === 401
      ? answer(401, 'Unauthorized', { 'WWW-Authenticate': challenges })
      : answer(407, 'Proxy Authentication Required', { 'Proxy-Authenticate': challenges })
  }

  async #register(record: ExtensionRecord, request: Registration): Promise<PhoneAnswer> {
    const { domain, extension, extensionId, tenantId, secrets } = record
    const now = this.#deps.now()
    const present = this.#table.bindingsOf(domain, extension)
    const result = register(present, request, now, bindingLimits)
    if (result.kind === 'refused') return answer(result.status, result.reason, result.headers)
    const { bindings, saved, refreshed, removed } = result
    if (saved.length + refreshed.length + removed.length > 0) {
      // Memory first: what the next REGISTER meets. The answer waits for the disk.
      const secret = secrets['SHA-256']
      this.#table.set({ domain, extension, extensionId, tenantId, secret, bindings })
      const isStored = await this.#bindings.write({ extensionId, saved, refreshed, removed })
      if (!isStored) {
        this.endBindings(domain, extension)
        return answer(500, 'Server Internal Error')
      }
    }
    this.#totals.accepted += 1
    if (bindings.length !== present.length) this.#tell({ tenantId, domain, extension, bindings })
    const shown = listing(bindings, request.knowsPath ? request.path : [], now)
    return answer(200, 'OK', { ...shown, Date: new Date(this.#deps.wallNow()).toUTCString() })
  }

  #tell(phones: Pick<Registered, 'tenantId' | 'domain' | 'extension' | 'bindings'>): void {
    const { tenantId, domain, extension, bindings } = phones
    this.#deps.onRegistration({ tenantId, domain, extension, contacts: bindings.length })
  }

  #restoreAll(): void {
    for (const { binding, ...home } of this.#bindings.load(this.#deps.now()))
      this.#restore(home, binding)
  }

  #restore(home: Omit<Parameters<BindingTable['set']>[0], 'bindings'>, binding: Binding): void {
    const bindings = this.#table.find(home.domain, home.extension)?.bindings ?? []
    this.#table.set({ ...home, bindings: [...bindings, binding] })
    this.#deps.guard.authSucceeded(binding.source, home.extension)
  }
}

function registrationOf(headers: RequestHeaders, source: Source): Registration {
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
  }
}

const MAX_USER_AGENT = 128

/** RFC 3261 §10.3 step 8: all bindings with what is left of them; RFC 3327 §5.3: the Path. */
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

function answer(status: number, reason: string, headers: PhoneAnswer['headers'] = {}): PhoneAnswer {
  return { status, reason, headers }
}
