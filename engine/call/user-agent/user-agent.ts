/**
 * Sends and receives SIP for call control, by the SIP server of this process or by
 * drachtio-servers. Handlers and listeners are called at once, so that a new dialog has its
 * listener before the next message.
 */
import type { Log } from '../../../schema/contracts/log.ts'
import type { Schedule } from '../deadlines.ts'
import type {
  Answer,
  Credentials,
  Headers,
  InviteToSend,
  SipRequest,
  SipResponse,
} from '../signalling.ts'
import { respond } from '../sip-headers.ts'
import type { Dialog } from './dialog.ts'
import {
  messageOf,
  type ReceivedRequest,
  type OutgoingRequest,
  type RequestParts,
} from './received-request.ts'
import {
  type OnMessage,
  type RequestHandler,
  ServerLink,
  type Welcome,
  type ServerAddress,
  type SharedServer,
  SoleCheck,
  NOT_CONNECTED,
} from './server-link.ts'
import type { RemoteApplication } from './drachtio/connection.ts'
import type {
  Application,
  ApplicationLink,
  PingDone,
  SentFields,
} from '../../sip-server/application.ts'
import {
  hostPort,
  withoutUriParams,
  parseMinSE,
  parseOptionTags,
  parseSessionExpires,
  tagOf,
} from '../../sip-server/message/index.ts'

export type { ServerAddress } from './server-link.ts'

/** Connects `application`, again and again. */
export type OpenServer = (
  server: ServerAddress,
  application: RemoteApplication,
) => { close(): void }

export type Connection =
  | {
      readonly kind: 'in-process'
      readonly open: (application: Application) => ApplicationLink
      readonly secret: string
    }
  | {
      readonly kind: 'tcp'
      /** At least one. New requests are spread over the available servers. */
      readonly servers: readonly ServerAddress[]
      readonly open: OpenServer
      readonly schedule: Schedule
      /** A value that cannot be guessed; absent: whether others take calls there is not checked. */
      readonly newToken?: () => string
    }

/** `shared`: another application takes calls at the server, and each would get a part of them. */
type Connected = Welcome | SharedServer

/** For the operator. */
export function whyNot(connected: Exclude<Connected, { readonly kind: 'connected' }>): string {
  if (connected.kind === 'refused')
    return `the server of DRACHTIO_URL refuses us: ${connected.reason}`
  return (
    `another application takes calls at ${connected.server} of DRACHTIO_URL; ` +
    'each would get a part of them: give it a server of its own'
  )
}

/** The connection of a message: both legs of a call use the same server, if possible. */
export type Near = object | undefined

/** A request that belongs to no dialog and begins none. */
interface RequestToSend {
  readonly method: 'REGISTER' | 'MESSAGE'
  readonly uri: string
  /** Undefined: by its Route, or else its Request-URI. */
  readonly nextHop: string | undefined
  readonly headers: Headers
  readonly body?: string
  readonly credentials?: Credentials
  readonly near?: Near
}

export class UserAgent {
  readonly #log: Log
  readonly #onMessage: OnMessage
  readonly #handlers = new Map<string, RequestHandler>()
  readonly #onLost: ((isLost: (callId: string) => boolean) => void)[] = []
  #links: readonly ServerLink[] = []
  /** Ends the connections by TCP, and the attempts to make them again. */
  #closing: readonly { close(): void }[] = []
  /** The ping of the server of this process. */
  #ping: ApplicationLink['ping']
  #turn = 0
  readonly #phoneServers = new PhoneServers()
  readonly #soleCheck: SoleCheck
  #admit: ((request: SipRequest) => boolean) | undefined
  readonly #sessionSeconds: number
  /**
   * How long a received answer may wait to be read, because this process is busy. Shorter silence
   * proves nothing. Milliseconds.
   */
  readonly lagMs: () => number

  /**
   * `onMessage` sees what passes between a server and us, before it is handled. `sessionSeconds`:
   * how long a leg may go without a sign of life (RFC 4028); 0: for ever.
   */
  constructor(
    log: Log,
    onMessage: OnMessage = ignore,
    lagMs: () => number = () => 0,
    sessionSeconds = 0,
  ) {
    this.#log = log
    this.#soleCheck = new SoleCheck(log)
    this.#sessionSeconds = sessionSeconds
    this.lagMs = lagMs
    this.#onMessage = onMessage
  }

