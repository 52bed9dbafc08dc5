/** The outputs of the core. The driver performs them after the transition that has made them. */
import type {
  AppEvent,
  PingAnswer,
  PingDone,
  AuthenticatedEvent,
  CallDetail,
  SentFields,
} from '../application.ts'
import type { Flow, HopQuestion } from '../flow.ts'
import type { RequestRoute } from '../options.ts'
import type { Traffic } from './traffic.ts'
import { flattened, type SipMessage } from '../message/message.ts'
import { parseAppMessage } from '../message/parse.ts'

export type Output =
  /**
   * Send one SIP message. A failure comes back as `SipCore.sendFailed` with the same `reference`,
   * if there is one.
   */
  | {
      readonly kind: 'send'
      readonly text: string
      readonly flow: Flow
      readonly reference: string
    }
  /** Hand an event to a connected application. */
  | { readonly kind: 'deliver'; readonly clientId: number; readonly event: AppEvent }
  /** Connect to the application that is to get a request; `clientId` is its id from then on. */
  | { readonly kind: 'dial-out'; readonly clientId: number; readonly uri: string }
  /** Close the connection of an application after the events that were delivered before. */
  | { readonly kind: 'disconnect'; readonly clientId: number }
  /** Find where a host name is reached; `SipCore.resolved` gets the answer with the `reference`. */
  | { readonly kind: 'resolve'; readonly question: HopQuestion; readonly reference: string }
  /** Wait for the route of a request; `SipCore.routed` gets it. */
  | {
      readonly kind: 'await-route'
      readonly route: Promise<RequestRoute | undefined>
      readonly transactionId: string
    }
  /** Report the answer to a ping. */
  | { readonly kind: 'pinged'; readonly done: PingDone; readonly answer: PingAnswer }
  /** Close the stream connection of a flow. */
  | { readonly kind: 'close'; readonly flow: Flow }
  /** Report that a connection over which a phone has registered is gone. */
  | { readonly kind: 'registered-flow-closed'; readonly flow: Flow }

export class Outbox {
  readonly #traffic: Traffic
  /**
   * From `#next` up to `#end`. As long as it has been before: a new array for each transition costs
   * more.
   */
  readonly #outputs: (Output | undefined)[] = []
  #next = 0
  #end = 0

  constructor(traffic: Traffic) {
    this.#traffic = traffic
  }

  send(text: string, flow: Flow, reference: string): void {
    // Many read it from here on, and a sum of parts is slow to read.
    flattened(text)
    this.#traffic.sent(text)
    this.push({ kind: 'send', text, flow, reference })
  }

  /** The same for a copy of what was sent before. */
  repeat(text: string, flow: Flow, reference: string): void {
    this.#traffic.repeated(text)
    this.send(text, flow, reference)
  }

  push(output: Output): void {
    this.#outputs[this.#end++] = output
  }

  /** Takes the next one out. */
  take(): Output | undefined {
    const output = this.#outputs[this.#next]
    if (output === undefined) this.#next = this.#end = 0
    else this.#outputs[this.#next++] = undefined
    return output
  }

  get size(): number {
    return this.#end - this.#next
  }
}

// Events for applications. Each goes to the application that has the transaction, the dialog or the
// command.

/** The command that an answer quotes. */
export interface CommandRef {
  readonly clientId: number
  readonly id: string
}

/** The ids of a message, and its text for the application. */
interface MessageIds {
  readonly transactionId: string
  readonly dialogId: string
  readonly text: string
}

type Source = CallDetail['source']
type StopReason = Extract<CallDetail, { kind: 'stop' }>['reason']

export class ApplicationEvents {
  readonly #applications: Applications
  readonly #outbox: Outbox

  constructor(applications: Applications, outbox: Outbox) {
    this.#applications = applications
    this.#outbox = outbox
  }

