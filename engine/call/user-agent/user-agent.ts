/**
 * Sends and receives SIP for call control by a port. Handlers and listeners are called at once, so
 * that a new dialog has its listener before the next message.
 */
import type { Log } from '../../../schema/contracts/log.ts'
import type {
  MessageFlow,
  OpenedPort,
  PingDone,
  RequestEvent,
  ResponseEvent,
  SavedDialog,
  SavedDialogs,
  SavedInvite,
  SipPort,
  SipPortEvent,
  SipSender,
  UnsolicitedEvent,
} from '../../sip-server/application.ts'
import {
  composeRequest,
  composeResponse,
  ReleasingMap,
  tagOf,
  withoutUriParams,
} from '../../../schema/sip/index.ts'
import { assembled } from '../multipart.ts'
import type {
  Answer,
  DigestLogin,
  DialogIds,
  Headers,
  InviteToSend,
  SipResponse,
} from '../signalling.ts'
import { respond } from '../sip-headers.ts'
import { CallDialog, type DialogLink } from './dialog.ts'
import {
  OutgoingRequest,
  type RequestLink,
  type RequestListener,
  type RequestParts,
} from './outgoing-request.ts'
import {
  headersOf,
  messageOf,
  ReceivedRequest,
  type ResponseLink,
  type ResponseToSend,
} from './received-request.ts'
import {
  askForSession,
  grantSession,
  leastOf,
  nextAttempt,
  type SessionTimerTerms,
} from './session-timer.ts'

export type RequestHandler = (request: ReceivedRequest, answer: Answer) => void

/** How a message passed between the server and us. */
export type OnMessage = (direction: 'received' | 'sent', flow: MessageFlow, text: string) => void

export interface UserAgentDeps {
  readonly port: SipPort
  readonly log: Log
  /** Sees what passes between a server and us, before it is handled. */
  readonly onMessage?: OnMessage
  /**
   * How long a received answer may wait to be read, because this process is busy. Shorter silence
   * proves nothing. Milliseconds.
   */
  readonly lagMs?: () => number
  /** How long a leg may go without a sign of life (RFC 4028); 0: for ever. */
  readonly sessionSeconds?: number
}

/** A request that belongs to no dialog and begins none. */
interface RequestToSend {
  readonly method: 'REGISTER' | 'MESSAGE'
  readonly uri: string
  /** The next hop. Undefined: its Route decides, or else its Request-URI. */
  readonly nextHop: string | undefined
  readonly headers: Headers
  readonly body?: string
  readonly credentials?: DigestLogin
  /** See `InviteNear`. */
  readonly near?: string
}

/** The two legs of a call are on one server, if possible. */
interface InviteNear {
  /** Id of a transaction of the other leg. Absent: there is none. */
  readonly near?: string | undefined
}

const NOT_CONNECTED = 'no connection to the SIP server'

/** The server knows the remote target of a dialog, and the request of a transaction. */
const PLACEHOLDER = 'sip:placeholder'

const ignore = (): void => undefined

export class UserAgent implements DialogLink, RequestLink, ResponseLink {
  readonly #port: SipPort
  readonly #log: Log
  readonly #onMessage: OnMessage
  readonly #sessionSeconds: number
  readonly #handlers = new Map<string, RequestHandler>()
  readonly #onLost: ((isLost: (callId: string) => boolean) => void)[] = []
  /** Sent requests without a final response, by transaction. */
  readonly #requests = new ReleasingMap<string, OutgoingRequest>()
  readonly #dialogs = new ReleasingMap<string, CallDialog>()
  /** Received INVITEs without a final response, by transaction: where a CANCEL goes. */
  readonly #invites = new ReleasingMap<string, ReceivedRequest>()
  /**
   * Call-IDs of INVITEs that are just being accepted, by transaction: no longer pending, not yet
   * dialogs.
   */
  readonly #accepting = new Map<string, string>()
  /** Dialogs whose 2xx waits for our ACK. */
  readonly #unacknowledged = new Set<string>()
  /** Requests whose challenge was answered, until the next response. */
  readonly #challenged = new Set<OutgoingRequest>()
  /** Requests outside dialogs that have not ended, by number. */
  readonly #pending = new ReleasingMap<number, OutgoingRequest>()
  #requestCount = 0
  /** See `UserAgentDeps`. */
  readonly lagMs: () => number

