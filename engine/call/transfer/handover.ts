/**
 * The party that stays in a transfer, as the calling side of the call in which it will talk to
 * somebody else. Until that one answers, it goes on talking to whom it talks to now.
 */
import type { ActiveCalls } from '../active-calls.ts'
import type { CallTransfer } from '../../../schema/contracts/calls.ts'
import type { Call } from '../call.ts'
import type { Successor } from '../legs/invite.ts'
import { otherSide, type Participant } from '../legs/conversation.ts'
import { asOffer } from '../sdp/third-party.ts'
import type { Headers, SipResponse } from '../srf/drachtio.ts'
import type { SrfClient } from '../srf/srf-client.ts'
import { agrees } from '../sdp/agreement.ts'
import { reinvite, type ReinviteDeps } from './reinvite.ts'

export interface HandoverPlan {
  /** Who leaves when the other call is answered. */
  readonly leaver: Participant
  readonly stayer: Participant
  /** Whom the other call is for, as dialled. */
  readonly destination: string
  readonly hooks: TransferHooks
}

export interface TransferHooks {
  /** A provisional answer of the other call. */
  readonly onProgress: (status: number, reason: string) => void
  /** Exactly one of these. `onTaken`: the leaver is about to be out of the call. */
  readonly onTaken: () => void
  readonly onFailed: (status: number, reason: string) => void
}

export interface HandoverDeps extends ReinviteDeps {
  readonly calls: Pick<ActiveCalls, 'transfer' | 'calleeLeft'>
}

export class Handover implements Successor {
  readonly owesAck = false
  readonly keepsOrigin = true
  readonly #plan: HandoverPlan
  readonly #call: Call
  /** What the called side of the other call is offered. */
  readonly #offered: string
  readonly #deps: HandoverDeps
  readonly #forgetStop: () => void
  /** Why the party that stays could not be connected. */
  #refusal: { readonly status: number; readonly reason: string } | undefined
  #hasLeft = false
  /** The party that stays has been told of the new media. */
  #isMoved = false
  #isSettled = false

  /** `call`: the other one. */
  constructor(plan: HandoverPlan, call: Call, offered: string, deps: HandoverDeps) {
    this.#plan = plan
    this.#call = call
    this.#offered = offered
    this.#deps = deps
    const { leaver, stayer } = plan
    call.legs.push(stayer.leg.dialog.sip.callId)
    this.#show('transferring', null)
    leaver.conversation.excuse(leaver.side, () => {
      this.#hasLeft = true
    })
    this.#forgetStop = stayer.conversation.call.whenStopped(() => call.stop({ kind: 'cancelled' }))
  }

  /** The early media of the other call is not heard: whoever waits still talks to the one who leaves. */
  progress({ status, reason }: Pick<SipResponse, 'status' | 'reason'>): void {
    this.#plan.hooks.onProgress(status, reason)
  }

  accept(
    _client: SrfClient,
    body: string,
    _headers: Headers,
    done: (taken: Participant | undefined) => void,
  ): void {
    const { stayer } = this.#plan
    if (body === '') {
      // Whoever stays would make an offer then, which nobody could answer.
      this.#refusal = { status: 488, reason: 'Not Acceptable Here' }
      return done(undefined)
    }
    let isDone = false
    const settle = (taken: Participant | undefined): void => {
      if (isDone) return
      isDone = true
      forget()
      if (taken) this.#taken()
      done(taken)
      if (taken) this.#reconcile()
    }
    // A re-INVITE that is under way may never end, because its call does.
    const forget = this.#call.whenStopped(() => settle(undefined))
    stayer.conversation.pause(() => {
      if (isDone) return
      reinvite(stayer.leg, body, this.#deps, (result) => {
        if (result.kind === 'refused') this.#refusal = result
        else this.#isMoved = true
        if (this.#isSettled) this.#restore()
        settle(this.#isMoved ? stayer : undefined)
      })
    })
  }

  /** Everything stays as it was, but for somebody who has gone already. */
  refused(status: number, reason: string): void {
    if (this.#isSettled) return
    this.#isSettled = true
    this.#forgetStop()
    const { leaver, stayer, hooks } = this.#plan
    const refusal = this.#refusal ?? { status, reason: reason || 'Declined' }
    leaver.conversation.excuseNobody()
    this.#show('failed', refusal.status)
    hooks.onFailed(refusal.status, refusal.reason)
    if (this.#hasLeft)
      stayer.conversation.call.stop({ kind: 'hung-up', by: otherSide(stayer.side) })
    else this.#restore()
  }

  #taken(): void {
    this.#isSettled = true
    this.#forgetStop()
    this.#show('transferred', null)
    this.#plan.hooks.onTaken()
    const { side, conversation } = this.#plan.leaver
    if (side === 'callee') this.#deps.calls.calleeLeft(conversation.call)
  }

  /** The party that stays may have answered with something else than was said before. */
  #reconcile(): void {
    const { stayer } = this.#plan
    const reached = this.#call.conversation?.participant('callee')
    if (!reached || agrees(this.#offered, reached.leg.media, stayer.leg.media)) return
    reached.conversation.pause(() =>
      reinvite(reached.leg, stayer.leg.media, this.#deps, () => reached.conversation.resume()),
    )
  }

  /** Whoever was told of new media hears again where the old ones go. */
  #restore(): void {
    const { leaver, stayer } = this.#plan
    const { conversation, leg } = stayer
    if (this.#hasLeft || conversation.call.stopped) return
    if (this.#isMoved)
      reinvite(leg, asOffer(leaver.leg.media), this.#deps, () => conversation.resume())
    else conversation.resume()
  }

  #show(state: CallTransfer['state'], sipCode: number | null): void {
    const { callUuid } = this.#call.start
    const { leaver, stayer, destination } = this.#plan
    const transfer = { state, callUuid, destination, sipCode }
    leaver.conversation.call.transfer = transfer
    this.#deps.calls.transfer(stayer.conversation.call, transfer)
    this.#call.transfer = { ...transfer, callUuid: stayer.conversation.call.start.callUuid }
  }
}
