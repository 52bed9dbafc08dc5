/**
 * The SIP core: bytes, commands and `now` go in, outputs and the next deadline come out. It owns no
 * socket, timer, clock or source of randomness.
 */
import type { Flow, HopTarget } from '../flow.ts'
import { checkResponse } from '../message/check.ts'
import { hostPort } from '../message/host.ts'
import { endsLinesWithLineFeeds, parseAppMessage, parseMessage } from '../message/parse.ts'
import { decodeCommand, type SipCommand } from '../wire/command.ts'
import { encodeAuthenticated, encodeNo, encodeNok, encodeOk, encodePong } from '../wire/event.ts'
import { sortAppHeaders } from './app-headers.ts'
import type { CallTimesByDirection } from './call-times.ts'
import { Departure } from './applications/departure.ts'
import { receiveRequest, returnFlow } from './uas/receive-request.ts'
import { receiveResponse } from './uac/receive-response.ts'
import { answerStateless, respond } from './uas/send-response.ts'
import type { AppRequest } from './uac/command-answers.ts'
import { cancelOutbound, sendInDialog, sendOutOfDialog } from './uac/send-request.ts'
import type { Output } from './output.ts'
import { startProxy } from './proxy/start-proxy.ts'
import { completeVias } from './uas/request-text.ts'
import { sendAck } from './uac/send-ack.ts'
import { Stack, type StackOptions } from './stack.ts'
import type { TrafficTotals } from './traffic.ts'

export class SipCore {
  readonly #stack: Stack

  constructor(options: StackOptions) {
    this.#stack = new Stack(options)
  }

  /** One whole SIP message from the network. Nothing in it can make this throw. */
  receive(text: string, flow: Flow, now: number): void {
    const stack = this.#stack
    const message = parseMessage(text)
    if (message.kind === 'malformed') {
      const request = message.message
      stack.traffic.unreadable(request !== undefined)
      stack.options.log('debug', 'malformed message', {
        from: flow.address,
        reason: message.reason,
      })
      if (request?.kind !== 'request' || request.via === undefined) return
      const vias = completeVias(request, request.via, flow)
      return answerStateless(stack, request, vias, returnFlow(request.via, flow), message)
    }
    stack.traffic.received(message)
    if (endsLinesWithLineFeeds(text)) stack.traffic.withLineFeeds += 1
    if (message.kind === 'request') return receiveRequest(stack, message, flow, now)
    if (checkResponse(message)) receiveResponse(stack, message, flow, now)
    else stack.traffic.faulty.responses += 1
  }

  /** The transport could not send an output that carried `reference`. */
  sendFailed(reference: string, reason: string, now: number): void {
    const stack = this.#stack
    stack.options.log('debug', 'send failed', { reason })
    stack.clientTransactions.get(reference)?.transportFailed(now)
    stack.serverTransactions.get(reference)?.transportFailed(now)
  }