  constructor({
    port,
    log,
    onMessage = ignore,
    lagMs = () => 0,
    sessionSeconds = 0,
  }: UserAgentDeps) {
    this.#port = port
    this.#log = log
    this.#onMessage = onMessage
    this.lagMs = lagMs
    this.#sessionSeconds = sessionSeconds
  }

  /** Host and port that we show outside, once connected; before, the placeholder `localhost`. */
  get ownHost(): string {
    const [first = 'localhost'] = this.#port.hostPorts
    return first.replace(/^[^/]*\//, '')
  }

  get reportsTrying(): boolean {
    return this.#port.reportsTrying
  }

  get isRemote(): boolean {
    return this.#port.isRemote
  }

  get saved(): SavedDialogs | undefined {
    return this.#port.saved
  }

  /**
   * Sets the handler of a method, before `connect`; `*` is all other methods. Requests in a dialog
   * go to the dialog, never here.
   */
  handle(method: string, handler: RequestHandler): void {
    this.#handlers.set(method.toLowerCase(), handler)
  }

  /**
   * Called when a connection is gone: every dialog and pending request on it died with it. `isLost`
   * says of a Call-ID whether it was among them.
   */
  onLost(listener: (isLost: (callId: string) => boolean) => void): void {
    this.#onLost.push(listener)
  }

  connect(): Promise<OpenedPort> {
    return this.#port.open({
      methods: [...this.#handlers.keys()].filter((method) => method !== '*'),
      onEvent: (event, sender) => this.#onEvent(event, sender),
      onLost: (server) => this.#lost(server),
    })
  }

  disconnect(): void {
    this.#port.close()
  }

  /**
   * Sends an INVITE. Without body the callee makes the offer. A callee that wants a longer session
   * interval gets a second INVITE (RFC 4028 §7.3); `onSent` is called again then.
   */
  invite(request: InviteToSend & InviteNear, handlers: UacHandlers): void {
    const timers = this.#sessionTimers
    const headers = { ...request.headers }
    const challenges = request.credentials !== undefined
    askForSession(headers, timers, { challenges })
    const server = this.#serverFor(request.nextHop, request.near)
    if (server === undefined) return handlers.onEnd(lostEnd)
    let first: OutgoingRequest | undefined
    const onSent = (sent: OutgoingRequest): void => {
      first = sent
      handlers.onSent(sent)
    }
    const onEnd = (end: UacEnd): void => {
      const isTooShort = end.kind === 'rejected' && end.response.status === 422
      const least = isTooShort ? leastOf(end.response.headers, timers) : undefined
      if (least === undefined || first?.sent === undefined) return handlers.onEnd(end)
      const again = nextAttempt(request.headers, first.sent)
      askForSession(again, timers, { least, challenges })
      // It goes by the server of the first INVITE, which alone knows the CSeq of the Call-ID.
      return sendInvite(this, server, request, again, handlers)
    }
    return sendInvite(this, server, request, headers, { ...handlers, onSent, onEnd })
  }

