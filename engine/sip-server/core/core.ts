/**
 * The SIP core: bytes, commands and `now` go in, outputs and the next deadline come out. It owns no
 * socket, timer, clock or source of randomness. Here its parts are joined; each knows only those that
 * it is given.
 */
import type { AppCommand, PingDone, SipCommand } from '../application.ts'
import { DialogTable } from '../dialog/dialog.ts'
import type { Flow, HopTarget, Listener } from '../flow.ts'
import { checkResponse, endsLinesWithLineFeeds, parseMessage } from '../message/parse.ts'
import { hostPort } from '../message/fields.ts'
import type {
  CallLimits,
  Log,
  NewRequest,
  Refresher,
  RequestRoute,
  Screening,
  SipServerOptions,
} from '../options.ts'
import type { SipMessage } from '../message/message.ts'
import type { Timers } from '../transaction/machine.ts'
import { sortAppHeaders } from './app-headers.ts'
import { serverKey, Transactions, Identifiers } from './transactions.ts'
import { Applications, ApplicationEvents, type CommandRef, Outbox, type Output } from './outbox.ts'
import { CallTimes, type CallTimesByDirection, Traffic, type TrafficTotals } from './traffic.ts'
import { HopFinder, advertised } from './next-hop.ts'
import { RequestWriter, LocalBye } from './request-writer.ts'
import { OwnRoutes, type SealOptions, TokenRoutes } from './proxy/own-routes.ts'
import { Proxy } from './proxy/proxy.ts'
import { RegistrationFlows } from './registration-flows.ts'
import { SavedState } from './saved-state.ts'
import { LostFlows, LostApplications } from './lost-flows.ts'
import { SessionTimers } from './session-timers.ts'
import { Subscriptions } from './subscriptions.ts'
import { AcknowledgedInvites, Strays } from './uac/orphaned-invites.ts'
import { OutboundRequests, RequestSender, type RequestCommand } from './uac/outbound-request.ts'
import { Pings } from './uac/pings.ts'
import { ResponseReceiver } from './uac/receive-response.ts'
import { InboundRequests } from './uas/inbound-request.ts'
import { InDialogRequests, RequestReceiver } from './uas/receive-request.ts'
import { Responder } from './uas/responder.ts'

export interface CoreOptions extends SealOptions {
  readonly listeners: () => readonly Listener[]
  readonly timers: Timers
  readonly limits: CallLimits
  /** The shortest session interval that is accepted (Min-SE, RFC 4028 §5). */
  readonly minSessionSeconds: number
  /** Asked for each INVITE that is no copy of one: true refuses it, if it begins a call. Default: never. */
  readonly refusesCall?: (invite: SipMessage, source: Flow) => boolean
  readonly routeRequest?: SipServerOptions['routeRequest'] | undefined
  readonly screen?: ((request: NewRequest) => Screening | undefined) | undefined
  readonly admitInDialog?: SipServerOptions['admitInDialog']
  readonly readToken?: SipServerOptions['readToken']
  readonly outboundProxy?: string | undefined
  readonly defaultRefresher?: Refresher | undefined
  readonly alwaysSend180?: boolean | undefined
  readonly detectsNat?: boolean | undefined
  /** How long the calls of an application that has gone go on. Milliseconds; default: they end at once. */
  readonly graceMs?: number | undefined
  /** What applications must quote. */
  readonly secret: string
  /** Compares in constant time. */
  readonly sameSecret: (given: string, expected: string) => boolean
  /** An unguessable token of letters and digits: branches and tags. */
  readonly token: () => string
  /** Reported to applications; starts with `v<major>.<minor>.<patch>`. */
  readonly version: string
  readonly log: Log
}

