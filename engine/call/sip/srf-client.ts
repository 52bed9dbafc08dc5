/**
 * drachtio-srf, connected: in process to the embedded server, or over TCP to drachtio servers.
 * A narrow, typed door: calls go in with callbacks, because a callback runs in the very message
 * that it reports, so that nothing can happen to a new dialog before its listeners stand. (With
 * the library's promises a BYE in the same read is lost.) What it throws becomes a value here.
 */
import { createRequire } from 'node:module'
import { answerChallenges, type Credentials } from './challenge.ts'
import type {
  Agent,
  Answer,
  AnswerChallenge,
  Headers,
  PendingOffer,
  RequestHandler,
  SipRequest,
  SipResponse,
  SrfDialog,
} from './drachtio.ts'
import type { OpenInProcess } from './in-process-wire.ts'
import { type Connected, type Log, messageOf, type Servers, SrfLink } from './srf-link.ts'
import { askForSession, grantSession, leastOf, type SessionTimers } from './session-timer.ts'

export type { Log } from './srf-link.ts'

export type Connection =
  | { readonly kind: 'in-process'; readonly open: OpenInProcess; readonly secret: string }
  | ({ readonly kind: 'tcp' } & Servers)

/** How an INVITE that we sent ended. */
export type UacEnd =
  | { readonly kind: 'answered'; readonly dialog: SrfDialog }
  /** Answered with an offer, because the INVITE had none; not yet acknowledged. */
  | { readonly kind: 'offered'; readonly offer: PendingOffer }
  | { readonly kind: 'rejected'; readonly response: SipResponse }
  /** Answered, but no dialog can be formed from it (no usable Contact, or a 2xx other than 200). */
  | { readonly kind: 'unusable'; readonly response: SipResponse }
  /** `isConnectionLost`: the server is away, which says nothing about the destination. */
  | { readonly kind: 'not-sent'; readonly reason: string; readonly isConnectionLost?: true }

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
const reasonPhrases = load('sip-status') as Readonly<Record<number, string>>

export class SrfClient {
  readonly #log: Log
  readonly #onPayload: (payload: string) => void
  readonly #handlers: (readonly [string, RequestHandler])[] = []
  readonly #onLost: ((isLost: (callId: string) => boolean) => void)[] = []
  #links: readonly SrfLink[] = []
  #turn = 0
  #admit: ((request: SipRequest) => boolean) | undefined
  readonly #sessionSeconds: number
  /**
   * How long an answer that has arrived may wait until it is read, because this process is busy.
   * Silence that is no longer proves nothing. Milliseconds.
   */
  readonly lagMs: () => number