  /** Answers an INVITE with 200. `done` gets the dialog, or undefined when the caller is gone. */
  accept(
    request: ReceivedRequest,
    { headers, body }: Pick<ResponseToSend, 'headers' | 'body'>,
    done: (dialog: CallDialog | undefined) => void,
  ): void {
    const { transactionId, callId, fromTag: remoteTag, body: media } = request
    grantSession(request.headers, headers, this.#sessionTimers)
    this.#accepting.set(transactionId, callId)
    request.send(200, undefined, { headers, body }, (sent) => {
      this.#accepting.delete(transactionId)
      if (sent === undefined) return done(undefined)
      const { dialogId, localTag } = sent
      return done(this.addDialog(dialogId, { callId, localTag, remoteTag, media }, undefined))
    })
  }

  /**
   * One OPTIONS outside any dialog, to `nextHop` whatever is registered under `uri`. `done` gets
   * its final answer, at most once. The returned function tells whether a server has taken it.
   */
  sendOptions(uri: string, done: (end: RequestEnd) => void, nextHop = uri): () => boolean {
    const headers = { To: `<${withoutUriParams(uri)}>` }
    const parts = { method: 'OPTIONS', uri, headers, body: '', nextHop, dialogId: '' }
    const server = this.#serverFor(nextHop)
    return sendRequest(this, server, { ...parts, credentials: undefined }, done)
  }

  /** Does the same as `sendOptions` where the server has a cheaper way; see `SipPort.ping`. */
  ping(target: string, done: PingDone): boolean {
    return this.#port.ping(target, done)
  }

  /**
   * `done` gets the final answer, at most once; `onSent` the text of the request as it has left.
   */
  send(
    { method, uri, nextHop = '', headers, body = '', credentials, near }: RequestToSend,
    done: (end: RequestEnd) => void,
    onSent?: (text: string) => void,
  ): void {
    const parts = { method, uri, headers, body, nextHop, dialogId: '', credentials }
    sendRequest(this, this.#serverFor(nextHop, near), parts, done, onSent)
  }

  /** A phone has registered from its address: calls to it go by the server that has its flow. */
  noteRegistered({ transactionId, sourceAddress, sourcePort }: ReceivedRequest): void {
    this.#port.noteRegistered(transactionId, sourceAddress, sourcePort)
  }

  /** Sizes of our tables: all zero when nothing is going on. */
  stats(): Readonly<Record<string, number>> {
    return {
      dialogs: this.#dialogs.size,
      requests: this.#port.unconfirmed,
      sipRequests: this.#requests.size,
      invites: this.#invites.size,
      acks: this.#unacknowledged.size,
      challenges: this.#challenged.size,
    }
  }

  get #sessionTimers(): SessionTimerTerms {
    return { seconds: this.#sessionSeconds, isOurPart: !this.#port.keepsSessionTimers }
  }

  #serverFor(nextHop = '', near = ''): string | undefined {
    return this.#port.serverFor(nextHop, near)
  }

  // ---- what requests, dialogs and responses ask for ----

  /** Sends a request of ours, in a dialog or outside. */
  request(parts: RequestParts, listener: RequestListener): void {
    const request = new OutgoingRequest(this, ++this.#requestCount, parts, listener)
    if (listener.onLost) this.#pending.set(request.number, request)
    this.sendRequest(request, parts)
  }

  sendRequest(request: OutgoingRequest, parts: RequestParts): void {
    const { method, uri } = parts
    const { headers, body } = assembled(parts.headers, parts.body)
    if (request.sent) this.#challenged.add(request)
    const message = composeRequest(method, uri === '' ? PLACEHOLDER : uri, headers, body)
    if (!this.#port.request(message, parts, request)) request.refused(NOT_CONNECTED)
  }

  sendCancel({ transactionId }: OutgoingRequest, headers: Headers): void {
    this.#port.cancel(transactionId, composeRequest('CANCEL', PLACEHOLDER, headers))
  }

  wasSent(request: OutgoingRequest, transactionId: string): void {
    this.#requests.set(transactionId, request)
  }

  ended({ number }: OutgoingRequest): void {
    this.#pending.delete(number)
  }

  /** The ACK of a 2xx will be sent later. */
  owesAck(dialogId: string): void {
    this.#unacknowledged.add(dialogId)
  }

  /** Sends the ACK of a 2xx. */
  acknowledge(dialogId: string, body: string | undefined): void {
    this.#unacknowledged.delete(dialogId)
    this.#inDialog(dialogId, 'ACK', {}, body)
  }

  /** PRACK of a reliable provisional response (RFC 3262 §7.2). */
  prack(dialogId: string, rack: string): void {
    this.#inDialog(dialogId, 'PRACK', { RAck: rack }, undefined)
  }

  /** Sends BYE in a dialog that we do not use. */
  release(dialogId: string): void {
    this.#inDialog(dialogId, 'BYE', {}, undefined)
  }

  /** Sends a request in a dialog, and ignores its response. */
  #inDialog(dialogId: string, method: string, headers: Headers, body: string | undefined): void {
    const message = composeRequest(method, PLACEHOLDER, headers, body)
    this.#port.request(message, { dialogId, nextHop: '', server: '' }, undefined)
  }

  respond(request: ReceivedRequest, response: ResponseToSend, waits: boolean): void {
    const { transactionId } = request
    const { status, reason } = response
    const { headers, body } = assembled(response.headers, response.body)
    if (status >= 200) this.#invites.delete(transactionId)
    const message = composeResponse(status, reason, headers, body)
    const isToStranger = request.isFromStranger && status >= 200
    const sender = waits ? request : undefined
    if (!this.#port.respond(transactionId, message, isToStranger, sender)) request.notSent()
  }

  /** A dialog that an answer has begun. */
  addDialog(id: string, ids: DialogIds, credentials: DigestLogin | undefined): CallDialog {
    const dialog = new CallDialog(this, id, ids, credentials)
    this.#dialogs.set(id, dialog)
    return dialog
  }

  forgetDialog({ id }: CallDialog): void {
    this.#dialogs.delete(id)
    this.#unacknowledged.delete(id)
  }

  // ---- dialogs and INVITEs of the last process ----

  /** `credentials`: for challenges in the dialog. Undefined: the server cannot restore it. */
  restoreDialog(saved: SavedDialog, credentials: DigestLogin | undefined): CallDialog | undefined {
    if (this.saved?.restoreDialog(saved) !== true) return undefined
    const { role, callId, localTag, remoteTag } = saved
    const id = `${callId};from-tag=${role === 'uac' ? localTag : remoteTag}`
    return this.addDialog(id, { callId, localTag, remoteTag, media: '' }, credentials)
  }

  /** `body`: the offer, which is saved apart. Undefined: the server cannot restore it. */
  restoreInvite(saved: SavedInvite, body: string): ReceivedRequest | undefined {
    const event = this.saved?.restoreInvite(saved)
    if (event === undefined) return undefined
    const request = new ReceivedRequest(event, this, body)
    this.#invites.set(request.transactionId, request)
    return request
  }

  // ---- events of the port ----

  /** An error in the handling of one event does not affect others. */
  #onEvent(event: SipPortEvent, sender: SipSender | undefined): void {
    try {
      this.#handle(event, sender)
    } catch (error) {
      this.#log('error', 'a SIP message could not be handled', { error: messageOf(error) })
    }
  }

  #handle(event: SipPortEvent, sender: SipSender | undefined): void {
    switch (event.kind) {
      case 'request':
        this.#onMessage('received', event.flow, event.text)
        return this.#received(event)
      case 'response':
        this.#onMessage('received', event.flow, event.text)
        return this.#responded(event)
      case 'unsolicited':
        this.#onMessage('sent', event.flow, event.text)
        return this.#sentByServer(event)
      case 'request-sent':
      case 'response-sent':
        this.#onMessage('sent', event.flow, event.text)
        return sender?.replied(event)
      case 'refused':
        return sender?.replied(event)
    }
  }

  #received(event: RequestEvent): void {
    const { transactionId, dialogId, message } = event
    const { method } = message
    if (method === 'CANCEL') return this.#cancelled(transactionId, headersOf(message))
    const request = new ReceivedRequest(event, this)
    const dialog = dialogId === '' ? undefined : this.#dialogs.get(dialogId)
    if (dialog) return dialog.take(request)
    if (method === 'UPDATE' && this.#updatesEarly(request)) return undefined
    if (method === 'INVITE' && dialogId === '') this.#invites.set(transactionId, request)
    return this.#answer(request, event)
  }

  #answer(request: ReceivedRequest, event: RequestEvent): void {
    const { method } = request
    const handler = this.#handlers.get(method.toLowerCase()) ?? this.#handlers.get('*')
    try {
      const refusal = this.#port.refusalOf(event)
      if (refusal === undefined) handler?.(request, request)
      else if (method !== 'ACK') respond(request, refusal)
    } catch (error) {
      this.#log('error', 'a request could not be handled', { method, error: messageOf(error) })
      if (method !== 'ACK') request.send(500, undefined, {})
    }
  }

