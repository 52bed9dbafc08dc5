/** Registers at one carrier and keeps the registration (RFC 3261 §10.2), by a table of states. */
import type { Schedule } from '../../schema/clock.ts'
import type { CarrierRegistrationStatus } from '../../schema/contracts/engine.ts'
import {
  type NameAddr,
  parseExpires,
  parseNameAddr,
  parseRetryAfter,
  sameUri,
  splitList,
} from '../../schema/sip/index.ts'

/** The account at a carrier. */
export interface CarrierAccount {
  /**
   * Destinations of REGISTER, the preferred one first: `sip:<host>:<port>;transport=udp`. Never
   * empty.
   */
  readonly registrars: readonly string[]
  readonly username: string
  readonly password: string
  /** Null: any. */
  readonly realm: string | null
  /** Domain of the address of record; null: the host of the registrar. */
  readonly domain: string | null
  readonly expiresSeconds: number
}

export interface RegisterRequest extends Omit<CarrierAccount, 'registrars'> {
  readonly registrar: string
  readonly callId: string
  readonly cseq: number
}

export type RegisterResult =
  | {
      readonly kind: 'answered'
      readonly status: number
      readonly reason: string
      /** Headers by their names in small letters. */
      readonly headers: Readonly<Record<string, string | undefined>>
      /** The URI of the Contact that was sent; undefined: it is not known. */
      readonly ownContact?: string | undefined
    }
  | { readonly kind: 'silence' }
  | { readonly kind: 'transport-error'; readonly reason: string }
  /** It was not sent: our SIP server is unreachable, which says nothing about the carrier. */
  | { readonly kind: 'unsent' }

/**
 * Sends one REGISTER, answers challenges, and waits a bounded time for the final answer. Never
 * rejects.
 */
export type SendRegister = (request: RegisterRequest) => Promise<RegisterResult>

export interface RegistrationDeps {
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly random: () => number
  readonly schedule: Schedule
  readonly send: SendRegister
  readonly newCallId: () => string
  readonly onChange: (state: ShownState, answer: LastAnswer | null) => void
}

/** As the API shows it. */
type ShownState = CarrierRegistrationStatus['state']

type LastAnswer = NonNullable<CarrierRegistrationStatus['lastAnswer']>

/** Each challenge that is answered takes a number of its own. */
const CSEQ_STEP = 8
const MAX_EXPIRES_SECONDS = 86_400
/** A SIP server that is back is found within a second. */
const UNSENT_RETRY_MS = 1_000

export class CarrierRegistration {
  readonly account: CarrierAccount
  readonly #deps: RegistrationDeps
  readonly #callId: string
  #state: RegistrationState = 'unregistered'
  #registrar = 0
  #cseq = 1
  #requestedSeconds: number
  #failures = 0
  #last: RegisterResult | undefined
  #lastAnswer: LastAnswer | null = null
  #expiresAt: number | null = null
  #nextAttemptAt: number | null = null
  #cancelDue: () => void = () => undefined
  #cancelLapse: () => void = () => undefined

  constructor(account: CarrierAccount, deps: RegistrationDeps) {
    this.account = account
    this.#deps = deps
    this.#callId = deps.newCallId()
    this.#requestedSeconds = account.expiresSeconds
  }

  begin(): void {
    this.#on('begin')
  }

  /** Stops without a last request to the carrier. */
  leave(): void {
    this.#cancelDue()
    this.#cancelLapse()
    this.#on('end')
  }

  /**
   * Ends the registration. Resolves when the carrier has answered the last REGISTER, or was silent.
   */
  async end(): Promise<void> {
    this.#cancelDue()
    this.#cancelLapse()
    const mustRemove = this.#on('end').includes('remove')
    this.#expiresAt = null
    if (mustRemove) await this.#deps.send(this.#request(0))
  }

  report(): CarrierRegistrationStatus {
    return {
      state: shown(this.#state),
      registrar: this.#registrarUri,
      expiresAt: this.#expiresAt,
      nextAttemptAt: this.#nextAttemptAt,
      lastAnswer: this.#lastAnswer,
    }
  }

  get #registrarUri(): string {
    const { registrars } = this.account
    return registrars[this.#registrar % registrars.length] ?? ''
  }

  /** Returns the actions of the transition. */
  #on(event: RegistrationEvent): readonly RegistrationAction[] {
    const transition = registrationStates[this.#state][event]
    if (!transition) return []
    const before = shown(this.#state)
    this.#state = transition.to
    for (const action of transition.do) this.#perform(action)
    const after = shown(this.#state)
    if (before !== after) this.#deps.onChange(after, this.#lastAnswer)
    return transition.do
  }

  #perform(action: RegistrationAction): void {
    switch (action) {
      case 'send':
        return void this.#send()
      case 'lengthen':
        this.#requestedSeconds = Math.max(this.#requestedSeconds, minExpiresOf(this.#last))
        return
      case 'tryNextRegistrar':
        this.#registrar += 1
        return
      case 'awaitRefresh':
        return this.#awaitRefresh()
      case 'awaitRetry':
        return this.#awaitRetry()
      case 'remove':
      // `end` does it, and waits for it.
    }
  }

  async #send(): Promise<void> {
    this.#nextAttemptAt = null
    const result = await this.#deps.send(this.#request(this.#requestedSeconds))
    if (this.#state === 'registering' || this.#state === 'refreshing') this.#onResult(result)
  }

  #request(expiresSeconds: number): RegisterRequest {
    this.#cseq += CSEQ_STEP
    const { registrars: _, ...account } = this.account
    return {
      ...account,
      expiresSeconds,
      registrar: this.#registrarUri,
      callId: this.#callId,
      cseq: this.#cseq,
    }
  }

  #onResult(result: RegisterResult): void {
    this.#last = result
    this.#lastAnswer = { at: this.#deps.now(), ...summaryOf(result) }
    const event = this.#eventOf(result)
    if (event === 'accepted') this.#failures = 0
    else if (event !== 'tooBrief' && event !== 'unsent') this.#failures += 1
    if (event === 'refused') {
      this.#cancelLapse()
      this.#expiresAt = null
    }
    this.#on(event)
  }

