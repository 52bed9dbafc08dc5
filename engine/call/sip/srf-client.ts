/**
 * drachtio-srf, connected: in process to the embedded server, or over TCP to any drachtio server.
 * A narrow, typed door: calls go in with callbacks, because a callback runs in the very message
 * that it reports, so that nothing can happen to a new dialog before its listeners stand. (With
 * the library's promises a BYE in the same read is lost.) What it throws becomes a value here.
 */
import { createRequire } from 'node:module'
import { answerChallenges, type Credentials } from './challenge.ts'
import type {
  Answer,
  AnswerChallenge,
  Headers,
  PendingOffer,
  RequestHandler,
  SipRequest,
  SipResponse,
  Srf,
  SrfConstructor,
  SrfDialog,
} from './drachtio.ts'
import type { OpenInProcess } from './in-process-wire.ts'
import { attachInProcess } from './in-process-wire.ts'
import { askForSession, grantSession, leastOf, type SessionTimers } from './session-timer.ts'

export type Connection =
  | { readonly kind: 'in-process'; readonly open: OpenInProcess; readonly secret: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number; readonly secret: string }

export type Connected =
  /** `hostPorts`: what the server listens on, such as `udp/192.0.2.1:5060`. */
  | { readonly kind: 'connected'; readonly hostPorts: readonly string[]; readonly version: string }
  | { readonly kind: 'refused'; readonly reason: string }