  /** Host and port that we show outside, once connected; before, the placeholder `localhost`. */
  get ownHost(): string {
    const [first = 'localhost'] = this.hostPorts
    return first.replace(/^[^/]*\//, '')
  }

  /** The listeners of the servers that were reached so far, such as `udp/192.0.2.1:5060`. */
  get hostPorts(): readonly string[] {
    return this.#links.flatMap((link) => link.hostPorts)
  }

  /** Whether a server is another process, which may be unavailable without notice. */
  get isRemote(): boolean {
    return this.#links.some((link) => !link.isInProcess)
  }

  /**
   * The server of this process, which takes dialogs up again; those of a server elsewhere outlive
   * us by themselves.
   */
  get restorer(): ServerLink | undefined {
    return this.#links.find(({ saved }) => saved !== undefined)
  }

  /**
   * Whether the server passes on the 100 to our INVITE. A drachtio-server does not: a node that is
   * slow to ring then looks like a dead one.
   */
  get reportsTrying(): boolean {
    return this.#links.every((link) => link.reportsTrying)
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
      else if (this.#admit?.(request) === false) refuseUnscreened(request, answer)
      else handler(request, answer)
    }
    this.#handlers.set(method.toLowerCase(), screened)
  }

  /**
   * Called when a connection is gone: every dialog and pending request on it died with it. `isLost`
   * says of a Call-ID whether it was among them.
   */
  onLost(listener: (isLost: (callId: string) => boolean) => void): void {
    this.#onLost.push(listener)
  }

  /**
   * Resolves with the first available server, or when one refuses us. Unavailable servers are tried
   * again and again.
   */
  connect(connection: Connection): Promise<Connected> {
    if (connection.kind === 'in-process') return this.#connectInProcess(connection)
    const { servers, open } = connection
    return new Promise((resolve) => {
      const links = servers.map((server) => {
        const link = this.#newLink(server.secret, false, (welcome) => {
          this.#noteWelcome(`${server.host}:${server.port}`, welcome)
          if (welcome.kind === 'refused') resolve(welcome)
          else void this.#soleCheck.check({ ...connection, ...server }, welcome).then(resolve)
        })
        const application = {
          verbs: [...this.#handlers.keys()].filter((verb) => verb !== '*'),
          onOpen: (own: ApplicationLink) => link.open(own),
          onEvent: link.onEvent.bind(link),
          onClose: () => link.onClose(),
        }
        return { link, closing: opened(() => open(server, application), resolve) }
      })
      this.#links = links.map(({ link }) => link)
      this.#closing = links.map(({ closing }) => closing)
    })
  }

