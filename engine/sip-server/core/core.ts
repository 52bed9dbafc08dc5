/**
 * The SIP core: bytes, commands and `now` go in, outputs and the next deadline come out. It owns no
 * socket, timer, clock or source of randomness. Its parts share what `parts.ts` makes.
 */
import type { AppCommand, PingDone, SipCommand } from '../application.ts'
import type { Flow, HopTarget } from '../flow.ts'
import { checkResponse, endsLinesWithLineFeeds, parseMessage } from '../../../schema/sip/parse.ts'
import { hostPort } from '../../../schema/sip/fields.ts'
import type { RequestRoute } from '../options.ts'
import { sortAppHeaders } from './app-headers.ts'
import { serverKey } from './transactions.ts'
import type { CommandRef, Output } from './outbox.ts'
import type { CallTimesByDirection, TrafficTotals } from './traffic.ts'
import { advertised } from './hop-finder.ts'
import { type CoreOptions, type CoreParts, createParts } from './parts.ts'
import { OwnRoutes } from './proxy/own-routes.ts'
import { TokenRoutes } from './proxy/token-routes.ts'
import { Proxy } from './proxy/proxy.ts'
import { SavedState } from './saved-state.ts'
import { LostApplications } from './lost-applications.ts'
import { SessionTimers } from './session-timers.ts'
import { Subscriptions } from './subscriptions.ts'
import { AcknowledgedInvites } from './uac/acknowledged-invites.ts'
import { OrphanedInvites } from './uac/orphaned-invites.ts'
import { OutboundRequests, type RequestCommand } from './uac/outbound-request.ts'
import { RequestSender } from './uac/request-sender.ts'
import { Pings } from './uac/pings.ts'
import { ResponseReceiver } from './uac/response-receiver.ts'
import { InboundRequests } from './uas/inbound-request.ts'
import { InDialogRequests } from './uas/in-dialog-requests.ts'
import { RequestReceiver } from './uas/request-receiver.ts'
import { Responder } from './uas/responder.ts'

export class SipCore {
  readonly saved: SavedState
  readonly #parts: CoreParts
  readonly #inbound: InboundRequests
  readonly #outbound = new OutboundRequests()
  readonly #acknowledged: AcknowledgedInvites
  readonly #responder: Responder
  readonly #requests: RequestReceiver
  readonly #sender: RequestSender
  readonly #proxy: Proxy
  readonly #lostApplications: LostApplications
  readonly #orphanedInvites: OrphanedInvites
  readonly #pings: Pings

  constructor(options: CoreOptions) {
    const parts = createParts(options)
    const { transactions, dialogs, hops } = parts
    const inbound = new InboundRequests(transactions)
    const outbound = this.#outbound
    const acknowledged = new AcknowledgedInvites(parts)
    const sessions = new SessionTimers(parts)
    const subscriptions = new Subscriptions(dialogs, outbound, transactions.deadlines)
    const withCalls = { ...parts, requests: inbound, sessions, subscriptions }
    const responder = new Responder(withCalls)
    const uas = { ...withCalls, responder }
    const { readToken } = options
    const tokenRoutes = readToken && new TokenRoutes(hops, readToken)
    const proxy = new Proxy({ ...uas, ownRoutes: new OwnRoutes(options), tokenRoutes })
    const inDialog = new InDialogRequests({ ...uas, proxy })
    const responses = new ResponseReceiver({ ...parts, sessions, subscriptions })
    this.#parts = parts
    this.#inbound = inbound
    this.#acknowledged = acknowledged
    this.#responder = responder
    this.#proxy = proxy
    this.#requests = new RequestReceiver({ ...uas, proxy, inDialog })
    this.#sender = new RequestSender({ ...parts, acknowledged, requests: outbound, responses })
    this.saved = new SavedState(uas)
    this.#lostApplications = new LostApplications({ ...parts, responder, inbound, outbound })
    this.#orphanedInvites = new OrphanedInvites(parts)
    this.#pings = new Pings(parts)
  }

  get traffic(): TrafficTotals {
    return this.#parts.traffic
  }

  get callTimes(): CallTimesByDirection {
    return this.#parts.callTimes
  }

