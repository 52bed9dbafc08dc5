/**
 * The requests of a dialog that have no final response yet: one INVITE at a time (RFC 3261 §14),
 * one UPDATE at a time, and one offer at a time whatever carries it (RFC 3311 §5).
 */
import type { SipMessage } from '../../../schema/sip/message.ts'

/**
 * Why a request must wait: both sides have sent one (491), or the peer's own is unanswered (500).
 */
export type Conflict = 'glare' | 'try-later'

/** A command of the application that has to wait. */
export interface HeldCommand {
  send(now: number): void
  /** The dialog has ended. */
  refuse(): void
}

const MAX_HELD = 4

export class PendingRequests {
  #hasLocalInvite = false
  #hasRemoteInvite = false
  /** An UPDATE of ours with an offer, and any UPDATE of the peer. */
  #hasLocalOffer = false
  #hasRemoteUpdate = false
  #held: readonly HeldCommand[] = noneHeld

  get hasLocalInvite(): boolean {
    return this.#hasLocalInvite
  }

  get hasRemoteInvite(): boolean {
    return this.#hasRemoteInvite
  }

  localBegins(method: string, hasBody: boolean): void {
    if (method === 'INVITE') this.#hasLocalInvite = true
    else if (method === 'UPDATE') this.#hasLocalOffer = hasBody
  }

  localEnds(method: string): void {
    if (method === 'INVITE') this.#hasLocalInvite = false
    else if (method === 'UPDATE') this.#hasLocalOffer = false
  }

  remoteBegins(method: string): void {
    if (method === 'INVITE') this.#hasRemoteInvite = true
    else if (method === 'UPDATE') this.#hasRemoteUpdate = true
  }

  remoteEnds(method: string): void {
    if (method === 'INVITE') this.#hasRemoteInvite = false
    else if (method === 'UPDATE') this.#hasRemoteUpdate = false
  }

  /**
   * Why a request of the peer must wait; undefined: it need not. In an early dialog the first
   * INVITE is pending as well; `unanswered` is our role in it while its offer has no answer.
   */
  conflictOf(
    request: SipMessage,
    isEarly: boolean,
    unanswered: 'uac' | 'uas' | undefined,
  ): Conflict | undefined {
    const hasOffer = request.hasBody
    if (request.method === 'INVITE') {
      if (isEarly || this.#hasRemoteInvite) return 'try-later'
      if (this.#hasRemoteUpdate && hasOffer) return 'try-later'
      return this.#hasLocalInvite || (this.#hasLocalOffer && hasOffer) ? 'glare' : undefined
    }
    if (request.method !== 'UPDATE') return undefined
    if (this.#hasRemoteUpdate) return 'try-later'
    if (!hasOffer) return undefined
    if (this.#hasRemoteInvite || unanswered === 'uas') return 'try-later'
    const isOurs = this.#hasLocalInvite || this.#hasLocalOffer
    return isOurs || unanswered === 'uac' ? 'glare' : undefined
  }

  /** Keeps a re-INVITE until the one of the stack's own has ended; false: too many wait. */
  hold(command: HeldCommand): boolean {
    if (this.#held.length >= MAX_HELD) return false
    this.#held = [...this.#held, command]
    return true
  }

  releaseHeld(now: number): void {
    for (const command of this.#takeHeld()) command.send(now)
  }

  refuseHeld(): void {
    for (const command of this.#takeHeld()) command.refuse()
  }

  #takeHeld(): readonly HeldCommand[] {
    const held = this.#held
    this.#held = noneHeld
    return held
  }
}

/** Shared by the dialogs that hold nothing. */
const noneHeld: readonly HeldCommand[] = []