  /** A stream connection is gone: nothing can come back for the requests that were sent on it. */
  connectionClosed(flow: Flow, now: number): void {
    this.#stack.registrationFlows.connectionClosed(flow.connectionId)
    for (const transaction of this.#stack.clientTransactions.onConnection(flow))
      transaction.transportFailed(now)
    for (const dialog of this.#stack.dialogs.onConnection(flow.connectionId))
      dialog.connectionLost()
  }

  /** Where a host name is reached, the preferred place first; none: it cannot be resolved. */
  resolved(reference: string, targets: readonly HopTarget[], now: number): void {
    this.#stack.resolved(reference, targets, now)
  }

  /** `isInProcess`: the application hears of 100 Trying, and takes its calls with it when it goes. */
  clientConnected(clientId: number, isInProcess: boolean): void {
    this.#stack.applications.connected(clientId, isInProcess)
  }

  /**
   * What the application left unanswered is refused; its dialogs end after the grace, or at once when
   * it lived in this process: nobody else knows them.
   */
  clientDisconnected(clientId: number, now: number): void {
    const { applications, options } = this.#stack
    const graceMs = applications.isInProcess(clientId) ? 0 : (options.graceMs ?? 0)
    Departure.of(this.#stack, clientId, graceMs, now)
  }

  /** Ends what goes on without its application: the server is about to stop. */
  endOrphans(now: number): void {
    for (const departure of [...this.#stack.departures.values()]) departure.onTimer('grace', now)
  }

  /** One wire payload from a connected application. */
  command(clientId: number, payload: string, now: number): void {
    const stack = this.#stack
    const { applications } = stack
    const decoded = decodeCommand(payload)
    const reply = (payload: string): void => stack.push({ kind: 'deliver', clientId, payload })
    const { id, command } = decoded
    if (command === undefined) return this.#expel(clientId, id, decoded.problem)
    if (command.kind === 'authenticate') {
      if (!stack.options.sameSecret(command.secret, stack.options.secret))
        return this.#expel(clientId, id, 'incorrect secret')
      applications.authenticate(clientId, command.tags)
      reply(this.#welcome(id))
      return applications.release(clientId).forEach(reply)
    }
    if (!applications.isAuthenticated(clientId))
      return this.#expel(clientId, id, 'not authenticated')
    switch (command.kind) {
      case 'ping':
        return reply(encodePong(stack.nextId(), id))
      case 'route':
        applications.addRoute(clientId, command.verb)
        return reply(encodeOk(stack.nextId(), id))
      case 'remove-route':
        applications.removeRoute(clientId, command.verb)
        return reply(encodeOk(stack.nextId(), id))
      case 'proxy':
        return startProxy(stack, clientId, id, command, now)
      case 'sip':
        return this.#sip(clientId, id, command, now)
    }
  }

  /** Fires everything due at `now`. */
  handleTimeout(now: number): void {
    this.#stack.deadlines.expire(now)
  }

  nextDeadline(): number | undefined {
    return this.#stack.deadlines.next()
  }

  nextOutput(): Output | undefined {
    return this.#stack.nextOutput()
  }

  get traffic(): TrafficTotals {
    return this.#stack.traffic
  }

  get callTimes(): CallTimesByDirection {
    return this.#stack.callTimes
  }

  /** Confirmed dialogs by who sent the INVITE: the peer (`inbound`), or we. */
  dialogCounts(): { readonly inbound: number; readonly outbound: number } {
    const { dialogs } = this.#stack
    return { inbound: dialogs.countConfirmed('uas'), outbound: dialogs.countConfirmed('uac') }
  }

  /** Sizes of all tables: with no call and no transaction they are zero. */
  stats(): Record<string, number> {
    return this.#stack.stats()
  }

  #sip(clientId: number, id: string, command: SipCommand, now: number): void {
    const stack = this.#stack
    const { transactionId, dialogId, routeUrl } = command
    const request: AppRequest = { clientId, id, transactionId, dialogId, routeUrl }
    const message = parseAppMessage(command.message)
    if (message === undefined)
      return stack.deliver(clientId, encodeNok(stack.nextId(), id, 'unreadable SIP message'))
    if (message.kind === 'response') {
      if (transactionId === '')
        return this.#expel(clientId, id, 'a response needs a transaction id')
      return respond(stack, { clientId, id, transactionId }, message, now)
    }
    if (dialogId !== '')
      return message.method === 'ACK'
        ? sendAck(stack, request, message, now)
        : sendInDialog(stack, request, message, now)
    if (transactionId === '') return sendOutOfDialog(stack, request, message, now)
    if (message.method === 'CANCEL')
      return cancelOutbound(stack, request, sortAppHeaders(message, '').lines, now)
    stack.deliver(
      clientId,
      encodeNok(stack.nextId(), id, 'a request cannot quote a transaction id, unless it is CANCEL'),
    )
  }

  /** A breach of the protocol ends the connection. */
  #expel(clientId: number, id: string, reason: string): void {
    const payload = encodeNo(this.#stack.nextId(), id, reason)
    this.#stack.push({ kind: 'deliver', clientId, payload })
    this.#stack.push({ kind: 'disconnect', clientId })
  }

  #welcome(commandId: string): string {
    const { listeners, version } = this.#stack.options
    const all = listeners()
    const hostports = all.map(
      (own) => `${own.protocol}/${hostPort(own.advertisedHost, own.advertisedPort)}`,
    )
    const localHostports = all.map((own) => `${own.protocol}/${hostPort(own.address, own.port)}`)
    return encodeAuthenticated(this.#stack.nextId(), commandId, {
      hostports,
      version,
      localHostports,
    })
  }
}