  #eventOf(result: RegisterResult): RegistrationEvent {
    if (result.kind === 'unsent') return 'unsent'
    if (result.kind !== 'answered') return 'silent'
    const { status } = result
    if (status < 300) return 'accepted'
    if (status === 423 && minExpiresOf(result) > this.#requestedSeconds) return 'tooBrief'
    // RFC 3263 §4.3 tries another server after these.
    return status === 408 || status === 503 ? 'silent' : 'refused'
  }

  #awaitRefresh(): void {
    const { now, random } = this.#deps
    const answered = this.#last?.kind === 'answered' ? this.#last : undefined
    const { contact, expires } = answered?.headers ?? {}
    const own = { user: this.account.username, contact: answered?.ownContact }
    const granted = Math.min(
      Math.max(grantedSecondsOf({ contact, expires }, own, this.#requestedSeconds), 1),
      MAX_EXPIRES_SECONDS,
    )
    this.#expiresAt = now() + granted * 1_000
    this.#cancelLapse()
    this.#cancelLapse = this.#deps.schedule(() => this.#lapse(), granted * 1_000)
    this.#await(refreshAfterMs(granted, random))
  }

  #lapse(): void {
    this.#expiresAt = null
    this.#on('lapsed')
  }

  #awaitRetry(): void {
    if (this.#last?.kind === 'unsent') return this.#await(UNSENT_RETRY_MS)
    const status = this.#lastAnswer?.status ?? 0
    const retryAfter =
      this.#last?.kind === 'answered' ? this.#last.headers['retry-after'] : undefined
    this.#await(retryAfterMs(this.#failures, status, retryAfter, this.#deps.random))
  }

  #await(delayMs: number): void {
    this.#cancelDue()
    this.#nextAttemptAt = this.#deps.now() + delayMs
    this.#cancelDue = this.#deps.schedule(() => this.#on('due'), delayMs)
  }
}

/** The API shows no refresh under way. */
const shown = (state: RegistrationState): ShownState =>
  state === 'refreshing' ? 'registered' : state

function summaryOf(result: RegisterResult): Omit<LastAnswer, 'at'> {
  if (result.kind === 'answered') return { status: result.status, reason: result.reason }
  if (result.kind === 'unsent') return { status: 0, reason: 'no connection to the SIP server' }
  return { status: 0, reason: result.kind === 'silence' ? 'no answer' : result.reason }
}

/** The Min-Expires of a 423; 0: none. */
function minExpiresOf(result: RegisterResult | undefined): number {
  if (result?.kind !== 'answered') return 0
  const seconds = Number.parseInt(result.headers['min-expires'] ?? '0', 10)
  return seconds <= MAX_EXPIRES_SECONDS ? seconds : 0
}

/**
 * Our registration with a carrier (RFC 3261 §10.2) as a table. A binding that the carrier still
 * holds is not lost because one refresh was not answered: only when it lapses.
 */
export type RegistrationState =
  'unregistered' | 'registering' | 'registered' | 'refreshing' | 'failed'

export type RegistrationEvent =
  /** The registration shall exist from now on. */
  | 'begin'
  /** The waiting time is over. */
  | 'due'
  | 'accepted'
  /** 423: longer is possible. */
  | 'tooBrief'
  /** Any other final answer. */
  | 'refused'
  /** No answer, or it could not be sent. */
  | 'silent'
  /** Our own SIP server is unreachable. */
  | 'unsent'
  /** The binding that the carrier granted has expired. */
  | 'lapsed'
  /** The registration shall not exist any more. */
  | 'end'

export type RegistrationAction =
  | 'send'
  | 'lengthen'
  | 'tryNextRegistrar'
  | 'awaitRefresh'
  | 'awaitRetry'
  /** Asks the carrier to forget the binding. */
  | 'remove'

interface Transition {
  readonly to: RegistrationState
  readonly do: readonly RegistrationAction[]
}

