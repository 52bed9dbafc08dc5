/** Our connection to one SIP server, as its application: its transactions and dialogs. */
import type { Log } from '../../../schema/contracts/log.ts'
import type {
  AppEvent,
  Application,
  ApplicationLink,
  Command,
  MessageFlow,
  RequestEvent,
  ResponseEvent,
  SavedDialogs,
  UnsolicitedEvent,
} from '../../sip-server/application.ts'
import {
  composeRequest,
  composeResponse,
  ReleasingMap,
  hostPort,
} from '../../sip-server/message/index.ts'
import { assembled } from '../multipart.ts'
import type { Answer, Credentials, DialogIds, Headers, SipRequest } from '../signalling.ts'
import { Dialog, type DialogLink } from './dialog.ts'
import {
  headersOf,
  messageOf,
  problemOf,
  ReceivedRequest,
  type OnResponseSent,
  type ResponseLink,
  type ResponseToSend,
  OutgoingRequest,
  type RequestLink,
  type RequestListener,
  type RequestParts,
} from './received-request.ts'
import type { Schedule } from '../deadlines.ts'
import { createSocket } from 'node:dgram'
import { isIPv6 } from 'node:net'

export type RequestHandler = (request: ReceivedRequest, answer: Answer) => void

/** How a message passed between the server and us. */
export type OnMessage = (direction: 'received' | 'sent', flow: MessageFlow, text: string) => void

export type Welcome =
  /** `hostPorts`: the listeners of the server, such as `udp/192.0.2.1:5060`. */
  | { readonly kind: 'connected'; readonly hostPorts: readonly string[]; readonly version: string }
  | { readonly kind: 'refused'; readonly reason: string }

interface LinkDeps {
  readonly log: Log
  readonly onMessage: OnMessage
  /** By method in lower case. `*` takes all other methods. */
  readonly handlers: ReadonlyMap<string, RequestHandler>
  /** Each time that the server has accepted or refused us. */
  readonly onWelcome: (welcome: Welcome) => void
  /** The connection was lost, with all its dialogs. */
  readonly onLost: (link: ServerLink) => void
  readonly isInProcess: boolean
  readonly secret: string
}

/** Sizes of the tables of one connection. */
type LinkSizes = Readonly<
  Record<'dialogs' | 'requests' | 'sipRequests' | 'invites' | 'acks' | 'challenges', number>
>

/** Gets the server's reply to a command. */
type OnReply = (reply: AppEvent) => void

export const NOT_CONNECTED = 'no connection to the SIP server'

/** The server knows the remote target of a dialog, and the request of a transaction. */
const PLACEHOLDER = 'sip:placeholder'

export class ServerLink implements Application, DialogLink, RequestLink, ResponseLink {
  readonly #deps: LinkDeps
  #connection: ApplicationLink | undefined
  #isReady = false
  #hostPorts: readonly string[] = []
  #isTollgate = false
  #commands = 0
  /** Callbacks for replies, by command. */
  readonly #waiting = new ReleasingMap<string, OnReply>()
  /** Requests that wait for a response, by transaction. */
  readonly #requests = new ReleasingMap<string, OutgoingRequest>()
  readonly #dialogs = new ReleasingMap<string, Dialog>()
  /** Received INVITEs without a final response, by Call-ID: where a CANCEL goes. */
  readonly #invites = new ReleasingMap<string, ReceivedRequest>()
  /** Call-IDs of INVITEs that are just being accepted: no longer pending, not yet dialogs. */
  readonly #accepting = new Set<string>()
  /** Dialogs whose 2xx waits for our ACK. */
  readonly #unacknowledged = new Set<string>()
  /** Requests whose challenge was answered, until the next response. */
  readonly #challenged = new Set<OutgoingRequest>()
  /** Callbacks for the loss of the connection. */
  readonly #pending = new ReleasingMap<number, () => void>()
  #pendingCount = 0

  constructor(deps: LinkDeps) {
    this.#deps = deps
  }

  /** Authenticates on a new connection. */
  open(connection: ApplicationLink): void {
    this.#connection = connection
    const { secret } = this.#deps
    this.#command({ kind: 'authenticate', secret, tags: [] }, (reply) => this.#welcomed(reply))
  }