  /**
   * A request from the network; a text: a CANCEL that was made here in place of one. `isNew`: it
   * begins something.
   */
  request(
    clientId: number,
    passed: MessageIds,
    request: SipMessage | string,
    flow: Flow,
    now: number,
    isNew = false,
  ): void {
    const message = typeof request === 'string' ? parseAppMessage(request) : request
    if (message === undefined) return
    const { transactionId, dialogId, text } = passed
    this.#deliver(clientId, {
      kind: 'request',
      transactionId,
      dialogId,
      text,
      message,
      came: message.text,
      flow,
      now,
      isNew,
    })
  }

  /** A response from the network; a text: one that was made here in place of it. */
  response(
    clientId: number,
    passed: MessageIds,
    response: SipMessage | string,
    flow: Flow,
    now: number,
  ): void {
    const message = typeof response === 'string' ? parseAppMessage(response) : response
    if (message === undefined) return
    const { transactionId, dialogId, text } = passed
    this.#deliver(clientId, {
      kind: 'response',
      transactionId,
      dialogId,
      text,
      message,
      came: message.text,
      flow,
      now,
    })
  }

  /** A request that the stack itself has sent in a dialog of the application. */
  unsolicited(clientId: number, dialogId: string, text: string, flow: Flow, now: number): void {
    const message = parseAppMessage(text)
    if (message)
      this.#deliver(clientId, { kind: 'unsolicited', dialogId, text, message, flow, now })
  }

  /** The application's response has left, with our tag in it. */
  responseSent(
    { clientId, id: commandId }: CommandRef,
    { transactionId, dialogId, text }: MessageIds,
    localTag: string,
    flow: Flow,
    now: number,
  ): void {
    this.#deliver(clientId, {
      kind: 'response-sent',
      commandId,
      transactionId,
      dialogId,
      text,
      localTag,
      flow,
      now,
    })
  }

  /**
   * The application's request has left. `sent`: of one whose responses will carry `transactionId`.
   */
  requestSent(
    { clientId, id: commandId }: CommandRef,
    transactionId: string,
    text: string,
    sent: SentFields | undefined,
    flow: Flow,
    now: number,
  ): void {
    this.#deliver(clientId, {
      kind: 'request-sent',
      commandId,
      transactionId,
      text,
      sent,
      flow,
      now,
    })
  }

  /** Refuses a command that is not possible. */
  refuse({ clientId, id: commandId }: CommandRef, problem: string): void {
    this.#deliver(clientId, { kind: 'refused', commandId, problem })
  }

  /** A final response to a request that is being forwarded. */
  forwarded({ clientId, id: commandId }: CommandRef, text: string, flow: Flow, now: number): void {
    this.#deliver(clientId, { kind: 'forwarded', commandId, text, flow, now })
  }

  forwardingDone({ clientId, id: commandId }: CommandRef): void {
    this.#deliver(clientId, { kind: 'forwarding-done', commandId })
  }

  // ---- answers on the connection itself: never held back ----

  ok({ clientId, id: commandId }: CommandRef): void {
    this.#push(clientId, { kind: 'ok', commandId })
  }

  pong({ clientId, id: commandId }: CommandRef): void {
    this.#push(clientId, { kind: 'pong', commandId })
  }

  /** Confirms the authentication, and hands over the events that have waited for it. */
  authenticated(
    { clientId, id: commandId }: CommandRef,
    server: Omit<AuthenticatedEvent, 'kind' | 'commandId'>,
  ): void {
    this.#push(clientId, { kind: 'authenticated', commandId, ...server })
    for (const event of this.#applications.release(clientId)) this.#push(clientId, event)
  }

  /** A breach of the protocol ends the connection. */
  closeWithError({ clientId, id: commandId }: CommandRef, problem: string): void {
    this.#push(clientId, { kind: 'breach', commandId, problem })
    this.#outbox.push({ kind: 'disconnect', clientId })
  }

  // ---- call details: each kind goes to one of the applications that asked for it, in turn ----

  /** An INVITE has come (`network`), or was sent. */
  callAttempted(source: Source, text: string, now: number): void {
    this.#reportDetail({ kind: 'attempt', source, time: now, text })
  }

  /** The final response to an INVITE that began a call. */
  callAnswered(
    source: Source,
    role: 'uac' | 'uas',
    status: number,
    text: string,
    now: number,
  ): void {
    if (status < 300) this.#reportDetail({ kind: 'start', source, role, time: now, text })
    else this.callStopped(source, 'call-rejected', text, now)
  }

  /** The final response to an INVITE that was forwarded: as it came, and as it went on. */
  forwardedCallAnswered(status: number, came: string, went: string, now: number): void {
    if (status >= 300) return this.callStopped('network', 'call-rejected', came, now)
    this.#reportDetail({
      kind: 'start',
      source: 'network',
      role: 'proxy-uac',
      time: now,
      text: came,
    })
    this.#reportDetail({
      kind: 'start',
      source: 'application',
      role: 'proxy-uas',
      time: now,
      text: went,
    })
  }

  /** A call has ended: a final failure, a CANCEL, a BYE. */
  callStopped(source: Source, reason: StopReason, text: string, now: number): void {
    this.#reportDetail({ kind: 'stop', source, reason, time: now, text })
  }

  #reportDetail(detail: CallDetail): void {
    if (!this.#applications.wantDetails) return
    const clientId = this.#applications.next(`cdr:${detail.kind}`)
    if (clientId !== undefined) this.#deliver(clientId, { kind: 'detail', detail })
  }

  /** `clientId` 0: no application takes part. */
  #deliver(clientId: number, event: AppEvent): void {
    if (clientId === 0) return
    if (clientId < 0 && this.#applications.hold(clientId, event)) return
    this.#push(clientId, event)
  }

  #push(clientId: number, event: AppEvent): void {
    this.#outbox.push({ kind: 'deliver', clientId, event })
  }
}

// The connected applications: which SIP methods each asked for, and which one gets a request.

/** The application that a request is meant for. */
export type ApplicationRoute = { readonly tag: string } | { readonly uri: string }

const isDetail = (verb: string): boolean => verb.startsWith('cdr:')