/** An event that is missing in a state changes nothing there. */
const registrationStates: Readonly<
  Record<RegistrationState, Partial<Readonly<Record<RegistrationEvent, Transition>>>>
> = {
  unregistered: { begin: { to: 'registering', do: ['send'] } },
  registering: {
    accepted: { to: 'registered', do: ['awaitRefresh'] },
    tooBrief: { to: 'registering', do: ['lengthen', 'send'] },
    refused: { to: 'failed', do: ['awaitRetry'] },
    silent: { to: 'failed', do: ['tryNextRegistrar', 'awaitRetry'] },
    unsent: { to: 'registering', do: ['awaitRetry'] },
    due: { to: 'registering', do: ['send'] },
    end: { to: 'unregistered', do: ['remove'] },
  },
  registered: {
    due: { to: 'refreshing', do: ['send'] },
    lapsed: { to: 'failed', do: [] },
    end: { to: 'unregistered', do: ['remove'] },
  },
  refreshing: {
    accepted: { to: 'registered', do: ['awaitRefresh'] },
    tooBrief: { to: 'refreshing', do: ['lengthen', 'send'] },
    refused: { to: 'failed', do: ['awaitRetry'] },
    silent: { to: 'registered', do: ['tryNextRegistrar', 'awaitRetry'] },
    unsent: { to: 'registered', do: ['awaitRetry'] },
    lapsed: { to: 'registering', do: [] },
    end: { to: 'unregistered', do: ['remove'] },
  },
  failed: {
    due: { to: 'registering', do: ['send'] },
    end: { to: 'unregistered', do: [] },
  },
}

const RETRY_BASE_MS = 4_000
/** Credentials that were refused do not become right by themselves: carriers ban who insists. */
const REFUSED_BASE_MS = 60_000
const RETRY_MAX_MS = 600_000
/** The longest Retry-After of a carrier that is followed. */
const RETRY_AFTER_MAX_SECONDS = 3_600
/** The shortest time between two REGISTERs, whatever the carrier grants. */
const MIN_REFRESH_MS = 5_000

/** Returns 75 to 90 % of the granted time, so that many registrations do not come together. */
function refreshAfterMs(grantedSeconds: number, random: () => number): number {
  return Math.max(MIN_REFRESH_MS, grantedSeconds * 1_000 * (0.75 + 0.15 * random()))
}

/**
 * RFC 5626 §4.5: doubling from failure to failure (`failures` counts this one), drawn from the
 * upper half. `status` 0: no answer.
 */
export function retryAfterMs(
  failures: number,
  status: number,
  retryAfter: string | undefined,
  random: () => number,
): number {
  const requested = parseRetryAfter(retryAfter ?? '')
  if (requested !== undefined && status >= 500)
    return Math.min(requested, RETRY_AFTER_MAX_SECONDS) * 1_000 + RETRY_BASE_MS * random()
  const base = status >= 400 && status < 500 ? REFUSED_BASE_MS : RETRY_BASE_MS
  const delay = Math.min(base * 2 ** Math.min(failures - 1, 16), RETRY_MAX_MS)
  return delay * (0.5 + 0.5 * random())
}

/**
 * The seconds that the carrier granted: the `expires` of our Contact in its answer, the Expires
 * header, or else the requested ones, which a registrar may only shorten (RFC 3261 §10.2.4, §10.3
 * step 7). The answer lists the bindings of others, too: ours is the one whose URI equals the sent
 * one (§19.1.4). A NAT or a proxy may have rewritten it beyond recognition: then the binding that
 * ends first counts, of those with our user name if there are any.
 */
export function grantedSecondsOf(
  answer: { readonly contact: string | undefined; readonly expires: string | undefined },
  own: { readonly user: string; readonly contact: string | undefined },
  requestedSeconds: number,
): number {
  const bindings = splitList(answer.contact ?? '').flatMap((value) => parseNameAddr(value) ?? [])
  const isOwn = ({ uri }: NameAddr): boolean =>
    own.contact !== undefined && sameUri(uri, own.contact)
  const hasOurUser = ({ parsedUri }: NameAddr): boolean =>
    isSameName(parsedUri?.user ?? '', own.user)
  const header = parseExpires(answer.expires?.trim() ?? '')
  const granted =
    leastOf(bindings.filter(isOwn)) ??
    (bindings.some(isOwn) ? undefined : leastOf(bindings.filter(hasOurUser))) ??
    header ??
    leastOf(bindings) ??
    requestedSeconds
  return Math.min(granted, requestedSeconds)
}

/** The shortest time that one of these bindings is granted; undefined: none says so. */
function leastOf(bindings: readonly NameAddr[]): number | undefined {
  const seconds = bindings.flatMap(({ params }) => parseExpires(params.get('expires') ?? '') ?? [])
  return seconds.length === 0 ? undefined : Math.min(...seconds)
}

const isSameName = (one: string, other: string): boolean =>
  one.toLowerCase() === other.toLowerCase()
