/**
 * Tells applications of the calls and requests that are theirs. Each event goes to the application
 * that has the transaction, the dialog or the command.
 */
import type { AppEvent, AuthenticatedEvent, CallDetail, SentFields } from '../application.ts'
import type { Flow } from '../flow.ts'
import type { SipMessage } from '../../../schema/sip/message.ts'
import { parseAppMessage } from '../../../schema/sip/parse.ts'
import type { Applications } from './applications.ts'
import type { Outbox, CommandRef } from './outbox.ts'

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
