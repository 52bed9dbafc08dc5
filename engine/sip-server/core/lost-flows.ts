/**
 * Dialogs whose stream has ended with the process before this one. Their peer comes back by itself
 * (a phone registers again), or gets OPTIONS over a new connection. A dialog whose peer cannot be
 * reached within a minute ends, and its application gets an event as for a session that has
 * expired.
 */
import type { CoreParts } from './parts.ts'
import { sessionExpired } from './request-writer.ts'
import type { Dialog } from '../dialog/dialog.ts'
import { type Flow, isWebSocket } from '../flow.ts'
import type { SipMessage } from '../message/message.ts'
import { LongDeadline, type ClientUser } from '../transaction/machine.ts'
import type { OutboundRequests } from './uac/outbound-request.ts'
import type { InboundRequests } from './uas/inbound-request.ts'
import type { Responder } from './uas/responder.ts'

const LIMIT_MS = 60_000
/** A phone that was cut off needs a moment to come back. */
const FIRST_CHECK_MS = 5_000
const CHECK_INTERVAL_MS = 10_000
const ABOUT_MS = 500

export function watchLostFlow(parts: CoreParts, dialog: Dialog, now: number): void {
  // There may be thousands: their first checks are spread.
  const firstCheckMs = FIRST_CHECK_MS + (parts.ids.number() % FIRST_CHECK_MS)
  new LostFlow(parts, dialog, now + LIMIT_MS).checkAt(now + firstCheckMs, now)
}

class LostFlow implements ClientUser {
  readonly #parts: CoreParts
  readonly #dialog: Dialog
  readonly #endsAt: number
  readonly #deadline: LongDeadline
  /** The branch of the OPTIONS that is under way; '' for none. */
  #branch = ''
  #checkedFlow: Flow | undefined

  constructor(parts: CoreParts, dialog: Dialog, endsAt: number) {
    this.#parts = parts
    this.#dialog = dialog
    this.#endsAt = endsAt
    this.#deadline = new LongDeadline(parts.transactions.deadlines, (at) => this.#check(at))
  }

  checkAt(at: number, now: number): void {
    this.#deadline.set(Math.min(at, this.#endsAt), now)
  }

  #check(now: number): void {
    const { writer, hops } = this.#parts
    const dialog = this.#dialog
    if (dialog.state === 'terminated' || dialog.isFlowBound) return
    const hop = writer.hopInDialog(dialog)
    if ('flow' in hop && hop.flow.connectionId !== 0) return
    // A long deadline comes up to a quarter of a second early: set again to the same time, it is
    // due at once, for ever.
    if (this.#endsAt - now < ABOUT_MS) return this.#end(now)
    this.checkAt(now + CHECK_INTERVAL_MS, now)
    if ('problem' in hop) return
    if (hop.question === undefined) return this.#ask(hop.flow, now)
    hops.lookUp(hop.question, ([flow], at) => this.#ask(flow, at))
  }

  #ask(flow: Flow | undefined, now: number): void {
    if (flow === undefined || this.#branch !== '' || isWebSocket(flow.listener.protocol)) return
    const dialog = this.#dialog
    if (dialog.state === 'terminated') return
    const { transactions, writer } = this.#parts
    const lines = `Contact: ${dialog.contact}\r\n`
    const options = writer.numbered(dialog, 'OPTIONS', dialog.nextLocalCseq(), flow, { lines })
    this.#branch = options.branch
    this.#checkedFlow = flow
    transactions.startClient(options, flow, this, now)
  }

  onResponse({ status }: SipMessage, _from: Flow, now: number): void {
    if (status < 200) return
    this.#deadline.cancel()
    if (status === 408 || status === 481) return this.#end(now)
    if (this.#checkedFlow) this.#dialog.rememberNextHop(this.#checkedFlow)
  }

  /** The next check tries again. */
  onFailure(): void {}

  onTerminated(): void {
    this.#parts.transactions.endClient(this.#branch)
    this.#branch = ''
  }

  #end(now: number): void {
    this.#parts.localBye.send(this.#dialog, sessionExpired, 'notify', now)
  }
}

// Applications whose connection was lost. Requests that they had not answered are refused at once.
// Their calls go on for a grace period, since the media does not pass through them; then the calls
// end, because no application could end them any more.

interface LostParts extends CoreParts {
  readonly inbound: InboundRequests
  readonly outbound: OutboundRequests
  readonly responder: Responder
}

export class LostApplications {
  readonly #parts: LostParts
  /** Applications in their grace period. */
  readonly #inGrace = new Set<number>()

  constructor(parts: LostParts) {
    this.#parts = parts
  }

  /** The dialogs of an application in this process end at once: they died with it. */
  disconnected(clientId: number, now: number): void {
    const { applications, dialogs, transactions, options } = this.#parts
    const graceMs = applications.isInProcess(clientId) ? 0 : (options.graceMs ?? 0)
    const wasConnected = applications.isAuthenticated(clientId)
    applications.disconnected(clientId)
    this.#refuseUnanswered(clientId, wasConnected, now)
    this.#settleOwn(clientId, now)
    if (graceMs === 0 || dialogs.ofClient(clientId).length === 0)
      return this.#endCalls(clientId, now)
    this.#inGrace.add(clientId)
    const onTimer = (_timer: 'grace', at: number): void => this.#endCalls(clientId, at)
    transactions.deadlines.start({ onTimer }, 'grace', graceMs, now)
  }

  /** Ends all calls that are in their grace period. */
  endAll(now: number): void {
    for (const clientId of [...this.#inGrace]) this.#endCalls(clientId, now)
  }

  get size(): number {
    return this.#inGrace.size
  }

  #endCalls(clientId: number, now: number): void {
    const { dialogs, localBye } = this.#parts
    this.#inGrace.delete(clientId)
    for (const dialog of dialogs.ofClient(clientId))
      // A subscriber comes again until its subscription lapses, and another application may answer.
      if (dialog.usage !== 'subscription' || dialog.role !== 'uas')
        localBye.send(dialog, 'Application gone', 'silent', now)
  }

  /**
   * 480 where the application was connected to for this request, and did not come (wire/README.md
   * §2).
   */
  #refuseUnanswered(clientId: number, wasConnected: boolean, now: number): void {
    const { inbound, responder } = this.#parts
    for (const request of inbound.ofClient(clientId))
      if (wasConnected || clientId > 0)
        responder.answer(request, 503, 'Service Unavailable', 'Retry-After: 5\r\n', now)
      else responder.answer(request, 480, 'Temporarily Unavailable', '', now)
  }

  /**
   * Its INVITEs are cancelled; an answer that it has not acknowledged is, so that the callee does
   * not wait.
   */
  #settleOwn(clientId: number, now: number): void {
    const { outbound, dialogs } = this.#parts
    for (const request of outbound.ofClient(clientId)) {
      request.cancel('', now)
      request.finished()
    }
    for (const dialog of dialogs.ofClient(clientId)) {
      dialog.answeredInvite?.acknowledge(dialog, '', '', now)
      if (dialog.state !== 'confirmed') dialogs.remove(dialog)
    }
  }
}
