/**
 * What applications are told: requests and responses from the network, answers to their commands, and
 * call details. The wire form of each is in `wire/event.ts`.
 */
import { isReliable, type Flow } from '../../flow.ts'
import { byteLength } from '../../message/decode.ts'
import * as wire from '../../wire/event.ts'
import type { Identifiers } from '../identifiers.ts'
import type { Outbox } from '../outbox.ts'
import type { Applications } from './applications.ts'

/** The command that an answer quotes. */
export interface CommandRef {
  readonly clientId: number
  readonly id: string
}

/** A message of a transaction as the application reads it. */
interface Passed {
  readonly transactionId: string
  readonly dialogId: string
  readonly text: string
  /** The listener that took a request which begins something new. */
  readonly local?: { readonly address: string; readonly port: number }
}

type Source = wire.CallDetail['source']
type StopReason = Extract<wire.CallDetail, { kind: 'stop' }>['reason']

export class ApplicationEvents {
  readonly #applications: Applications
  readonly #outbox: Outbox
  readonly #ids: Identifiers

  constructor(applications: Applications, outbox: Outbox, ids: Identifiers) {
    this.#applications = applications
    this.#outbox = outbox
    this.#ids = ids
  }

  /** A request from the network; `came` is its text as it came. */
  request(clientId: number, passed: Passed, came: string, flow: Flow, now: number): void {
    const id = this.#ids.next()
    const meta = networkMeta(came, flow, now)
    this.#deliver(clientId, wire.encodeRequestEvent({ ...passed, id, meta }))
  }

  /** A response from the network, or one made here in its place. */
  response(clientId: number, passed: Passed, came: string, flow: Flow, now: number): void {
    const id = this.#ids.next()
    const meta = networkMeta(came, flow, now)
    this.#deliver(clientId, wire.encodeResponseEvent({ ...passed, id, meta }))
  }

  /** A request that the stack itself has sent in a dialog of the application. */
  unsolicited(clientId: number, dialogId: string, text: string, flow: Flow, now: number): void {
    const meta = applicationMeta(text, flow, now)
    this.#deliver(clientId, wire.encodeUnsolicited({ id: this.#ids.next(), meta, dialogId, text }))
  }

  /** The application's response has left. */
  responseSent(command: CommandRef, passed: Passed, flow: Flow, now: number): void {
    const id = this.#ids.next()
    const meta = applicationMeta(passed.text, flow, now)
    const sent = { ...passed, id, commandId: command.id, meta }
    this.#deliver(command.clientId, wire.encodeResponseSent(sent))
  }

  /** The application's request has left, and its responses will carry `transactionId`. */
  requestSent(
    command: CommandRef,
    transactionId: string,
    text: string,
    flow: Flow,
    now: number,
  ): void {
    const meta = applicationMeta(text, flow, now)
    const sent = { id: this.#ids.next(), commandId: command.id, meta, transactionId, text }
    this.#deliver(command.clientId, wire.encodeRequestSent(sent))
  }

  /** What the command asks for is not possible. */
  refuse({ clientId, id }: CommandRef, problem: string): void {
    this.#deliver(clientId, wire.encodeNok(this.#ids.next(), id, problem))
  }

  /** A final response to a request that is being forwarded. */
  forwarded({ clientId, id }: CommandRef, text: string, flow: Flow, now: number): void {
    const meta = networkMeta(text, flow, now)
    this.#deliver(clientId, wire.encodeProxied(this.#ids.next(), id, meta, text))
  }

  forwardingDone({ clientId, id }: CommandRef): void {
    this.#deliver(clientId, wire.encodeProxyDone(this.#ids.next(), id))
  }

  // ---- answers on the connection itself: never held back ----

  ok({ clientId, id }: CommandRef): void {
    this.#push(clientId, wire.encodeOk(this.#ids.next(), id))
  }

  pong({ clientId, id }: CommandRef): void {
    this.#push(clientId, wire.encodePong(this.#ids.next(), id))
  }

  /** Welcomes the application, and hands over what has waited for it. */
  authenticated(
    { clientId, id }: CommandRef,
    server: Parameters<typeof wire.encodeAuthenticated>[2],
  ): void {
    this.#push(clientId, wire.encodeAuthenticated(this.#ids.next(), id, server))
    for (const payload of this.#applications.release(clientId)) this.#push(clientId, payload)
  }

  /** A breach of the protocol ends the connection. */
  closeWithError({ clientId, id }: CommandRef, reason: string): void {
    this.#push(clientId, wire.encodeNo(this.#ids.next(), id, reason))
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

  #tellDetail(detail: wire.CallDetail): void {
    if (!this.#applications.wantDetails) return
    const clientId = this.#applications.next(`cdr:${detail.kind}`)
    if (clientId !== undefined)
      this.#deliver(clientId, wire.encodeCallDetail(this.#ids.next(), detail))
  }

  #deliver(clientId: number, payload: string): void {
    if (clientId < 0 && this.#applications.hold(clientId, payload)) return
    this.#push(clientId, payload)
  }

  #push(clientId: number, payload: string): void {
    this.#outbox.push({ kind: 'deliver', clientId, payload })
  }
}

const networkMeta = (text: string, flow: Flow, now: number): wire.Meta => ({
  source: 'network',
  bytes: byteLength(text),
  protocol: flow.listener.protocol,
  address: flow.address,
  port: flow.port,
  time: now,
})

/** For UDP our listener; for streams the remote end, as the real server reports it. */
function applicationMeta(text: string, flow: Flow, now: number): wire.Meta {
  const { listener } = flow
  const isStream = isReliable(listener.protocol)
  return {
    source: 'application',
    bytes: byteLength(text),
    protocol: listener.protocol,
    address: isStream ? flow.address : listener.advertisedHost,
    port: isStream ? flow.port : listener.advertisedPort,
    time: now,
  }
}