interface Application {
  readonly clientId: number
  readonly isInProcess: boolean
  isAuthenticated: boolean
  tags: readonly string[]
  readonly verbs: Set<string>
}

export class Applications {
  readonly #outbox: Outbox
  readonly #applications = new Map<number, Application>()
  /** Applications per verb in the order in which they asked for it. */
  readonly #routes = new Map<string, number[]>()
  /** Events for applications that this server connects to, until they have authenticated. */
  readonly #held = new Map<number, AppEvent[]>()
  #dialledOut = 0
  #detailRoutes = 0

  constructor(outbox: Outbox) {
    this.#outbox = outbox
  }

  connected(clientId: number, isInProcess: boolean): void {
    this.#applications.set(clientId, {
      clientId,
      isInProcess,
      isAuthenticated: false,
      tags: [],
      verbs: new Set(),
    })
  }

  disconnected(clientId: number): void {
    const application = this.#applications.get(clientId)
    for (const verb of application?.verbs ?? []) this.removeRoute(clientId, verb)
    this.#applications.delete(clientId)
    this.#held.delete(clientId)
  }

  authenticate(clientId: number, tags: readonly string[]): void {
    const application = this.#applications.get(clientId)
    if (!application) return
    application.isAuthenticated = true
    application.tags = tags
  }

  /** Connected without a socket. */
  isInProcess(clientId: number): boolean {
    return this.#applications.get(clientId)?.isInProcess ?? false
  }

  isAuthenticated(clientId: number): boolean {
    return this.#applications.get(clientId)?.isAuthenticated ?? false
  }

  /**
   * An id for an application that this server will connect to, for one request. Ids of those that
   * connect by themselves are positive, these are negative.
   */
  reserve(): number {
    this.#dialledOut += 1
    this.#held.set(-this.#dialledOut, [])
    return -this.#dialledOut
  }

  /** Holds an event for an application that has not authenticated yet; false: it has. */
  hold(clientId: number, event: AppEvent): boolean {
    const held = this.#held.get(clientId)
    held?.push(event)
    return held !== undefined
  }

  /** Returns the events that have waited for the application. */
  release(clientId: number): readonly AppEvent[] {
    const held = this.#held.get(clientId) ?? []
    this.#held.delete(clientId)
    return held
  }

  /**
   * Asking twice changes nothing: drachtio-srf repeats all its verbs whenever one is added. One
   * that was connected to for the sake of one request gets no other one.
   */
  addRoute(clientId: number, verb: string): void {
    const application = this.#applications.get(clientId)
    if (!application || application.verbs.has(verb) || clientId < 0) return
    application.verbs.add(verb)
    if (isDetail(verb)) this.#detailRoutes += 1
    const clients = this.#routes.get(verb)
    if (clients) clients.push(clientId)
    else this.#routes.set(verb, [clientId])
  }

  removeRoute(clientId: number, verb: string): void {
    const isRoute = this.#applications.get(clientId)?.verbs.delete(verb) === true
    if (isRoute && isDetail(verb)) this.#detailRoutes -= 1
    const clients = (this.#routes.get(verb) ?? []).filter((other) => other !== clientId)
    if (clients.length === 0) this.#routes.delete(verb)
    else this.#routes.set(verb, clients)
  }

  /**
   * The application that gets a new request; without a route, any that asked for its method, in
   * turn. `unwanted`: none asked for the method; `not-connected`: those that it is meant for are
   * not connected.
   */
  choose(
    method: string,
    route: ApplicationRoute | undefined,
  ): number | 'unwanted' | 'not-connected' {
    if (route !== undefined && 'uri' in route) {
      const clientId = this.reserve()
      this.#outbox.push({ kind: 'dial-out', clientId, uri: route.uri })
      return clientId
    }
    return this.next(method, route?.tag) ?? (route === undefined ? 'unwanted' : 'not-connected')
  }

  /**
   * The next application for this verb, in turn; with a tag, among those that authenticated with
   * it. Undefined: no application asked for it.
   * @param verb a SIP method, or `cdr:…`
   */
  next(verb: string, tag?: string): number | undefined {
    const clients = this.#routes.get(verb.toLowerCase())
    if (clients === undefined) return undefined
    if (tag !== undefined) return this.#nextTagged(clients, tag)
    const first = clients.shift()
    if (first === undefined) return undefined
    clients.push(first)
    return first
  }

  /** Whether any asked for `cdr:…`. */
  get wantDetails(): boolean {
    return this.#detailRoutes > 0
  }

  /** Methods that some application wants, upper case, for Allow. */
  methods(): readonly string[] {
    return [...this.#routes.keys()]
      .filter((verb) => !isDetail(verb))
      .map((verb) => verb.toUpperCase())
  }

  get size(): number {
    return this.#applications.size
  }

  #nextTagged(clients: number[], tag: string): number | undefined {
    const at = clients.findIndex((id) => this.#applications.get(id)?.tags.includes(tag))
    clients.push(...clients.splice(at === -1 ? clients.length : at, 1))
    return at === -1 ? undefined : clients.at(-1)
  }
}