export type Log = (
  level: 'debug' | 'info' | 'warn' | 'error',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void

/** How an INVITE that we sent ended. */
export type UacEnd =
  | { readonly kind: 'answered'; readonly dialog: SrfDialog }
  /** Answered with an offer, because the INVITE had none; not yet acknowledged. */
  | { readonly kind: 'offered'; readonly offer: PendingOffer }
  | { readonly kind: 'rejected'; readonly response: SipResponse }
  /** Answered, but no dialog can be formed from it (no usable Contact, or a 2xx other than 200). */
  | { readonly kind: 'unusable'; readonly response: SipResponse }
  | { readonly kind: 'not-sent'; readonly reason: string }

export interface InviteToSend {
  readonly uri: string
  /** Where it goes; undefined: by its Route, or else its Request-URI. */
  readonly nextHop: string | undefined
  readonly headers: Headers
  readonly body: string | undefined
  /** For digest challenges. */
  readonly credentials: Credentials | undefined
}

export interface RegisterToSend {
  readonly uri: string
  readonly nextHop: string
  readonly headers: Headers
  readonly credentials: Credentials
}

export interface UacHandlers {
  /** It has left; from now on it can be cancelled. */
  readonly onSent: (request: SipRequest) => void
  readonly onProvisional: (response: SipResponse) => void
  /** Exactly once. */
  readonly onEnd: (end: UacEnd) => void
}

const load = createRequire(import.meta.url)
const SrfLibrary = load('drachtio-srf') as SrfConstructor
const reasonPhrases = load('sip-status') as Readonly<Record<number, string>>

// The library writes every message as JSON for a debug line that is not printed: 25 µs of a call.
SrfLibrary.SipMessage.prototype.toJSON = () => undefined

export class SrfClient {
  readonly #srf: Srf = new SrfLibrary()
  readonly #log: Log
  readonly #onPayload: (payload: string) => void
  readonly #onLost: (() => void)[] = []
  #ownHost = 'localhost'
  #hearsTrying = false
  readonly #sessionSeconds: number
  /**
   * How long an answer that has arrived may wait until it is read, because this process is busy.
   * Silence that is no longer proves nothing. Milliseconds.
   */
  readonly lagMs: () => number

  /**
   * `onPayload` sees what an embedded server hands over, before it is handled. `sessionSeconds`: how
   * long a leg may go without a sign of life (RFC 4028); 0: for ever.
   */
  constructor(
    log: Log,
    onPayload: (payload: string) => void = ignore,
    lagMs: () => number = () => 0,
    sessionSeconds = 0,
  ) {
    this.#log = log
    this.#sessionSeconds = sessionSeconds
    this.lagMs = lagMs
    this.#onPayload = onPayload
    this.#srf.on('error', (error) => log('warn', 'drachtio server unreachable', describe(error)))
    this.#srf.on('close', () => this.#lost())
  }

  /** Host and port that we show outside, once connected; before, the placeholder `localhost`. */
  get ownHost(): string {
    return this.#ownHost
  }

  /**
   * Whether the server passes on the 100 of an INVITE that we sent. A real drachtio-server keeps it
   * to itself, so that a node which is slow to ring looks like one that is dead.
   */
  get hearsTrying(): boolean {
    return this.#hearsTrying
  }

  /** Before `connect`. Requests in a dialog go to the dialog, never here. */
  handle(method: string, handler: RequestHandler): void {
    this.#srf.use(method.toLowerCase(), handler)
  }

  /** Called when the connection is gone: every dialog and pending request died with it. */
  onLost(listener: () => void): void {
    this.#onLost.push(listener)
  }

  /** Over TCP the library goes on trying, so this may take as long as the server is away. */
  connect(connection: Connection): Promise<Connected> {
    const connected = new Promise<Connected>((resolve) => {
      this.#srf.on('connect', (error, hostPorts, version) => {
        if (error) return resolve({ kind: 'refused', reason: messageOf(error) })
        this.#hearsTrying = version.includes('tollgate')
        const listening = hostPorts.split(',')
        this.#ownHost = listening[0]?.replace(/^[^/]*\//, '') ?? this.#ownHost
        return resolve({ kind: 'connected', hostPorts: listening, version })
      })
    })
    if (connection.kind === 'tcp') this.#srf.connect(connection)
    else
      attachInProcess(this.#srf, connection, {
        onFault: (error) =>
          this.#log('error', 'a SIP message could not be handled', describe(error)),
        onPayload: this.#onPayload,
      })
    return connected
  }

  disconnect(): void {
    if (this.#isConnected) this.#srf.disconnect()
  }

  /**
   * Sends an INVITE. Without body the callee makes the offer. A callee that wants a longer session
   * interval is asked once more (RFC 4028 §7.3); `onSent` is called again then.
   */
  invite(request: InviteToSend, handlers: UacHandlers): void {
    const timers = this.#sessionTimers
    const headers = { ...request.headers }
    askForSession(headers, timers)
    const onEnd = (end: UacEnd): void => {
      const isTooShort = end.kind === 'rejected' && end.response.status === 422
      const least = isTooShort ? leastOf(end.response.headers, timers) : undefined
      if (least === undefined) return handlers.onEnd(end)
      const again = { ...request.headers }
      askForSession(again, timers, least)
      return this.#invite({ ...request, headers: again }, handlers)
    }
    return this.#invite({ ...request, headers }, { ...handlers, onEnd })
  }

  #invite(request: InviteToSend, handlers: UacHandlers): void {
    let final: SipResponse | undefined
    let isOver = false
    const end = (result: UacEnd): void => {
      if (isOver) return
      isOver = true
      handlers.onEnd(result)
    }
    const { uri, nextHop: proxy, headers, body: localSdp, credentials } = request
    const auth = credentials && this.#answering(credentials)
    const options = { method: 'INVITE', headers, localSdp, auth, proxy, noAck: true } as const
    const callbacks = {
      cbRequest: (_error: unknown, request?: SipRequest) => {
        request?.on('response', (response) => {
          if (response.status >= 200) final = response
        })
        if (request) handlers.onSent(request)
      },
      cbProvisional: handlers.onProvisional,
    }
    if (!this.#isConnected) return end({ kind: 'not-sent', reason: NOT_CONNECTED })
    return this.#srf.createUAC(uri, options, callbacks, (error, result) =>
      end(uacEnd(error, result, final)),
    )
  }

  /** CANCEL for an INVITE that was sent. */
  cancel(request: SipRequest, headers: Headers): void {
    if (this.#isConnected) request.cancel({ headers }, ignore)
  }

  /** Answers an INVITE with 200. `done` gets the dialog, or undefined when the caller is gone. */
  accept(
    request: SipRequest,
    answer: Answer,
    options: { readonly localSdp: string; readonly headers: Headers },
    done: (dialog: SrfDialog | undefined) => void,
  ): void {
    let isDone = false
    grantSession(request.headers, options.headers, this.#sessionTimers)
    this.#srf.createUAS(request, answer, options, (_error, dialog) => {
      if (isDone) dialog?.destroy({ headers: {} }, ignore)
      else done(dialog)
      isDone = true
    })
  }

  /**
   * One OPTIONS outside any dialog, to `nextHop` whatever is registered under `uri`. `done` gets its
   * final answer, at most once.
   */
  sendOptions(
    uri: string,
    done: (answer: SipResponse | { readonly reason: string }) => void,
    nextHop = uri,
  ): void {
    if (!this.#isConnected) return done({ reason: NOT_CONNECTED })
    return this.#srf.request(uri, { method: 'OPTIONS', proxy: nextHop }, (error, request) => {
      if (!request) return done({ reason: messageOf(error) })
      return request.on('response', (response) => {
        if (response.status >= 200) done(response)
      })
    })
  }

  /** One REGISTER of our own. `done` gets its final answer, at most once. */
  sendRegister(
    { uri, nextHop: proxy, headers, credentials }: RegisterToSend,
    done: (answer: SipResponse | { readonly reason: string }) => void,
  ): void {
    if (!this.#isConnected) return done({ reason: NOT_CONNECTED })
    const options = { method: 'REGISTER', headers, proxy, auth: this.#answering(credentials) }
    return this.#srf.request(uri, options, (error, request) => {
      if (!request) return done({ reason: messageOf(error) })
      return request.on('response', (response) => {
        if (response.status >= 200) done(response)
      })
    })
  }

  /** BYE for an answered INVITE from which the library could not form a dialog. */
  release(response: SipResponse): void {
    if (response.stackDialogId === undefined || !this.#isConnected) return
    const options = { method: 'BYE', stackDialogId: response.stackDialogId }
    this.#srf.request('sip:placeholder', options, ignore)
  }

  /** Sizes of the library's own tables: all zero when nothing is going on. */
  stats(): Readonly<Record<string, number>> {
    const stats = {
      dialogs: this.#srf._dialogs.size,
      requests: 0,
      sipRequests: 0,
      invites: 0,
      acks: 0,
      challenges: this.#srf.app.client?.pendingSipAuthTxnIdUpdate.size ?? 0,
    }
    for (const state of this.#srf.app.client?.mapServer.values() ?? []) {
      stats.requests += state.pendingRequests.size
      stats.sipRequests += state.pendingSipRequests.size
      stats.invites += state.pendingNetworkInvites.size
      stats.acks += state.pendingAckOrPrack.size
      stats.challenges += state.pendingSipAuthRequests.size
    }
    return stats
  }

  /** What the library remembers of a challenge that is not answered is forgotten here. */
  #answering(credentials: Credentials): AnswerChallenge {
    return answerChallenges(credentials, ({ headers, req }) => {
      const { client } = this.#srf.app
      client?.pendingSipAuthTxnIdUpdate.delete(req.stackTxnId)
      for (const state of client?.mapServer.values() ?? [])
        state.pendingSipAuthRequests.delete(headers['call-id'] ?? '')
    })
  }

  get #sessionTimers(): SessionTimers {
    return { seconds: this.#sessionSeconds, isOurPart: !this.#hearsTrying }
  }

  /** Without a connection the library throws an AssertionError. */
  get #isConnected(): boolean {
    return (this.#srf.app.client?.mapServer.size ?? 0) > 0
  }

  /** The library forgets its bookkeeping silently and settles nothing, so its dialogs go here. */
  #lost(): void {
    this.#srf._dialogs.clear()
    for (const listener of this.#onLost) listener()
  }
}