  /**
   * `onPayload` sees what a server hands over, before it is handled. `sessionSeconds`: how
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
  }

  /** Host and port that we show outside, once connected; before, the placeholder `localhost`. */
  get ownHost(): string {
    const [first = 'localhost'] = this.hostPorts
    return first.replace(/^[^/]*\//, '')
  }

  /** What the servers listen on that have been reached so far, such as `udp/192.0.2.1:5060`. */
  get hostPorts(): readonly string[] {
    return this.#links.flatMap((link) => link.hostPorts)
  }

  /**
   * Whether the server passes on the 100 of an INVITE that we sent. A drachtio-server keeps it to itself,
   * so that a node which is slow to ring looks like one that is dead.
   */
  get hearsTrying(): boolean {
    return this.#links.every((link) => link.hearsTrying)
  }

  /**
   * Before `connect`, for a server that does not ask who may be heard: new requests that `admit`
   * does not let in get 403. To be silent would leave them open there and here.
   */
  screen(admit: (request: SipRequest) => boolean): void {
    this.#admit = admit
  }

  /** Before `connect`. Requests in a dialog go to the dialog, never here. */
  handle(method: string, handler: RequestHandler): void {
    const screened: RequestHandler = (request, answer) => {
      if (this.#admit?.(request) === false) refuseUnheard(request, answer)
      else handler(request, answer)
    }
    this.#handlers.push([method.toLowerCase(), screened])
  }

  /**
   * Called when a connection is gone: every dialog and pending request on it died with it. `isLost`
   * says of a Call-ID whether it was among them.
   */
  onLost(listener: (isLost: (callId: string) => boolean) => void): void {
    this.#onLost.push(listener)
  }

  /**
   * Resolves with the first server that is there, or when one refuses us. The others are tried for as
   * long as they are away, and so is each that goes away later.
   */
  connect(connection: Connection): Promise<Connected> {
    const targets =
      connection.kind === 'tcp'
        ? connection.servers.map(
            (server) => ({ kind: 'tcp', schedule: connection.schedule, ...server }) as const,
          )
        : [connection]
    return new Promise((resolve) => {
      this.#links = targets.map((target) => {
        const link = new SrfLink({
          ...{ log: this.#log, onPayload: this.#onPayload },
          onLost: (lost) => this.#lost(lost),
        })
        for (const [method, handler] of this.#handlers) link.srf.use(method, handler)
        link.connect(target, (connected) => {
          const server = target.kind === 'tcp' ? `${target.host}:${target.port}` : 'this process'
          if (connected.kind === 'refused')
            this.#log('error', 'drachtio server refuses us', { server, reason: connected.reason })
          else this.#log('debug', 'connected', { server, version: connected.version })
          resolve(connected)
        })
        return link
      })
    })
  }

  disconnect(): void {
    for (const link of this.#links) link.disconnect()
  }

  /**
   * Sends an INVITE. Without body the callee makes the offer. A callee that wants a longer session
   * interval is asked once more (RFC 4028 §7.3); `onSent` is called again then.
   */
  invite(request: InviteToSend, handlers: UacHandlers): void {
    const timers = this.#sessionTimers
    const headers = { ...request.headers }
    const challenges = request.credentials !== undefined
    askForSession(headers, timers, { challenges })
    const onEnd = (end: UacEnd): void => {
      const isTooShort = end.kind === 'rejected' && end.response.status === 422
      const least = isTooShort ? leastOf(end.response.headers, timers) : undefined
      if (least === undefined) return handlers.onEnd(end)
      const again = { ...request.headers }
      askForSession(again, timers, { least, challenges })
      return this.#invite({ ...request, headers: again }, handlers)
    }
    return this.#invite({ ...request, headers }, { ...handlers, onEnd })
  }

  #invite(request: InviteToSend, handlers: UacHandlers): void {
    const link = this.#next()
    if (!link) return handlers.onEnd(lostEnd)
    let final: SipResponse | undefined
    let isOver = false
    const forget = link.whenLost(() => end(lostEnd))
    const end = (result: UacEnd): void => {
      if (isOver) return
      isOver = true
      forget()
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
    return link.srf.createUAC(uri, options, callbacks, (error, result) =>
      end(uacEnd(error, result, final)),
    )
  }

  /** CANCEL for an INVITE that was sent. */
  cancel(request: SipRequest, headers: Headers): void {
    if (this.#linkOf(request)?.isConnected === true) request.cancel({ headers }, ignore)
  }

  /** Answers an INVITE with 200. `done` gets the dialog, or undefined when the caller is gone. */
  accept(
    request: SipRequest,
    answer: Answer,
    options: { readonly localSdp: string; readonly headers: Headers },
    done: (dialog: SrfDialog | undefined) => void,
  ): void {
    const link = this.#linkOf(request)
    if (!link) return done(undefined)
    let isDone = false
    const answered = link.answering(request)
    grantSession(request.headers, options.headers, this.#sessionTimers)
    return link.srf.createUAS(request, answer, options, (_error, dialog) => {
      answered()
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
    const link = this.#next()
    if (!link) return done({ reason: NOT_CONNECTED })
    return link.srf.request(uri, { method: 'OPTIONS', proxy: nextHop }, (error, request) => {
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
    const link = this.#next()
    if (!link) return done({ reason: NOT_CONNECTED })
    const options = { method: 'REGISTER', headers, proxy, auth: this.#answering(credentials) }
    return link.srf.request(uri, options, (error, request) => {
      if (!request) return done({ reason: messageOf(error) })
      return request.on('response', (response) => {
        if (response.status >= 200) done(response)
      })
    })
  }

  /** BYE for an answered INVITE from which the library could not form a dialog. */
  release(response: SipResponse): void {
    const link = this.#linkOf(response)
    if (response.stackDialogId === undefined || link?.isConnected !== true) return
    const options = { method: 'BYE', stackDialogId: response.stackDialogId }
    link.srf.request('sip:placeholder', options, ignore)
  }

  /** Sizes of the library's own tables: all zero when nothing is going on. */
  stats(): Readonly<Record<string, number>> {
    const stats = { dialogs: 0, requests: 0, sipRequests: 0, invites: 0, acks: 0, challenges: 0 }
    for (const { srf, agent } of this.#links) {
      stats.dialogs += srf._dialogs.size
      stats.challenges += agent?.pendingSipAuthTxnIdUpdate.size ?? 0
      for (const state of agent?.mapServer.values() ?? []) {
        stats.requests += state.pendingRequests.size
        stats.sipRequests += state.pendingSipRequests.size
        stats.invites += state.pendingNetworkInvites.size
        stats.acks += state.pendingAckOrPrack.size
        stats.challenges += state.pendingSipAuthRequests.size
      }
    }
    return stats
  }

  /** What the library remembers of a challenge that is not answered is forgotten here. */
  #answering(credentials: Credentials): AnswerChallenge {
    return answerChallenges(credentials, ({ headers, req }) => {
      for (const { agent } of this.#links) {
        agent?.pendingSipAuthTxnIdUpdate.delete(req.stackTxnId)
        for (const state of agent?.mapServer.values() ?? [])
          state.pendingSipAuthRequests.delete(headers['call-id'] ?? '')
      }
    })
  }

  get #sessionTimers(): SessionTimers {
    const isOurPart = !this.#links.every((link) => link.keepsSessionTimers)
    return { seconds: this.#sessionSeconds, isOurPart }
  }

  /** Who sends what we begin: those that are connected, in turn. */
  #next(): SrfLink | undefined {
    for (let tried = 0; tried < this.#links.length; tried++) {
      this.#turn = (this.#turn + 1) % this.#links.length
      const link = this.#links[this.#turn]
      if (link?.isConnected === true) return link
    }
    return undefined
  }

  /** The server that a message came from, or went to. */
  #linkOf({ agent }: { readonly agent?: Agent }): SrfLink | undefined {
    if (this.#links.length === 1) return this.#links[0]
    return this.#links.find((link) => link.agent === agent)
  }

  #lost(lost: SrfLink): void {
    const callIds = lost.callIds()
    const isOnly = this.#links.length === 1
    for (const listener of this.#onLost) listener((callId) => isOnly || callIds.has(callId))
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

/** `Allow` of a 405: what is refused where it stands is not among it (RFC 3261 §21.4.6). */
export const allowedBut = (refused: string): string =>
  ALLOW.split(', ')
    .filter((method) => method !== refused)
    .join(', ')

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

function refuseUnheard(request: SipRequest, answer: Answer): void {
  if (request.method !== 'ACK') respond(answer, 403)
}

const NOT_CONNECTED = 'no connection to the SIP server'
const lostEnd: UacEnd = { kind: 'not-sent', reason: NOT_CONNECTED, isConnectionLost: true }

const ignore = (): void => undefined