export class SipCore {
  readonly traffic: TrafficTotals
  readonly callTimes: CallTimesByDirection = { inbound: new CallTimes(), outbound: new CallTimes() }
  readonly saved: SavedState
  readonly #options: CoreOptions
  readonly #traffic = new Traffic()
  readonly #outbox = new Outbox(this.#traffic)
  readonly #dialogs = new DialogTable()
  readonly #inbound: InboundRequests
  readonly #outbound = new OutboundRequests()
  readonly #applications: Applications
  readonly #events: ApplicationEvents
  readonly #transactions: Transactions
  readonly #acknowledged: AcknowledgedInvites
  readonly #registrationFlows: RegistrationFlows
  readonly #hops: HopFinder
  readonly #responder: Responder
  readonly #requests: RequestReceiver
  readonly #sender: RequestSender
  readonly #proxy: Proxy
  readonly #lostApplications: LostApplications
  readonly #strays: Strays
  readonly #pings: Pings

  constructor(options: CoreOptions) {
    const { listeners, minSessionSeconds, log, limits } = options
    this.#options = options
    this.traffic = this.#traffic
    const outbox = this.#outbox
    const dialogs = this.#dialogs
    const ids = new Identifiers(options.token)
    const applications = new Applications({
      dialOut: (clientId, uri) => outbox.push({ kind: 'dial-out', clientId, uri }),
    })
    const events = new ApplicationEvents(applications, outbox)
    const transactions = new Transactions(options.timers, outbox, ids)
    this.#inbound = new InboundRequests(transactions)
    const { deadlines } = transactions
    const registrationFlows = new RegistrationFlows(deadlines)
    const hops = new HopFinder({ listeners, registrationFlows, outbox, ids })
    const writer = new RequestWriter(hops, ids, minSessionSeconds, options.outboundProxy)
    const localBye = new LocalBye({ dialogs, writer, transactions, events })
    const acknowledged = new AcknowledgedInvites({ transactions, writer, localBye })
    const sessions = new SessionTimers({
      transactions,
      writer,
      localBye,
      ids,
      minSessionSeconds,
      log,
    })
    const subscriptions = new Subscriptions(dialogs, this.#outbound, deadlines)
    const shared = { transactions, dialogs, ids, applications, events, localBye, log }
    const { defaultRefresher = 'none' } = options
    const settings = { sessions, subscriptions, minSessionSeconds, defaultRefresher }
    const { inbound: callTimesIn, outbound: callTimesOut } = this.callTimes
    this.#responder = new Responder({
      ...shared,
      ...settings,
      outbox,
      registrationFlows,
      requests: this.#inbound,
      callTimes: callTimesIn,
      alwaysSend180: options.alwaysSend180 === true,
      detectsNat: options.detectsNat !== false,
    })
    const uas = { ...shared, ...settings, requests: this.#inbound, responder: this.#responder }
    const ownRoutes = new OwnRoutes(options)
    const { readToken } = options
    const tokenRoutes = readToken && new TokenRoutes(hops, readToken)
    this.#proxy = new Proxy({ ...uas, hops, ownRoutes, tokenRoutes, callTimesIn, callTimesOut })
    this.#requests = new RequestReceiver({
      ...uas,
      proxy: this.#proxy,
      inDialog: new InDialogRequests({
        ...uas,
        proxy: this.#proxy,
        admitInDialog: options.admitInDialog,
      }),
      traffic: this.#traffic,
      limits,
      outbox,
      refusesCall: options.refusesCall,
      screen: options.screen,
      routeRequest: options.routeRequest,
    })
    this.#sender = new RequestSender({
      ...shared,
      hops,
      writer,
      acknowledged,
      requests: this.#outbound,
      responses: new ResponseReceiver({ ...shared, ...settings, callTimes: callTimesOut }),
    })
    const lostFlows = new LostFlows({ transactions, writer, hops, localBye, ids })
    this.saved = new SavedState({ ...uas, listeners, lostFlows })
    this.#lostApplications = new LostApplications({
      ...shared,
      deadlines,
      responder: this.#responder,
      inbound: this.#inbound,
      outbound: this.#outbound,
      graceMs: options.graceMs ?? 0,
    })
    this.#strays = new Strays({ transactions, dialogs, writer })
    this.#pings = new Pings({ transactions, writer, ids, outbox, traffic: this.#traffic })
    this.#applications = applications
    this.#events = events
    this.#transactions = transactions
    this.#acknowledged = acknowledged
    this.#registrationFlows = registrationFlows
    this.#hops = hops
  }

  /** One whole SIP message from the network. Nothing in it can make this throw. */
  receive(text: string, flow: Flow, now: number): void {
    if (this.#pings.takes(text)) return
    const message = parseMessage(text)
    if (message.kind === 'malformed') {
      const request = message.message
      this.#traffic.unreadable(request !== undefined)
      const { reason } = message
      this.#options.log('debug', 'malformed message', { from: flow.address, reason })
      if (request?.kind === 'request') this.#requests.refuseMalformed(request, flow, message)
      return
    }
    this.#traffic.received(message)
    if (endsLinesWithLineFeeds(text)) this.#traffic.withLineFeeds += 1
    if (message.kind === 'request') return this.#requests.receive(message, flow, now)
    if (!checkResponse(message)) this.#traffic.faulty.responses += 1
    else if (this.#transactions.receiveResponse(message, flow, now)) return
    else if (this.#pings.receive(message)) return
    else if (!this.#acknowledged.receive(message, flow, now))
      this.#strays.receive(message, flow, now)
  }

  /** Ends what answers INVITEs of a process before this one that has crashed; asked for each such source. */
  endStrays(isToBeEnded: (source: Flow) => boolean, now: number): void {
    this.#strays.end(isToBeEnded, now)
  }

  /** How many requests wait for their final response. */
  get unansweredCount(): number {
    return this.#transactions.unansweredCount
  }

  /** Whether a message is a response, or belongs to a transaction or a dialog that is here: it begins nothing. */
  isKnown(text: string): boolean {
    const message = parseMessage(text)
    if (message.kind === 'response') return true
    if (message.kind === 'malformed' || message.via === undefined) return false
    const { method, via } = message
    const key = serverKey(message, via, method === 'CANCEL' ? 'INVITE' : method)
    return this.#transactions.hasServer(key) || this.#dialogs.ofRequest(message) !== undefined
  }

  /** The transport could not send an output that carried `reference`. */
  sendFailed(reference: string, reason: string, now: number): void {
    this.#options.log('debug', 'send failed', { reason })
    this.#transactions.sendFailed(reference, now)
    this.#pings.sendFailed(reference)
  }

  /** A stream connection is gone: nothing can come back for the requests that were sent on it. */
  connectionClosed(flow: Flow, now: number): void {
    this.#registrationFlows.connectionClosed(flow.connectionId)
    this.#transactions.connectionClosed(flow, now)
    for (const dialog of this.#dialogs.onConnection(flow.connectionId)) dialog.connectionLost()
  }

  /** Where a host name is reached, the preferred place first; none: it cannot be resolved. */
  resolved(reference: string, targets: readonly HopTarget[], now: number): void {
    this.#hops.resolved(reference, targets, now)
  }

  /** `isInProcess`: the application hears of 100 Trying, and takes its calls with it when it goes. */
  clientConnected(clientId: number, isInProcess: boolean): void {
    this.#applications.connected(clientId, isInProcess)
  }

  /** What was to become of a request; undefined: an application that asked for its method takes it. */
  routed(transactionId: string, route: RequestRoute | undefined, now: number): void {
    this.#requests.routed(transactionId, route, now)
  }

  /** An application of this process has seen a request, and has had its time to answer it at once. */
  handled(clientId: number, transactionId: string, now: number): void {
    this.#responder.handled(clientId, transactionId, now)
  }

  clientDisconnected(clientId: number, now: number): void {
    this.#lostApplications.disconnected(clientId, now)
  }

  /** Ends the calls that go on without their application: the server is about to stop. */
  endOrphans(now: number): void {
    this.#lostApplications.endAll(now)
  }

  /** What a connected application asks for. */
  command(clientId: number, asked: AppCommand, now: number): void {
    const { id, command } = asked
    const ref = { clientId, id }
    if (command === undefined) return this.#events.closeWithError(ref, asked.problem)
    if (command.kind === 'authenticate')
      return this.#authenticate(ref, command.secret, command.tags)
    if (!this.#applications.isAuthenticated(clientId))
      return this.#events.closeWithError(ref, 'not authenticated')
    switch (command.kind) {
      case 'ping':
        return this.#events.pong(ref)
      case 'route':
        this.#applications.addRoute(clientId, command.verb)
        return this.#events.ok(ref)
      case 'remove-route':
        this.#applications.removeRoute(clientId, command.verb)
        return this.#events.ok(ref)
      case 'proxy':
        return this.#proxy.command(ref, command, now)
      case 'sip':
        return this.#sip(refTo(ref, command), command, now)
    }
  }

  /** Whether an OPTIONS has left whose answer `done` gets; see `ApplicationLink.ping`. */
  ping(target: string, done: PingDone, now: number): boolean {
    return this.#pings.send(target, done, now)
  }

  /** Fires everything due at `now`. */
  handleTimeout(now: number): void {
    this.#transactions.deadlines.expire(now)
  }

  nextDeadline(): number | undefined {
    return this.#transactions.deadlines.next()
  }

  nextOutput(): Output | undefined {
    return this.#outbox.take()
  }

  /** Confirmed dialogs by which side sent the INVITE: the peer (`inbound`), or we. */
  dialogCounts(): { readonly inbound: number; readonly outbound: number } {
    const dialogs = this.#dialogs
    return { inbound: dialogs.countConfirmed('uas'), outbound: dialogs.countConfirmed('uac') }
  }

  /** Sizes of all tables: with no call and no transaction they are zero. */
  stats(): Record<string, number> {
    return {
      applications: this.#applications.size,
      clientTransactions:
        this.#transactions.clientCount + this.#acknowledged.size + this.#pings.size,
      serverTransactions: this.#transactions.serverCount,
      dialogs: this.#dialogs.size,
      ...this.#inbound.sizes,
      unrouted: this.#requests.unrouted,
      outboundRequests: this.#outbound.size,
      lostApplications: this.#lostApplications.size,
      resolving: this.#hops.resolving,
      answered: this.#dialogs.countUnacknowledged(),
      subscribing: this.#outbound.subscribingCount,
      registrationFlows: this.#registrationFlows.size,
      deadlines: this.#transactions.deadlines.size,
      outputs: this.#outbox.size,
    }
  }

  #authenticate(ref: CommandRef, secret: string, tags: readonly string[]): void {
    const { sameSecret, secret: expected, version, listeners } = this.#options
    if (!sameSecret(secret, expected)) return this.#events.closeWithError(ref, 'incorrect secret')
    this.#applications.authenticate(ref.clientId, tags)
    const all = listeners()
    this.#events.authenticated(ref, {
      hostports: all.map((own) => `${own.protocol}/${advertised(own)}`),
      version,
      localHostports: all.map((own) => `${own.protocol}/${hostPort(own.address, own.port)}`),
    })
  }

  #sip(command: RequestCommand, { message, toStranger }: SipCommand, now: number): void {
    if (message === undefined) return this.#events.refuse(command, 'unreadable SIP message')
    const { transactionId, dialogId } = command
    if (message.kind === 'response') {
      if (transactionId === '')
        return this.#events.closeWithError(command, 'a response needs a transaction id')
      return toStranger === true
        ? this.#responder.answerStranger(command, message, now)
        : this.#responder.respond(command, message, now)
    }
    const { method } = message
    if (dialogId !== '')
      return method === 'ACK'
        ? this.#sender.ack(command, message, now)
        : this.#sender.inDialog(command, message, now)
    if (transactionId === '') return this.#sender.outOfDialog(command, message, now)
    if (method === 'CANCEL')
      return this.#sender.cancel(command, sortAppHeaders(message, '').lines, now)
    this.#events.refuse(command, 'a request cannot quote a transaction id, unless it is CANCEL')
  }
}

const refTo = (
  { clientId, id }: CommandRef,
  { transactionId, dialogId, routeUrl }: SipCommand,
): RequestCommand => ({ clientId, id, transactionId, dialogId, routeUrl })