function uacEnd(
  error: unknown,
  result: SrfDialog | PendingOffer | undefined,
  final: SipResponse | undefined,
): UacEnd {
  if (result && 'sdp' in result) return { kind: 'offered', offer: result }
  if (result) return { kind: 'answered', dialog: result }
  if (final && final.status < 300) return { kind: 'unusable', response: final }
  if (final) return { kind: 'rejected', response: final }
  return { kind: 'not-sent', reason: messageOf(error) }
}

/** What we take, in and out of dialogs. */
export const ALLOW =
  'INVITE, ACK, CANCEL, BYE, OPTIONS, REGISTER, PRACK, UPDATE, INFO, MESSAGE, NOTIFY, REFER'

/** A status that the library can send; it throws on others. RFC 3261 §8.1.3.2 reads those as x00. */
export function listedStatus(status: number): number {
  if (status in reasonPhrases) return status
  return status < 200 ? 183 : Math.min(600, status - (status % 100))
}

/** Sends an answer, at most one final one. */
export function respond(
  answer: Answer,
  status: number,
  reason?: string,
  options: { readonly headers?: Headers; readonly body?: string | undefined } = {},
): void {
  if (answer.finalResponseSent) return
  answer.send(listedStatus(status), reason, options)
}

const NOT_CONNECTED = 'no connection to the SIP server'

const ignore = (): void => undefined

const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)

const describe = (error: unknown) => ({ error: messageOf(error) })
