/**
 * What the parts of the core share: tables, outputs, identifiers. Each part is a set of functions
 * over one `Stack`, split by the direction in which a message travels.
 */
import { isReliable, type Flow, type HopQuestion, type HopTarget, type Listener } from '../flow.ts'
import type { Dialog } from '../dialog/dialog.ts'
import { Dialogs } from '../dialog/dialogs.ts'
import { byteLength } from '../message/decode.ts'
import type { SipMessage } from '../message/message.ts'
import type { TransactionContext } from '../transaction/context.ts'
import { Deadlines } from '../transaction/deadlines.ts'
import { ClientTransactions } from './client-transactions.ts'
import type { InviteServerTransaction } from '../transaction/invite-server.ts'
import type { NonInviteServerTransaction } from '../transaction/non-invite-server.ts'
import type { CallLimits, NewRequest, RequestRoute } from '../options.ts'
import type { Timers } from '../transaction/timers.ts'
import type { Meta } from '../wire/meta.ts'
import { CallTimes, type CallTimesByDirection } from './call-times.ts'
import { Applications } from './applications/applications.ts'
import type { Departure } from './applications/departure.ts'
import type { InboundRequest } from './uas/inbound-request.ts'
import { AvoidedTargets } from './uac/avoided-targets.ts'
import type { OutboundRequest } from './uac/outbound-request.ts'
import { OwnRoutes } from './proxy/own-routes.ts'
import type { ResponseContext } from './proxy/response-context.ts'
import type { Output } from './output.ts'
import { Traffic } from './traffic.ts'
import { RegistrationFlows } from './registration-flows.ts'

