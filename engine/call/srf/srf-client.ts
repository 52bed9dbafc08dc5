/**
 * drachtio-srf, connected: in process to the embedded server, or over TCP to drachtio servers.
 * A narrow, typed door: calls go in with callbacks, because a callback runs in the very message
 * that it reports, so that a new dialog has its listeners before any further message. (With
 * the library's promises a BYE in the same read is lost.) What it throws becomes a value here.
 */
import { respond } from '../sip/answers.ts'
import type { Log } from '../../../schema/contracts/log.ts'
import { withoutUriParams } from '../../sip-server/message/index.ts'
import type { Credentials, InviteToSend as Invite } from '../signalling.ts'
import type {
  Agent,
  Answer,
  Headers,
  RequestOptions,
  RequestHandler,
  SipRequest,
  SipResponse,
  SrfDialog,
} from './drachtio.ts'
import type { OpenInProcess } from './in-process-wire.ts'
import { type Connected, messageOf, type Servers, SrfLink } from './srf-link.ts'
import { PhoneHomes } from './servers/phone-homes.ts'
import { lostEnd, NOT_CONNECTED, type UacEnd, uacEnd } from './uac-end.ts'
import { SoleCheck } from './servers/sole-check.ts'
import { answering, tableSizes } from './servers/srf-tables.ts'
import {
  askForSession,
  grantSession,
  leastOf,
  nextAttempt,
  type SessionTimers,
} from './session-timer.ts'

export type { UacEnd } from './uac-end.ts'

export type Connection =
  | { readonly kind: 'in-process'; readonly open: OpenInProcess; readonly secret: string }
  | ({ readonly kind: 'tcp' } & Servers)

export interface InviteToSend extends Invite {
  /** Whose connection the other leg of the call is on: one server keeps both, as long as it can. */
  readonly near?: Agent | undefined
}

/** Of a request outside any dialog. `isUnsent`: the server was away, which says nothing about the destination. */
export type RequestEnd = SipResponse | { readonly reason: string; readonly isUnsent?: true }

/** A request that belongs to no dialog and begins none. */
export interface RequestToSend {
  readonly method: 'REGISTER' | 'MESSAGE'
  readonly uri: string
  /** Undefined: by its Route, or else its Request-URI. */
  readonly nextHop: string | undefined
  readonly headers: Headers
  readonly body?: string
  readonly credentials?: Credentials
  readonly near?: Agent | undefined
}

export interface UacHandlers {
  /** It has left; from now on it can be cancelled. */
  readonly onSent: (request: SipRequest) => void
  readonly onProvisional: (response: SipResponse) => void
  /** Exactly once. */
  readonly onEnd: (end: UacEnd) => void
}

export class SrfClient {
  readonly #log: Log
  readonly #onPayload: (payload: string) => void
  readonly #handlers: (readonly [string, RequestHandler])[] = []
  readonly #onLost: ((isLost: (callId: string) => boolean) => void)[] = []
  #links: readonly SrfLink[] = []
  #turn = 0
  readonly #homes = new PhoneHomes()
  readonly #soleCheck: SoleCheck
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
    this.#soleCheck = new SoleCheck(log)
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

  /** Whether the server is another process, which may be away without our hearing of it. */
  get isElsewhere(): boolean {
    return this.#links.some((link) => !link.isInProcess)
  }

  /**
   * Whether the server passes on the 100 of an INVITE that we sent. A drachtio-server keeps it to itself,
   * so that a node which is slow to ring looks like one that is dead.
   */
  get hearsTrying(): boolean {
    return this.#links.every((link) => link.hearsTrying)
  }

  /**
   * Before `connect`, for a server that does not screen sources: new requests that `admit`
   * does not let in get 403. To be silent would leave them open there and here.
   */
  screen(admit: (request: SipRequest) => boolean): void {
    this.#admit = admit
  }