  /** The server has answered it, and the INVITE with 487. */
  #cancelled(transactionId: string, headers: Headers): void {
    const invite = this.#invites.get(transactionId)
    this.#invites.delete(transactionId)
    invite?.onCancel?.(headers)
  }

  /**
   * RFC 3311 §5.2: UPDATE before the INVITE is answered. True: it was one, and it has its response.
   */
  #updatesEarly(update: ReceivedRequest): boolean {
    const { callId, body } = update
    // The called side cannot be asked yet.
    if (this.#isInvited(callId)) update.send(500, undefined, { headers: { 'Retry-After': '5' } })
    else {
      const invite = this.#inviteOf(callId)
      if (invite === undefined) return false
      if (body === '') update.send(200, undefined, {})
      else invite.updated(update)
    }
    return true
  }

  /** A received INVITE has no final response yet. */
  #isInvited(callId: string): boolean {
    for (const invite of this.#invites.values()) if (invite.callId === callId) return true
    return false
  }

  /** Our INVITE that has no final response yet. */
  #inviteOf(callId: string): OutgoingRequest | undefined {
    for (const request of this.#requests.values())
      if (request.sent?.callId === callId && request.sent.method === 'INVITE') return request
    return undefined
  }

  #responded(event: ResponseEvent): void {
    const { transactionId, message } = event
    const request = this.#requests.get(transactionId)
    if (request === undefined) return
    this.#challenged.delete(request)
    if (message.status >= 200) this.#requests.delete(transactionId)
    request.answered(event)
  }

  #sentByServer({ dialogId, message }: UnsolicitedEvent): void {
    if (message.method === 'BYE')
      this.#dialogs.get(dialogId)?.ended(headersOf(message), true, () => undefined)
  }

  #lost(server: string): void {
    const callIds = this.#callIdsOf(server)
    const isOnly = server === ''
    for (const listener of this.#onLost) listener((callId) => isOnly || callIds.has(callId))
    for (const table of [
      this.#requests,
      this.#dialogs,
      this.#invites,
      this.#accepting,
      this.#unacknowledged,
    ])
      for (const id of [...table.keys()]) if (id.startsWith(server)) table.delete(id)
    for (const request of [...this.#challenged])
      if (request.isBy(server)) this.#challenged.delete(request)
    for (const request of [...this.#pending.values()])
      if (request.isBy(server)) {
        this.ended(request)
        request.lost()
      }
  }

  /** The Call-IDs of all dialogs and unanswered INVITEs of a server. */
  #callIdsOf(server: string): ReadonlySet<string> {
    const known = new Set<string>()
    for (const [id, callId] of this.#accepting) if (id.startsWith(server)) known.add(callId)
    for (const invite of this.#invites.values())
      if (invite.transactionId.startsWith(server)) known.add(invite.callId)
    for (const { id, ids } of this.#dialogs.values())
      if (id.startsWith(server)) known.add(ids.callId)
    return known
  }
}

/** How an INVITE that we sent ended. */
export type UacEnd =
  | { readonly kind: 'answered'; readonly dialog: CallDialog; readonly response: SipResponse }
  /** Answered with an offer, because the INVITE had none; not yet acknowledged. */
  | { readonly kind: 'offered'; readonly offer: PendingOffer; readonly response: SipResponse }
  | { readonly kind: 'rejected'; readonly response: SipResponse }
  /** Answered, but no dialog can be formed from it: no Contact, or a 2xx other than 200. */
  | {
      readonly kind: 'unusable'
      readonly response: SipResponse
      /** Sends BYE. */
      readonly release: () => void
    }
  /** `isConnectionLost`: the SIP server is unavailable; the destination may be well. */
  | { readonly kind: 'not-sent'; readonly reason: string; readonly isConnectionLost?: true }

/** The offer of a 200 to an INVITE without body. */
export interface PendingOffer {
  readonly sdp: string
  /** Sends the ACK with our answer; undefined: no dialog can be formed. */
  acknowledge(sdp: string): CallDialog | undefined
  /** ACK and BYE. */
  abandon(): void
}

/**
 * The end of a request outside any dialog. `isUnsent`: the SIP server was unavailable; the
 * destination may be well.
 */
export type RequestEnd = SipResponse | { readonly reason: string; readonly isUnsent?: true }

interface UacHandlers {
  /** The INVITE was sent; from now on it can be cancelled. */
  readonly onSent: (request: OutgoingRequest) => void
  readonly onProvisional: (response: SipResponse) => void
  /** Absent: offers before the answer are refused. */
  readonly onUpdate?: (update: ReceivedRequest) => void
  /** Exactly once. */
  readonly onEnd: (end: UacEnd) => void
}

const unsent: RequestEnd = { reason: NOT_CONNECTED, isUnsent: true }
const lostEnd: UacEnd = { kind: 'not-sent', reason: NOT_CONNECTED, isConnectionLost: true }

/**
 * `done` gets the final answer, at most once. The returned function tells whether the server has
 * taken it: one of this process is always available.
 */
function sendRequest(
  userAgent: UserAgent,
  server: string | undefined,
  parts: Omit<RequestParts, 'server'>,
  done: (end: RequestEnd) => void,
  onSent?: (text: string) => void,
): () => boolean {
  if (server === undefined) {
    done(unsent)
    return () => false
  }
  let isTaken = !userAgent.isRemote
  let isOver = false
  const end = (result: RequestEnd): void => {
    if (isOver) return
    isOver = true
    done(result)
  }
  userAgent.request(
    { ...parts, server },
    {
      onSent: (_request, text) => {
        isTaken = true
        onSent?.(text)
      },
      onResponse: (response) => {
        if (response.status >= 200) end(response)
      },
      onRefused: (reason) => {
        isTaken = true
        end({ reason })
      },
      onLost: () => end(unsent),
    },
  )
  return () => isTaken
}

/** Sends an INVITE. `onEnd` is called exactly once. */
function sendInvite(
  userAgent: UserAgent,
  server: string,
  { uri, nextHop = '', body = '', credentials, renewed }: InviteToSend,
  headers: Headers,
  handlers: UacHandlers,
): void {
  let isOver = false
  const end = (result: UacEnd): void => {
    if (isOver) return
    isOver = true
    handlers.onEnd(result)
  }
  let sent: OutgoingRequest | undefined
  const onSent = (request: OutgoingRequest): void => {
    sent = request
    handlers.onSent(request)
  }
  const way = { uri, nextHop, dialogId: '', server }
  const parts = { method: 'INVITE', ...way, headers, body, credentials, renewed }
  userAgent.request(parts, {
    onSent,
    ...(handlers.onUpdate && { onUpdate: handlers.onUpdate }),
    onRefused: (reason) => end({ kind: 'not-sent', reason }),
    onLost: () => end(lostEnd),
    onResponse: (response, { message, dialogId }) => {
      const { status } = response
      if (status < 200) {
        handlers.onProvisional(response)
        const rseq = message.get('RSeq')
        if (rseq !== undefined) userAgent.prack(dialogId, `${rseq} ${message.get('CSeq') ?? ''}`)
      } else if (status >= 300) end({ kind: 'rejected', response })
      else end(answeredBy(userAgent, { response, dialogId, toTag: message.toTag }, sent, parts))
    },
  })
}

/** Begins the dialog of a 2xx. Sends the ACK, unless the ACK has to carry our answer. */
function answeredBy(
  userAgent: UserAgent,
  answer: { readonly response: SipResponse; readonly dialogId: string; readonly toTag: string },
  request: OutgoingRequest | undefined,
  { body, credentials }: Pick<RequestParts, 'body' | 'credentials'>,
): UacEnd {
  const { response, dialogId, toTag: remoteTag } = answer
  const media = response.body ?? ''
  const isUsable = response.status === 200 && (response.headers['contact'] ?? '') !== ''
  const { callId = '', from = '' } = request?.sent ?? {}
  const begin = (): CallDialog | undefined => {
    const ids = { callId, localTag: tagOf(from), remoteTag, media }
    return isUsable ? userAgent.addDialog(dialogId, ids, credentials) : undefined
  }
  if (body === '' && response.status === 200 && media !== '') {
    userAgent.owesAck(dialogId)
    const acknowledge = (sdp: string): CallDialog | undefined => {
      userAgent.acknowledge(dialogId, sdp)
      return begin()
    }
    const abandon = (): void => acknowledge(media)?.bye({})
    return { kind: 'offered', response, offer: { sdp: media, acknowledge, abandon } }
  }
  userAgent.acknowledge(dialogId, undefined)
  const dialog = begin()
  return dialog
    ? { kind: 'answered', dialog, response }
    : { kind: 'unusable', response, release: () => userAgent.release(dialogId) }
}
