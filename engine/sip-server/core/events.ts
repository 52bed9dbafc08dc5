/** What an application is told: each event goes to the one whose transaction, dialog or command it is about. */
import type { AppEvent, AuthenticatedEvent, CallDetail, SentFields } from '../application.ts'
import type { Applications } from './applications.ts'
import type { Outbox } from './outbox.ts'
import type { Flow } from '../flow.ts'
import type { SipMessage } from '../message/message.ts'
import { parseAppMessage } from '../message/parse.ts'

/** The command that an answer quotes. */
export interface CommandRef {
  readonly clientId: number
  readonly id: string
}

/** Of which transaction a message is, and how the application reads it. */
interface Passed {
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

  /** A request that begins something new. */
  newRequest(clientId: number, passed: Passed, request: SipMessage, flow: Flow, now: number): void {
    this.#pass('request', clientId, passed, request, flow, now, true)
  }

  /** A request in a dialog or a CANCEL from the network; a text: made here in its place. */
  request(
    clientId: number,
    passed: Passed,
    request: SipMessage | string,
    flow: Flow,
    now: number,
  ): void {
    this.#pass('request', clientId, passed, request, flow, now, false)
  }

  /** A response from the network; a text: made here in its place. */
  response(
    clientId: number,
    passed: Passed,
    response: SipMessage | string,
    flow: Flow,
    now: number,
  ): void {
    this.#pass('response', clientId, passed, response, flow, now, false)
  }

  #pass(
    kind: 'request' | 'response',
    clientId: number,
    { transactionId, dialogId, text }: Passed,
    of: SipMessage | string,
    flow: Flow,
    now: number,
    isNew: boolean,
  ): void {
    const message = typeof of === 'string' ? parseAppMessage(of) : of
    if (message === undefined) return
    const { text: came } = message
    const passed = { kind, transactionId, dialogId, text, message, came, flow, now, isNew }
    this.#deliver(clientId, passed)
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
    { transactionId, dialogId, text }: Passed,
    localTag: string,
    flow: Flow,
    now: number,
  ): void {
    const sent = { transactionId, dialogId, text, localTag, flow, now }
    this.#deliver(clientId, { kind: 'response-sent', commandId, ...sent })
  }

  /** The application's request has left, and its responses will carry `transactionId`. */
  requestSent(
    { clientId, id: commandId }: CommandRef,
    transactionId: string,
    sent: SentFields & { readonly text: string },
    flow: Flow,
    now: number,
  ): void {
    const { text } = sent
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

  /** An ACK or a CANCEL of the application has left: no response will come. */
  unansweredSent(
    { clientId, id: commandId }: CommandRef,
    transactionId: string,
    text: string,
    flow: Flow,
    now: number,
  ): void {
    this.#deliver(clientId, {
      kind: 'request-sent',
      commandId,
      transactionId,
      text,
      sent: undefined,
      flow,
      now,
    })
  }

  /** What the command asks for is not possible. */
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

  /** Welcomes the application, and hands over what has waited for it. */
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
    this.#tellDetail({ kind: 'attempt', source, time: now, text })
  }

  /** The final response to an INVITE that began a call. */
  callAnswered(
    source: Source,
    role: 'uac' | 'uas',
    status: number,
    text: string,
    now: number,
  ): void {
    if (status < 300) this.#tellDetail({ kind: 'start', source, role, time: now, text })
    else this.callStopped(source, 'call-rejected', text, now)
  }

  /** The final response to an INVITE that was forwarded: as it came, and as it went on. */
  forwardedCallAnswered(status: number, came: string, went: string, now: number): void {
    if (status >= 300) return this.callStopped('network', 'call-rejected', came, now)
    const [source, role] = ['network', 'proxy-uac'] as const
    this.#tellDetail({ kind: 'start', source, role, time: now, text: came })
    const sent = { source: 'application', role: 'proxy-uas' } as const
    this.#tellDetail({ kind: 'start', ...sent, time: now, text: went })
  }

  /** A call has ended: a final failure, a CANCEL, a BYE. */
  callStopped(source: Source, reason: StopReason, text: string, now: number): void {
    this.#tellDetail({ kind: 'stop', source, reason, time: now, text })
  }

  #tellDetail(detail: CallDetail): void {
    if (!this.#applications.wantDetails) return
    const clientId = this.#applications.next(`cdr:${detail.kind}`)
    if (clientId !== undefined) this.#deliver(clientId, { kind: 'detail', detail })
  }

  /** 0: no application has to do with it. */
  #deliver(clientId: number, event: AppEvent): void {
    if (clientId === 0) return
    if (clientId < 0 && this.#applications.hold(clientId, event)) return
    this.#push(clientId, event)
  }

  #push(clientId: number, event: AppEvent): void {
    this.#outbox.push({ kind: 'deliver', clientId, event })
  }
}