  #connectInProcess({
    open,
    secret,
  }: Extract<Connection, { readonly kind: 'in-process' }>): Promise<Welcome> {
    return new Promise((resolve) => {
      const link = this.#newLink(secret, true, (welcome) => {
        this.#noteWelcome('this process', welcome)
        resolve(welcome)
      })
      this.#links = [link]
      const connection = open(link)
      this.#ping = connection.ping
      link.open(connection)
    })
  }

  #newLink(
    secret: string,
    isInProcess: boolean,
    onWelcome: (welcome: Welcome) => void,
  ): ServerLink {
    return new ServerLink({
      log: this.#log,
      onMessage: this.#onMessage,
      handlers: this.#handlers,
      secret,
      isInProcess,
      onWelcome,
      onLost: (lost) => this.#lost(lost),
    })
  }

  #noteWelcome(server: string, welcome: Welcome): void {
    if (welcome.kind === 'refused')
      this.#log('error', 'drachtio-server refuses this connection', {
        server,
        reason: welcome.reason,
      })
    else this.#log('debug', 'connected', { server, version: welcome.version })
  }

  disconnect(): void {
    for (const closing of this.#closing) closing.close()
    for (const link of this.#links) link.disconnect()
  }

  /**
   * Sends an INVITE. Without body the callee makes the offer. A callee that wants a longer session
   * interval gets a second INVITE (RFC 4028 §7.3); `onSent` is called again then.
   */
  invite(request: InviteToSend & { readonly near?: Near }, handlers: UacHandlers): void {
    const timers = this.#sessionTimers
    const headers = { ...request.headers }
    const challenges = request.credentials !== undefined
    askForSession(headers, timers, { challenges })
    const link = this.#towards(request.nextHop, request.near)
    if (!link) return handlers.onEnd(lostEnd)
    let first: OutgoingRequest | undefined
    const onSent = (sent: OutgoingRequest): void => {
      first = sent
      handlers.onSent(sent)
    }
    const onEnd = (end: UacEnd): void => {
      const isTooShort = end.kind === 'rejected' && end.response.status === 422
      const least = isTooShort ? leastOf(end.response.headers, timers) : undefined
      if (least === undefined || first?.sent === undefined || !link.isConnected)
        return handlers.onEnd(end)
      const again = nextAttempt(request.headers, first.sent)
      askForSession(again, timers, { least, challenges })
      // By the server of the first INVITE: only this server knows the CSeq of the Call-ID.
      return sendInvite(link, request, again, handlers)
    }
    return sendInvite(link, request, headers, { ...handlers, onSent, onEnd })
  }

  /** Answers an INVITE with 200. `done` gets the dialog, or undefined when the caller is gone. */
  accept(
    request: ReceivedRequest,
    { headers, body }: { readonly headers: Headers; readonly body: string },
    done: (dialog: Dialog | undefined) => void,
  ): void {
    const link = this.#linkOf(request)
    if (!link) return done(undefined)
    grantSession(request.headers, headers, this.#sessionTimers)
    return link.accept(request, { headers, body }, done)
  }

  /**
   * One OPTIONS outside any dialog, to `nextHop` whatever is registered under `uri`. `done` gets
   * its final answer, at most once. The returned function tells whether a server has taken it.
   */
  sendOptions(uri: string, done: (end: RequestEnd) => void, nextHop = uri): () => boolean {
    const headers = { To: `<${withoutUriParams(uri)}>` }
    const parts = { method: 'OPTIONS', uri, headers, body: '', nextHop }
    const outside = { ...parts, dialogId: '', credentials: undefined }
    return sendRequest(this.#towards(nextHop, undefined), outside, done)
  }

  /**
   * As `sendOptions` at a tenth of the cost, if the server supports it: to an address by UDP.
   * False: it was not sent.
   */
  ping(target: string, done: PingDone): boolean {
    return this.#links[0]?.isConnected === true && this.#ping?.(target, done) === true
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
    sendRequest(this.#towards(nextHop, near), parts, done, onSent)
  }

  /** Sizes of our tables: all zero when nothing is going on. */
  stats(): Readonly<Record<string, number>> {
    const sums: Record<string, number> = {
      dialogs: 0,
      requests: 0,
      sipRequests: 0,
      invites: 0,
      acks: 0,
      challenges: 0,
    }
    for (const { sizes } of this.#links)
      for (const [name, size] of Object.entries(sizes)) sums[name] = (sums[name] ?? 0) + size
    return sums
  }

  get #sessionTimers(): SessionTimers {
    const isOurPart = !this.#links.every((link) => link.keepsSessionTimers)
    return { seconds: this.#sessionSeconds, isOurPart }
  }

  /** A phone has registered from this address: calls to it go by the server that has its flow. */
  noteRegistered({ sourceAddress: address, sourcePort: port, link }: ReceivedRequest): void {
    if (this.#links.length > 1) this.#phoneServers.note(address, port, link)
  }

  /** The server that a phone registered on; else the one of the other leg; else each in turn. */
  #towards(nextHop: string | undefined, near: Near): ServerLink | undefined {
    if (this.#links.length === 1) return this.#next()
    const wanted = this.#phoneServers.of(nextHop) ?? near
    const link = wanted && this.#links.find((each) => each === wanted)
    return link?.isConnected === true ? link : this.#next()
  }

  /** The next connected server, in turn. */
  #next(): ServerLink | undefined {
    for (let tried = 0; tried < this.#links.length; tried++) {
      this.#turn = (this.#turn + 1) % this.#links.length
      const link = this.#links[this.#turn]
      if (link?.isConnected === true) return link
    }
    return undefined
  }

  /** The server that a request came from. */
  #linkOf({ link }: ReceivedRequest): ServerLink | undefined {
    return this.#links.find((each) => each === link)
  }

  #lost(lost: ServerLink): void {
    const callIds = lost.callIds()
    const isOnly = this.#links.length === 1
    for (const listener of this.#onLost) listener((callId) => isOnly || callIds.has(callId))
  }
}

/** A setting that cannot be used refuses the connection. */
function opened(
  open: () => { close(): void },
  refuse: (refused: Extract<Welcome, { readonly kind: 'refused' }>) => void,
): { close(): void } {
  try {
    return open()
  } catch (error) {
    refuse({ kind: 'refused', reason: messageOf(error) })
    return { close: () => undefined }
  }
}

function refuseUnscreened(request: SipRequest, answer: Answer): void {
  if (request.method !== 'ACK') respond(answer, 403)
}

const ignore = (): void => undefined

/** The oldest are forgotten: calls to them go by any server, until they register again. */
const MAX_PHONES = 100_000

/**
 * With several servers: the one that has the connection of a phone, or the way back through its
 * NAT.
 */
class PhoneServers {
  /** By `host:port`, as in the URI of a next hop. */
  readonly #links = new Map<string, object>()

  note(address: string, port: number, link: object): void {
    const phone = hostPort(address, port)
    this.#links.delete(phone)
    this.#links.set(phone, link)
    const [oldest] = this.#links.size > MAX_PHONES ? this.#links.keys() : []
    if (oldest !== undefined) this.#links.delete(oldest)
  }

  /** Undefined: no phone registered from there. */
  of(nextHop: string | undefined): object | undefined {
    if (nextHop === undefined || this.#links.size === 0) return undefined
    const parameters = nextHop.indexOf(';')
    return this.#links.get(nextHop.slice('sip:'.length, parameters === -1 ? undefined : parameters))
  }
}

// Session timers (RFC 4028): each leg has its own, which the SIP server runs. So a call also ends
// when a party vanishes without BYE.

interface SessionTimers {
  /** How long a leg may go without a sign of life; 0: for ever. */
  readonly seconds: number
  /**
   * We refresh unless the peer insists. A real drachtio-server does not confirm refreshes of the
   * peer, which would take it for a call without a timer.
   */
  readonly isOurPart: boolean
}

/** RFC 4028 §5. Only tests ask for a session that is shorter. */
const LEAST_SECONDS = 90

/**
 * Asks for a session in an INVITE. `least`: the callee's Min-SE. A callee that challenges us might
 * challenge each refresh, for which the SIP server has no credentials: the callee is to refresh
 * itself.
 */
export function askForSession(
  headers: Headers,
  timers: SessionTimers,
  { least = 0, challenges = false } = {},
): void {
  if (timers.seconds === 0) return
  headers['supported'] = withTimer(headers['supported'])
  const theirs = challenges ? ';refresher=uas' : ''
  const refresher = timers.isOurPart ? ';refresher=uac' : theirs
  headers['session-expires'] = `${Math.max(timers.seconds, least)}${refresher}`
  headers['min-se'] = String(Math.max(Math.min(LEAST_SECONDS, timers.seconds), least))
}

/** The headers of the second INVITE, with the same Call-ID (RFC 4028 §7.4). */
function nextAttempt(
  headers: Headers,
  { from, callId, cseq }: Pick<SentFields, 'from' | 'callId' | 'cseq'>,
): Headers {
  const { From: _, ...others } = headers
  return {
    ...others,
    From: from,
    'Call-ID': callId,
    CSeq: `${cseq + 1} INVITE`,
  }
}

/** Writes the session headers of a 200 to an INVITE with the headers `request` (§9, Table 2). */
export function grantSession(request: Headers, headers: Headers, timers: SessionTimers): void {
  if (timers.seconds === 0) return
  const { supported, require } = request
  const knowsTimer = hasTimer(supported) || hasTimer(require)
  const wanted = parseSessionExpires(request['session-expires'] ?? '')
  const least = knowsTimer ? (parseMinSE(request['min-se'] ?? '') ?? 0) : 0
  const seconds = Math.max(least, Math.min(timers.seconds, wanted?.seconds ?? timers.seconds))
  // A peer without this extension cannot refresh.
  const refresher = knowsTimer ? (wanted?.refresher ?? (timers.isOurPart ? 'uas' : 'uac')) : 'uas'
  headers['session-expires'] = `${seconds};refresher=${refresher}`
  headers['supported'] = withTimer(headers['supported'])
  if (refresher === 'uac') headers['require'] = 'timer'
}

/**
 * The Min-SE of a 422, if it is more than our interval. Undefined: a second INVITE would fail, too.
 */
export function leastOf(refusal: Headers, { seconds }: SessionTimers): number | undefined {
  const least = parseMinSE(refusal['min-se'] ?? '')
  return least !== undefined && least > seconds ? least : undefined
}

const hasTimer = (options: string | undefined): boolean =>
  parseOptionTags([options ?? '']).includes('timer')

const withTimer = (options: string | undefined): string =>
  options === undefined || options === '' ? 'timer' : `${options}, timer`

// The user agent client: an INVITE until its dialog begins, other requests until their final
// response.

/** How an INVITE that we sent ended. */
export type UacEnd =
  | { readonly kind: 'answered'; readonly dialog: Dialog; readonly response: SipResponse }
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
  acknowledge(sdp: string): Dialog | undefined
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
 * taken it.
 */
function sendRequest(
  link: ServerLink | undefined,
  parts: RequestParts,
  done: (end: RequestEnd) => void,
  onSent?: (text: string) => void,
): () => boolean {
  if (!link) {
    done(unsent)
    return () => false
  }
  let [isTaken, isOver] = [link.isInProcess, false]
  const end = (result: RequestEnd): void => {
    if (isOver) return
    isOver = true
    forget()
    done(result)
  }
  const forget = link.whenLost(() => end(unsent))
  link.request(parts, {
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
  })
  return () => isTaken
}

/** Sends an INVITE. `onEnd` is called exactly once. */
function sendInvite(
  link: ServerLink,
  { uri, nextHop = '', body = '', credentials }: InviteToSend,
  headers: Headers,
  handlers: UacHandlers,
): void {
  let isOver = false
  const end = (result: UacEnd): void => {
    if (isOver) return
    isOver = true
    forget()
    handlers.onEnd(result)
  }
  const forget = link.whenLost(() => end(lostEnd))
  let sent: OutgoingRequest | undefined
  const onSent = (request: OutgoingRequest): void => {
    sent = request
    handlers.onSent(request)
  }
  const parts = { method: 'INVITE', uri, nextHop, headers, body, credentials, dialogId: '' }
  link.request(parts, {
    onSent,
    ...(handlers.onUpdate && { onUpdate: handlers.onUpdate }),
    onRefused: (reason) => end({ kind: 'not-sent', reason }),
    onResponse: (response, { message, dialogId }) => {
      const { status } = response
      if (status < 200) {
        handlers.onProvisional(response)
        const rseq = message.get('RSeq')
        if (rseq !== undefined) link.prack(dialogId, `${rseq} ${message.get('CSeq') ?? ''}`)
      } else if (status >= 300) end({ kind: 'rejected', response })
      else end(answeredBy(link, { response, dialogId, toTag: message.toTag }, sent, parts))
    },
  })
}

/** Begins the dialog of a 2xx. Sends the ACK, unless the ACK has to carry our answer. */
function answeredBy(
  link: ServerLink,
  answer: { readonly response: SipResponse; readonly dialogId: string; readonly toTag: string },
  request: OutgoingRequest | undefined,
  { body, credentials }: Pick<RequestParts, 'body' | 'credentials'>,
): UacEnd {
  const { response, dialogId, toTag: remoteTag } = answer
  const media = response.body ?? ''
  const isUsable = response.status === 200 && (response.headers['contact'] ?? '') !== ''
  const { callId = '', from = '' } = request?.sent ?? {}
  const begin = (): Dialog | undefined => {
    const ids = { callId, localTag: tagOf(from), remoteTag, media }
    return isUsable ? link.addDialog(dialogId, ids, credentials) : undefined
  }
  if (body === '' && response.status === 200 && media !== '') {
    link.owesAck(dialogId)
    const acknowledge = (sdp: string): Dialog | undefined => {
      link.acknowledge(dialogId, sdp)
      return begin()
    }
    const abandon = (): void => acknowledge(media)?.bye({})
    return { kind: 'offered', response, offer: { sdp: media, acknowledge, abandon } }
  }
  link.acknowledge(dialogId, undefined)
  const dialog = begin()
  return dialog
    ? { kind: 'answered', dialog, response }
    : { kind: 'unusable', response, release: () => link.release(dialogId) }
}
