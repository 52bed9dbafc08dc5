/**
 * Applications whose connection was lost. Requests that they had not answered are refused at once.
 * Their calls go on for a grace period, since the media does not pass through them; then the calls
 * end, because no application could end them any more.
 */
import type { CoreParts } from './parts.ts'
import type { OutboundRequests } from './uac/outbound-request.ts'
import type { InboundRequests } from './uas/inbound-request.ts'
import type { Responder } from './uas/responder.ts'

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