export type Log = (
  level: 'debug' | 'info' | 'warn' | 'error',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void

export interface StackOptions {
  readonly listeners: () => readonly Listener[]
  readonly timers: Timers
  readonly limits: CallLimits
  /** The shortest session interval that is accepted (Min-SE, RFC 4028 §5). */
  readonly minSessionSeconds: number
  /** Asked for each INVITE that is no copy of one: true refuses it, if it begins a call. Default: never. */
  readonly refusesCall?: (invite: SipMessage, source: Flow) => boolean
  /** Who gets a new request; undefined: whoever asked for its method, in turn. Default: always they. */
  readonly routeRequest?: ((request: NewRequest) => RequestRoute | undefined) | undefined
  /** How long the calls of an application that has gone go on. Milliseconds; default: they end at once. */
  readonly graceMs?: number | undefined
  /** What applications must quote; compared in constant time by the caller of `sameSecret`. */
  readonly secret: string
  readonly sameSecret: (given: string, expected: string) => boolean
  /** What only this server can make of a text: letters and digits. */
  readonly seal: (text: string) => string
  /** An unguessable token of letters and digits: branches and tags. */
  readonly token: () => string
  /** Reported to applications; starts with `v<major>.<minor>.<patch>`. */
  readonly version: string
  readonly log: Log
}

type Resolved = (targets: readonly HopTarget[], now: number) => void

type ServerTransaction = InviteServerTransaction | NonInviteServerTransaction

export class Stack implements TransactionContext {
  readonly options: StackOptions
  readonly timers: Timers
  readonly deadlines = new Deadlines()
  readonly traffic = new Traffic()
  /** Of calls that came in, and of calls that went out. */
  readonly callTimes: CallTimesByDirection = { inbound: new CallTimes(), outbound: new CallTimes() }
  readonly applications = new Applications()
  readonly dialogs = new Dialogs()
  readonly registrationFlows = new RegistrationFlows(this.deadlines)
  readonly clientTransactions = new ClientTransactions()
  readonly serverTransactions = new Map<string, ServerTransaction>()
  /** Requests that wait for an application's final response, by the id it quotes. */
  readonly inbound = new Map<string, InboundRequest>()
  /** The same by server transaction: where a CANCEL goes. */
  readonly inboundByKey = new Map<string, InboundRequest>()
  /** Requests of applications, until their final response was delivered. */
  readonly outbound = new Map<string, OutboundRequest>()
  /** Applications that have gone while their calls go on. */
  readonly departures = new Map<number, Departure>()
  /** Requests that are being forwarded, until their caller has a final response. */
  readonly forwarding = new Set<ResponseContext>()
  /** Until then no request can have come round. */
  hasForwarded = false
  readonly ownRoutes: OwnRoutes
  /** Targets that were silent, refused or failed lately. */
  readonly avoided = new AvoidedTargets()
  /** Who waits for the addresses of a host name, by reference. */
  readonly #resolving = new Map<string, Resolved>()
  /** Requests outside dialogs by Call-ID, From tag and CSeq: one may come by two ways (§8.2.2.2). */
  readonly merged = new Map<string, string>()
  /** SUBSCRIBE and REFER of applications outside dialogs, until their answer, by `dialogKey`. */
  readonly subscribing = new Map<string, OutboundRequest>()
  /** UAC INVITEs that were answered with 2xx, by dialog: who sends and repeats their ACK. */
  readonly answered = new Map<string, OutboundRequest>()
  #outputs: Output[] = []
  #nextOutput = 0
  #ids = 0

  constructor(options: StackOptions) {
    this.options = options
    this.timers = options.timers
    this.ownRoutes = new OwnRoutes(options)
  }

  send(text: string, flow: Flow, reference: string): void {
    this.traffic.sent(text)
    this.#outputs.push({ kind: 'send', text, flow, reference })
  }

  repeat(text: string, flow: Flow, reference: string): void {
    this.traffic.repeated(text)
    this.send(text, flow, reference)
  }

  deliver(clientId: number, payload: string): void {
    if (clientId < 0 && this.applications.hold(clientId, payload)) return
    this.#outputs.push({ kind: 'deliver', clientId, payload })
  }

  push(output: Output): void {
    this.#outputs.push(output)
  }

  /** Looks a next hop up; `found` is called once, later, perhaps with no target. */
  resolve(question: HopQuestion, found: Resolved): void {
    const reference = this.nextId()
    this.#resolving.set(reference, found)
    this.push({ kind: 'resolve', question, reference })
  }

  resolved(reference: string, targets: readonly HopTarget[], now: number): void {
    const found = this.#resolving.get(reference)
    this.#resolving.delete(reference)
    found?.(targets, now)
  }

  nextOutput(): Output | undefined {
    const output = this.#outputs[this.#nextOutput]
    if (output === undefined) {
      if (this.#nextOutput > 0) {
        this.#outputs = []
        this.#nextOutput = 0
      }
      return undefined
    }
    this.#nextOutput += 1
    return output
  }

  /** A new id for a message to an application, or for a transaction: unique in this process. */
  nextId(): string {
    this.#ids += 1
    return this.#ids.toString(36)
  }

  newTransactionId(): string {
    return `${this.options.token()}-${this.nextId()}`
  }

  newBranch(): string {
    return `z9hG4bK${this.options.token()}`
  }

  /** Nothing new may begin. */
  get isFull(): boolean {
    const { maxUnanswered, maxDialogs } = this.options.limits
    const unanswered = this.inbound.size + this.forwarding.size
    return unanswered >= maxUnanswered || this.dialogs.size >= maxDialogs
  }

  /** Removes a dialog and what hangs on it. */
  forget(dialog: Dialog): void {
    // Another fork of the same INVITE has the same id.
    if (this.answered.get(dialog.id)?.dialog === dialog) this.answered.delete(dialog.id)
    this.dialogs.remove(dialog)
    dialog.ended()
  }

  networkMeta(text: string, flow: Flow, now: number): Meta {
    return {
      source: 'network',
      bytes: byteLength(text),
      protocol: flow.listener.protocol,
      address: flow.address,
      port: flow.port,
      time: now,
    }
  }

  /** For UDP our listener; for streams the remote end, as the real server reports it. */
  applicationMeta(text: string, flow: Flow, now: number): Meta {
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

  stats(): Record<string, number> {
    return {
      applications: this.applications.size,
      clientTransactions: this.clientTransactions.size,
      serverTransactions: this.serverTransactions.size,
      dialogs: this.dialogs.size,
      inboundRequests: this.inbound.size,
      inboundByKey: this.inboundByKey.size,
      outboundRequests: this.outbound.size,
      departures: this.departures.size,
      forwarding: this.forwarding.size,
      resolving: this.#resolving.size,
      merged: this.merged.size,
      answered: this.answered.size,
      subscribing: this.subscribing.size,
      registrationFlows: this.registrationFlows.size,
      deadlines: this.deadlines.size,
      outputs: this.#outputs.length - this.#nextOutput,
    }
  }
}