  /** One whole SIP message from the network. Nothing in it can make this throw. */
  receive(text: string, flow: Flow, now: number): void {
    if (this.#pings.takes(text)) return
    const message = parseMessage(text)
    if (message.kind === 'malformed') {
      const request = message.message
      this.#parts.traffic.unreadable(request !== undefined)
      const { reason } = message
      this.#parts.options.log('debug', 'malformed message', { from: flow.address, reason })
      if (request?.kind === 'request') this.#requests.refuseMalformed(request, flow, message)
      return
    }
    this.#parts.traffic.received(message)
    if (endsLinesWithLineFeeds(text)) this.#parts.traffic.withLineFeeds += 1
    if (message.kind === 'request') return this.#requests.receive(message, flow, now)
    if (!checkResponse(message)) this.#parts.traffic.faulty.responses += 1
    else if (this.#parts.transactions.receiveResponse(message, flow, now)) return
    else if (this.#pings.receive(message)) return
    else if (!this.#acknowledged.receive(message, flow, now))
      this.#orphanedInvites.receive(message, flow, now)
  }

  /**
   * Ends INVITEs of a crashed process at callees that answer them, if the function is true for
   * their source.
   */
  endOrphanedInvites(isToBeEnded: (source: Flow) => boolean, now: number): void {
    this.#orphanedInvites.end(isToBeEnded, now)
  }

  /** How many requests wait for their final response. */
  get unansweredCount(): number {
    return this.#parts.transactions.unansweredCount
  }

  /** Whether a message is a response, or belongs to a transaction or a dialog of this process. */
  isKnown(text: string): boolean {
    const message = parseMessage(text)
    if (message.kind === 'response') return true
    if (message.kind === 'malformed' || message.via === undefined) return false
    const { method, via } = message
    const key = serverKey(message, via, method === 'CANCEL' ? 'INVITE' : method)
    return (
      this.#parts.transactions.hasServer(key) ||
      this.#parts.dialogs.ofRequest(message) !== undefined
    )
  }

  /** The transport could not send an output that carried `reference`. */
  sendFailed(reference: string, reason: string, now: number): void {
    this.#parts.options.log('debug', 'send failed', { reason })
    this.#parts.transactions.sendFailed(reference, now)
    this.#pings.sendFailed(reference)
  }

  /** A stream connection is gone: nothing can come back for the requests that were sent on it. */
  connectionClosed(flow: Flow, now: number): void {
    if (this.#parts.registrationFlows.connectionClosed(flow.connectionId))
      this.#parts.outbox.push({ kind: 'registered-flow-closed', flow })
    this.#parts.transactions.connectionClosed(flow, now)
    for (const dialog of this.#parts.dialogs.onConnection(flow.connectionId))
      dialog.connectionLost()
  }

  /** The addresses of a host name, the preferred one first; none: it cannot be resolved. */
  resolved(reference: string, targets: readonly HopTarget[], now: number): void {
    this.#parts.hops.resolved(reference, targets, now)
  }

  /** `isInProcess`: the application gets 100 Trying, and its calls end with it. */
  clientConnected(clientId: number, isInProcess: boolean): void {
    this.#parts.applications.connected(clientId, isInProcess)
  }

  /**
   * Call control of this process needs no secret, and asks for requests of `methods`. Returns the
   * advertised addresses.
   */
  openPort(clientId: number, methods: readonly string[]): readonly string[] {
    const { applications } = this.#parts
    applications.authenticate(clientId, [])
    for (const method of methods) applications.addRoute(clientId, method)
    return this.#hostPorts()
  }

  /**
   * `routeRequest` has answered; undefined: an application that asked for the method gets the
   * request.
   */
  routed(transactionId: string, route: RequestRoute | undefined, now: number): void {
    this.#requests.routed(transactionId, route, now)
  }

  /**
   * An application of this process has handled the event of a request, and could have answered it.
   */
  handled(clientId: number, transactionId: string, now: number): void {
    this.#responder.handled(clientId, transactionId, now)
  }

  clientDisconnected(clientId: number, now: number): void {
    this.#lostApplications.disconnected(clientId, now)
  }

  /** Ends the calls that go on without their application: the server is about to stop. */
  endOrphanedCalls(now: number): void {
    this.#lostApplications.endAll(now)
  }

  /** Performs a command of a connected application. */
  command(clientId: number, asked: AppCommand, now: number): void {
    const { id, command } = asked
    const ref = { clientId, id }
    if (command === undefined) return this.#parts.events.closeWithError(ref, asked.problem)
    if (command.kind === 'authenticate')
      return this.#authenticate(ref, command.secret, command.tags)
    if (!this.#parts.applications.isAuthenticated(clientId))
      return this.#parts.events.closeWithError(ref, 'not authenticated')
    switch (command.kind) {
      case 'ping':
        return this.#parts.events.pong(ref)
      case 'route':
        this.#parts.applications.addRoute(clientId, command.verb)
        return this.#parts.events.ok(ref)
      case 'remove-route':
        this.#parts.applications.removeRoute(clientId, command.verb)
        return this.#parts.events.ok(ref)
      case 'proxy':
        return this.#proxy.command(ref, command, now)
      case 'sip':
        return this.#sip(refTo(ref, command), command, now)
    }
  }

  /** Whether an OPTIONS has left whose answer `done` gets; see `SipPort.ping`. */
  ping(target: string, done: PingDone, now: number): boolean {
    return this.#pings.send(target, done, now)
  }

  /** Fires everything due at `now`. */
  handleTimeout(now: number): void {
    this.#parts.transactions.deadlines.expire(now)
  }

  nextDeadline(): number | undefined {
    return this.#parts.transactions.deadlines.next()
  }

  nextOutput(): Output | undefined {
    return this.#parts.outbox.take()
  }

  /** Confirmed dialogs by which side sent the INVITE: the peer (`inbound`), or we. */
  dialogCounts(): { readonly inbound: number; readonly outbound: number } {
    const { dialogs } = this.#parts
    return { inbound: dialogs.countConfirmed('uas'), outbound: dialogs.countConfirmed('uac') }
  }

  /** Sizes of all tables: with no call and no transaction they are zero. */
  stats(): Record<string, number> {
    return {
      applications: this.#parts.applications.size,
      clientTransactions:
        this.#parts.transactions.clientCount + this.#acknowledged.size + this.#pings.size,
      serverTransactions: this.#parts.transactions.serverCount,
      dialogs: this.#parts.dialogs.size,
      ...this.#inbound.sizes,
      unrouted: this.#requests.unrouted,
      outboundRequests: this.#outbound.size,
      lostApplications: this.#lostApplications.size,
      resolving: this.#parts.hops.resolving,
      answered: this.#parts.dialogs.countUnacknowledged(),
      subscribing: this.#outbound.subscribingCount,
      registrationFlows: this.#parts.registrationFlows.size,
      deadlines: this.#parts.transactions.deadlines.size,
      outputs: this.#parts.outbox.size,
    }
  }

  #authenticate(ref: CommandRef, secret: string, tags: readonly string[]): void {
    const { sameSecret, secret: expected, version, listeners } = this.#parts.options
    if (expected === undefined || !sameSecret(secret, expected))
      return this.#parts.events.closeWithError(ref, 'incorrect secret')
    this.#parts.applications.authenticate(ref.clientId, tags)
    this.#parts.events.authenticated(ref, {
      hostports: this.#hostPorts(),
      version,
      localHostports: listeners().map(
        (own) => `${own.protocol}/${hostPort(own.address, own.port)}`,
      ),
    })
  }

  /** Advertised addresses, such as `udp/192.0.2.1:5060`. */
  #hostPorts(): readonly string[] {
    const { listeners } = this.#parts.options
    return listeners().map((own) => `${own.protocol}/${advertised(own)}`)
  }

  #sip(command: RequestCommand, { message, toStranger }: SipCommand, now: number): void {
    if (message === undefined) return this.#parts.events.refuse(command, 'unreadable SIP message')
    const { transactionId, dialogId } = command
    if (message.kind === 'response') {
      if (transactionId === '')
        return this.#parts.events.closeWithError(command, 'a response needs a transaction id')
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
    this.#parts.events.refuse(
      command,
      'a request cannot quote a transaction id, unless it is CANCEL',
    )
  }
}

const refTo = (
  { clientId, id }: CommandRef,
  { transactionId, dialogId, routeUrl }: SipCommand,
): RequestCommand => ({ clientId, id, transactionId, dialogId, routeUrl })
