/**
 * An attempt that was given up for the next target (RFC 3263 §4.3), until its transaction ends. What
 * it still says reaches nobody; a target that begins to ring after all is cancelled, one that
 * answers gets ACK and BYE.
 */
import type { Flow } from '../../flow.ts'
import type { SipMessage } from '../../message/message.ts'
import type { ClientUser } from '../../transaction/context.ts'
import type { SentRequest } from '../../transaction/sent-request.ts'
import type { Stack } from '../stack.ts'
import { sendCancel } from './send-cancel.ts'

/** Acknowledges an answer and ends its dialog. */
type EndFork = (response: SipMessage, flow: Flow, now: number) => void

export class LostAttempt implements ClientUser {
  readonly #stack: Stack
  readonly #sent: SentRequest
  readonly #flow: Flow
  readonly #endFork: EndFork
  #isCancelled = false

  constructor(stack: Stack, sent: SentRequest, flow: Flow, endFork: EndFork) {
    this.#stack = stack
    this.#sent = sent
    this.#flow = flow
    this.#endFork = endFork
  }

  onResponse(response: SipMessage, flow: Flow, now: number): void {
    if (this.#sent.method !== 'INVITE' || response.status >= 300) return
    if (response.status >= 200) return this.#endFork(response, flow, now)
    if (this.#isCancelled) return
    this.#isCancelled = true
    sendCancel(this.#stack, this.#sent, this.#flow, '', now)
  }

  onFailure(): void {
    // The application heard of another target instead.
  }

  onTerminated(): void {
    this.#stack.clientTransactions.remove(this.#sent.branch)
  }
}