  disconnect(): void {
    this.#connection?.close()
  }

  #welcomed(reply: AppEvent): void {
    const { onWelcome, handlers } = this.#deps
    if (reply.kind !== 'authenticated')
      return onWelcome({ kind: 'refused', reason: problemOf(reply) })
    const { hostports: hostPorts, version } = reply
    this.#isReady = true
    this.#isTollgate = version.includes('tollgate')
    this.#hostPorts = hostPorts
    for (const verb of handlers.keys()) if (verb !== '*') this.#command({ kind: 'route', verb })
    return onWelcome({ kind: 'connected', hostPorts, version })
  }

  /** The server has authenticated us. */
  get isConnected(): boolean {
    return this.#isReady
  }

  /** The listeners of the server. Empty before the first connection. */
  get hostPorts(): readonly string[] {
    return this.#hostPorts
  }

  /** Whether 100 is passed on: our server does so in this process only, a drachtio-server never. */
  get reportsTrying(): boolean {
    return this.#isTollgate && this.isInProcess
  }

  /** The server is this process, and always available. */
  get isInProcess(): boolean {
    return this.#deps.isInProcess
  }

  /** The server does all of RFC 4028 by itself. */
  get keepsSessionTimers(): boolean {
    return this.#isTollgate
  }

  /** Calls `settle` when the connection is lost; the returned function takes it back. */
  whenLost(settle: () => void): () => void {
    const id = ++this.#pendingCount
    this.#pending.set(id, settle)
    return () => void this.#pending.delete(id)
  }

  /** The Call-IDs of all dialogs and unanswered INVITEs. */
  callIds(): ReadonlySet<string> {
    const known = new Set([...this.#accepting, ...this.#invites.keys()])
    for (const { ids } of this.#dialogs.values()) known.add(ids.callId)
    return known
  }

  /** All zero when nothing is going on. */
  get sizes(): LinkSizes {
    return {
      dialogs: this.#dialogs.size,
      requests: this.#waiting.size,
      sipRequests: this.#requests.size,
      invites: this.#invites.size,
      acks: this.#unacknowledged.size,
      challenges: this.#challenged.size,
    }
  }

  // ---- commands of call control ----

  /** Sends a request of ours, in a dialog or outside. */
  request(parts: RequestParts, listener: RequestListener): void {
    const request = new OutgoingRequest(this, parts, listener)
    if (this.#isReady) request.start()
    else listener.onRefused(NOT_CONNECTED)
  }

  send(request: OutgoingRequest, parts: RequestParts): void {
    const { method, uri, nextHop: routeUrl, dialogId } = parts
    const { headers, body } = assembled(parts.headers, parts.body)
    if (request.sent) this.#challenged.add(request)
    const message = composeRequest(method, uri === '' ? PLACEHOLDER : uri, headers, body)
    this.#command({ kind: 'sip', transactionId: '', dialogId, routeUrl, message }, (reply) => {
      if (reply.kind !== 'request-sent') return request.refused(problemOf(reply))
      this.#requests.set(reply.transactionId, request)
      return request.left(reply)
    })
  }

  sendCancel({ transactionId }: OutgoingRequest, headers: Headers): void {
    const message = composeRequest('CANCEL', PLACEHOLDER, headers)
    this.#command({ kind: 'sip', transactionId, dialogId: '', routeUrl: '', message })
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
    if (!this.#isReady) return
    const message = composeRequest(method, PLACEHOLDER, headers, body)
    this.#command({ kind: 'sip', transactionId: '', dialogId, routeUrl: '', message })
  }

  respond(
    request: ReceivedRequest,
    response: ResponseToSend,
    done: OnResponseSent | undefined,
  ): void {
    const { transactionId, callId } = request
    const { status, reason } = response
    const { headers, body } = assembled(response.headers, response.body)
    if (status >= 200 && this.#invites.get(callId) === request) this.#invites.delete(callId)
    if (!this.#isReady) return done?.(undefined)
    const message = composeResponse(status, reason, headers, body)
    const toStranger = request.isFromStranger && status >= 200
    return this.#command(
      { kind: 'sip', transactionId, dialogId: '', routeUrl: '', message, toStranger },
      done && ((reply) => done(reply.kind === 'response-sent' ? reply : undefined)),
    )
  }

  /** Answers an INVITE with 200. `done` gets the dialog, or undefined when the caller is gone. */
  accept(
    request: ReceivedRequest,
    { headers, body }: Pick<ResponseToSend, 'headers' | 'body'>,
    done: (dialog: Dialog | undefined) => void,
  ): void {
    const { callId, fromTag: remoteTag, body: media } = request
    this.#accepting.add(callId)
    request.send(200, undefined, { headers, body }, (sent) => {
      this.#accepting.delete(callId)
      if (sent === undefined) return done(undefined)
      const { dialogId, localTag } = sent
      return done(this.addDialog(dialogId, { callId, localTag, remoteTag, media }, undefined))
    })
  }

  /** A dialog that an answer has begun. */
  addDialog(id: string, ids: DialogIds, credentials: Credentials | undefined): Dialog {
    const dialog = new Dialog(this, id, ids, credentials)
    this.#dialogs.set(id, dialog)
    return dialog
  }

  get saved(): SavedDialogs | undefined {
    return this.#connection?.saved
  }

  /** An INVITE that waits for our answer: where a CANCEL goes. */
  invited(request: ReceivedRequest): void {
    this.#invites.set(request.callId, request)
  }

  forgetDialog({ id }: Dialog): void {
    this.#dialogs.delete(id)
    this.#unacknowledged.delete(id)
  }

  #command(command: Command, waiting?: OnReply): void {
    this.#commands += 1
    const id = this.#commands.toString(36)
    if (waiting) this.#waiting.set(id, waiting)
    this.#connection?.send({ id, command })
  }

  // ---- events from the server ----

  /** An error in the handling of one event does not affect others. */
  onEvent(event: AppEvent): void {
    try {
      this.#handle(event)
    } catch (error) {
      this.#deps.log('error', 'a SIP message could not be handled', { error: messageOf(error) })
    }
  }

  onClose(): void {
    this.#isReady = false
    this.#connection = undefined
    this.#deps.onLost(this)
    for (const table of [this.#waiting, this.#requests, this.#dialogs, this.#invites]) table.clear()
    for (const set of [this.#accepting, this.#unacknowledged]) set.clear()
    this.#challenged.clear()
    for (const settle of [...this.#pending.values()]) settle()
    this.#pending.clear()
  }

  #handle(event: AppEvent): void {
    const { onMessage } = this.#deps
    switch (event.kind) {
      case 'request':
        onMessage('received', event.flow, event.text)
        return this.#received(event)
      case 'response':
        onMessage('received', event.flow, event.text)
        return this.#responded(event)
      case 'unsolicited':
        onMessage('sent', event.flow, event.text)
        return this.#sentByServer(event)
      case 'request-sent':
      case 'response-sent':
        onMessage('sent', event.flow, event.text)
        return this.#replied(event.commandId, event)
      case 'refused':
      case 'breach':
      case 'authenticated':
        return this.#replied(event.commandId, event)
      // No command waits for the other replies; the rest is for proxies and for applications that
      // store call details.
      case 'ok':
      case 'pong':
      case 'forwarded':
      case 'forwarding-done':
      case 'detail':
      default:
        return undefined
    }
  }

  #replied(commandId: string, reply: AppEvent): void {
    const waiting = this.#waiting.get(commandId)
    this.#waiting.delete(commandId)
    waiting?.(reply)
  }

  #received(event: RequestEvent): void {
    const { dialogId, message } = event
    const { method, callId } = message
    if (method === 'CANCEL') return this.#cancelled(callId, headersOf(message))
    const request = new ReceivedRequest(event, this)
    const dialog = dialogId === '' ? undefined : this.#dialogs.get(dialogId)
    if (dialog) return dialog.take(request)
    if (method === 'UPDATE' && this.#updatesEarly(request)) return undefined
    if (method === 'INVITE' && dialogId === '') this.invited(request)
    return this.#answer(request)
  }

  #answer(request: ReceivedRequest): void {
    const { handlers, log } = this.#deps
    const { method } = request
    const handler = handlers.get(method.toLowerCase()) ?? handlers.get('*')
    try {
      handler?.(request, request)
    } catch (error) {
      log('error', 'a request could not be handled', { method, error: messageOf(error) })
      if (method !== 'ACK') request.send(500, undefined, {})
    }
  }

  /** The server has answered it, and the INVITE with 487. */
  #cancelled(callId: string, headers: Headers): void {
    const invite = this.#invites.get(callId)
    this.#invites.delete(callId)
    invite?.onCancel?.(headers)
  }

  /**
   * RFC 3311 §5.2: UPDATE before the INVITE is answered. True: it was one, and it has its response.
   */
  #updatesEarly(update: ReceivedRequest): boolean {
    const { callId, body } = update
    const isToInvite = this.#invites.has(callId)
    const invite = isToInvite ? undefined : this.#inviteOf(callId)
    if (!isToInvite && invite === undefined) return false
    // The called side cannot be asked yet.
    if (invite === undefined) update.send(500, undefined, { headers: { 'Retry-After': '5' } })
    else if (body === '') update.send(200, undefined, {})
    else invite.updated(update)
    return true
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
}

// Checks that no other application takes calls at a drachtio-server, which distributes calls to all
// its applications in turn. Its protocol does not show them: INVITEs that we send to the server
// must come back to us.

/** Calls that come in between may hide another application from one or two of them. */
const KNOCKS = 5

/**
 * The server refuses with this before it knows our handlers; so does an application that drains.
 */
const UNAVAILABLE = 503

const USER = 'tollgate-alone-'

/** Any sender may write such an INVITE. */
const MAX_WARNINGS = 20

/** A drachtio server elsewhere. */
export interface ServerAddress {
  readonly host: string
  readonly port: number
  readonly secret: string
  /** Undefined: without TLS. */
  readonly tls?: TlsTrust | undefined
}

/** Which authorities the server's certificate must be signed by. */
interface TlsTrust {
  /** PEM file of one authority or several; undefined: those that Node.js knows. */
  readonly caFile: string | undefined
}

/** Another application takes calls there. */
export interface SharedServer {
  readonly kind: 'shared'
  readonly server: string
}

type Target = ServerAddress & {
  readonly schedule: Schedule
  readonly newToken?: () => string
}

export class SoleCheck {
  readonly #log: Log
  /** Users of INVITEs that have not come yet. */
  readonly #expected = new Set<string>()
  #isWatching = false
  #foreignInvites = 0

  constructor(log: Log) {
    this.#log = log
  }

  /**
   * True: it is such an INVITE, ours or another application's, which is over when it is refused.
   */
  takes({ uri, headers }: SipRequest): boolean {
    if (!this.#isWatching || !uri.startsWith(`sip:${USER}`)) return false
    if (this.#expected.delete(uri.slice('sip:'.length, uri.indexOf('@')))) return true
    if (headers['max-forwards'] !== '0') return false
    this.#foreignInvites += 1
    if (this.#foreignInvites <= MAX_WARNINGS)
      this.#log('warn', 'another application has registered for calls at this SIP server')
    return true
  }

  async check(
    { host, port, newToken, schedule }: Target,
    connected: Extract<Welcome, { kind: 'connected' }>,
  ): Promise<Welcome | SharedServer> {
    if (newToken === undefined) return connected
    this.#isWatching = true
    const server = `${host}:${port}`
    const addresses = udpAddressesOf(host, connected.hostPorts)
    let arrived = 0
    for (let number = 0; number < KNOCKS; number++) {
      const user = `${USER}${newToken()}`
      this.#expected.add(user)
      const status = await knock(addresses, user, schedule)
      const isLost = this.#expected.delete(user)
      if (status === undefined) break
      if (!isLost) arrived += 1
      else if (status !== UNAVAILABLE) {
        this.#log('error', 'another application takes calls at this SIP server', { server })
        return { kind: 'shared', server }
      }
    }
    if (arrived === 0)
      this.#log('info', 'it is unknown whether other applications take calls at this SIP server', {
        server,
      })
    return connected
  }
}

/**
 * The UDP addresses of the server: by its own name for itself, and by the address at which we reach
 * it.
 */
function udpAddressesOf(host: string, hostPorts: readonly string[]): UdpAddress[] {
  const first = hostPorts.map(parseListener).find(({ protocol }) => protocol === 'udp')
  if (first === undefined) return []
  return first.host === host ? [first] : [{ ...first, host }, first]
}

// Sends one INVITE to a SIP server from a socket of its own. No application should answer it.

interface UdpAddress {
  readonly host: string
  readonly port: number
}

const REPEAT_MS = 200
const ANSWER_TIMEOUT_MS = 600
/** The last datagram is sent by then. */
const LINGER_MS = 20

/** Returns the final status. Undefined: no address has answered. */
async function knock(
  addresses: readonly UdpAddress[],
  user: string,
  schedule: Schedule,
): Promise<number | undefined> {
  for (const address of addresses) {
    const status = await knockAt(address, user, schedule)
    if (status !== undefined) return status
  }
  return undefined
}

function knockAt(
  { host, port }: UdpAddress,
  user: string,
  schedule: Schedule,
): Promise<number | undefined> {
  const socket = createSocket(isIPv6(host) ? 'udp6' : 'udp4')
  const send = (text: string): void => socket.send(text, port, host, () => undefined)
  const uri = `sip:${user}@${hostPort(host, port)}`
  return new Promise((resolve) => {
    let isOver = false
    const end = (status: number | undefined): void => {
      if (isOver) return
      isOver = true
      for (const cancel of timers) cancel()
      resolve(status)
      schedule(() => socket.close(), LINGER_MS)
    }
    const timers = [schedule(() => end(undefined), ANSWER_TIMEOUT_MS)]
    socket.on('error', () => end(undefined))
    socket.on('message', (bytes) => {
      const text = bytes.toString()
      const status = Number(/^SIP\/2\.0 (\d{3}) /.exec(text)?.[1] ?? 0)
      if (isOver || status < 200 || !text.includes(user)) return
      const to = /^To:[ \t]*([^\r]*)/im.exec(text)?.[1] ?? `<${uri}>`
      send(request('ACK', uri, user, to))
      // An application that has taken this INVITE has to drop it.
      if (status < 300) send(request('BYE', uri, user, to))
      end(status)
    })
    socket.bind(0, () => {
      if (isOver) return
      const invite = request('INVITE', uri, user, `<${uri}>`)
      send(invite)
      timers.push(schedule(() => send(invite), REPEAT_MS))
    })
  })
}

/** Max-Forwards 0: an application that checks it refuses the call, and none forwards it. */
function request(method: 'INVITE' | 'ACK' | 'BYE', uri: string, user: string, to: string): string {
  const branch = `z9hG4bK-${method === 'BYE' ? 'bye-' : ''}${user}`
  return [
    `${method} ${uri} SIP/2.0`,
    `Via: SIP/2.0/UDP tollgate.invalid;rport;branch=${branch}`,
    'Max-Forwards: 0',
    `From: <sip:${user}@tollgate.invalid>;tag=${user}`,
    `To: ${to}`,
    `Call-ID: ${user}`,
    `CSeq: ${method === 'BYE' ? 2 : 1} ${method}`,
    `Contact: <sip:${user}@tollgate.invalid>`,
    'Content-Length: 0',
    '',
    '',
  ].join('\r\n')
}

/** A listener of a SIP server. */
export interface SipListener {
  readonly protocol: string
  readonly host: string
  readonly port: number
}

/**
 * Reads a listener of a drachtio-server, such as `udp/192.0.2.1:5060` or `tcp/[2001:db8::1]:5060`.
 */
export function parseListener(text: string): SipListener {
  const [, protocol = 'udp', host = text, port = '5060'] =
    /^(\w+)\/\[?([^\]]*)\]?:(\d+)$/.exec(text) ?? []
  return { protocol, host, port: Number(port) }
}