  /** Before `connect`. Requests in a dialog go to the dialog, never here. */
  handle(method: string, handler: RequestHandler): void {
    const screened: RequestHandler = (request, answer) => {
      if (this.#soleCheck.takes(request)) respond(answer, 480)
      else if (this.#admit?.(request) === false) refuseUnheard(request, answer)
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
        ? connection.servers.map((server) => ({ ...connection, ...server }) as const)
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
          else if (connected.kind === 'connected')
            this.#log('debug', 'connected', { server, version: connected.version })
          if (target.kind === 'in-process' || connected.kind !== 'connected') resolve(connected)
          else void this.#soleCheck.check(target, connected).then(resolve)
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
    let sent: SipRequest | undefined
    const onSent = (first: SipRequest): void => {
      sent = first
      handlers.onSent(first)
    }
    const onEnd = (end: UacEnd): void => {
      const isTooShort = end.kind === 'rejected' && end.response.status === 422
      const least = isTooShort ? leastOf(end.response.headers, timers) : undefined
      if (least === undefined || sent === undefined) return handlers.onEnd(end)
      const again = nextAttempt(request.headers, sent.headers)
      askForSession(again, timers, { least, challenges })
      // To the server of the first: only it knows the CSeq of this Call-ID.
      return this.#invite({ ...request, headers: again, near: sent.agent }, handlers)
    }
    return this.#invite({ ...request, headers }, { ...handlers, onSent, onEnd })
  }

  #invite(request: InviteToSend, handlers: UacHandlers): void {
    const link = this.#towards(request.nextHop, request.near)
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
    const auth = credentials && answering(credentials, this.#links)
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
   * final answer, at most once. The returned function says whether a server has taken it.
   */
  sendOptions(uri: string, done: (end: RequestEnd) => void, nextHop = uri): () => boolean {
    const options = {
      method: 'OPTIONS',
      headers: { To: `<${withoutUriParams(uri)}>` },
      proxy: nextHop,
    }
    return this.#request(this.#towards(nextHop, undefined), uri, options, done)
  }

  /** `done` gets the final answer, at most once. */
  send(
    { uri, nextHop: proxy, credentials, near, ...rest }: RequestToSend,
    done: (end: RequestEnd) => void,
  ): void {
    const auth = credentials && answering(credentials, this.#links)
    const options = {
      ...rest,
      ...(proxy === undefined ? {} : { proxy }),
      ...(auth ? { auth } : {}),
    }
    this.#request(this.#towards(proxy, near), uri, options, done)
  }

  #request(
    link: SrfLink | undefined,
    uri: string,
    options: RequestOptions,
    done: (end: RequestEnd) => void,
  ): () => boolean {
    if (!link) {
      done(unsent)
      return () => false
    }
    let [isSent, isOver] = [link.isInProcess, false]
    const end = (result: RequestEnd): void => {
      if (isOver) return
      isOver = true
      forget()
      done(result)
    }
    const forget = link.whenLost(() => end(unsent))
    link.srf.request(uri, options, (error, request) => {
      isSent = true
      if (!request) return end({ reason: messageOf(error) })
      return request.on('response', (response) => {
        if (response.status >= 200) end(response)
      })
    })
    return () => isSent
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
    return tableSizes(this.#links)
  }

  get #sessionTimers(): SessionTimers {
    const isOurPart = !this.#links.every((link) => link.keepsSessionTimers)
    return { seconds: this.#sessionSeconds, isOurPart }
  }

  /** A phone that registered from `address` and `port`: what calls it goes by the server that has its flow. */
  noteRegistered({ source_address: address, source_port: port, agent }: SipRequest): void {
    if (this.#links.length > 1 && agent) this.#homes.note(address, port, agent)
  }

  /** The server that a phone registered on; else the one of the other leg; else each in turn. */
  #towards(nextHop: string | undefined, near: Agent | undefined): SrfLink | undefined {
    if (this.#links.length === 1) return this.#next()
    const agent = this.#homes.of(nextHop) ?? near
    const link = agent && this.#links.find((each) => each.agent === agent)
    return link?.isConnected === true ? link : this.#next()
  }

  /** The next connected server, in turn. */
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

function refuseUnheard(request: SipRequest, answer: Answer): void {
  if (request.method !== 'ACK') respond(answer, 403)
}

const unsent: RequestEnd = { reason: NOT_CONNECTED, isUnsent: true }

const ignore = (): void => undefined
