/**
 * An attended transfer (RFC 5589 §7): somebody has two calls, and joins those he talks to. Both calls
 * go on, each with its own record and on its own account, and end together.
 */
import type { CallTransfer } from '../../../schema/contracts/calls.ts'
import type { ActiveCalls } from '../active-calls.ts'
import { Conversation, otherSide, type Participant } from '../legs/conversation.ts'
import { asOffer } from '../sdp/third-party.ts'
import { agrees } from '../sdp/agreement.ts'
import type { TransferHooks } from './handover.ts'
import type { Target } from './refer-request.ts'
import { reinvite, type ReinviteDeps } from './reinvite.ts'

export interface JoinPlan {
  /** The same party in two calls. */
  readonly leaver: Participant
  readonly consulting: Participant
  /** Whom he talks to in the first, and in the second. */
  readonly stayer: Participant
  readonly called: Participant
  readonly target: Target
  readonly hooks: TransferHooks
}

export interface JoinDeps extends ReinviteDeps {
  readonly calls: Pick<ActiveCalls, 'transfer' | 'calleeLeft'>
}

/** RFC 3725: each side is told of the other's media, then the other two are let go. */
export function joinCalls(plan: JoinPlan, deps: JoinDeps): void {
  new Joining(plan, deps).start()
}

class Joining {
  readonly #plan: JoinPlan
  readonly #deps: JoinDeps
  readonly #forgetStops: readonly (() => void)[]
  readonly #gone = new Set<Participant>()
  #isSettled = false

  constructor(plan: JoinPlan, deps: JoinDeps) {
    this.#plan = plan
    this.#deps = deps
    const { leaver, consulting, stayer, called } = plan
    for (const participant of [leaver, consulting])
      participant.conversation.excuse(participant.side, () => this.#gone.add(participant))
    this.#forgetStops = [stayer, called].map(({ conversation }) =>
      conversation.call.whenStopped(() => this.#fail(487, 'Request Terminated')),
    )
  }

  start(): void {
    const { stayer, called } = this.#plan
    this.#show('transferring', null)
    const offer = asOffer(stayer.leg.media)
    stayer.conversation.pause(() =>
      called.conversation.pause(() => {
        if (this.#isSettled) return
        reinvite(called.leg, offer, this.#deps, (result) => {
          if (result.kind === 'refused') return this.#fail(result.status, result.reason)
          return this.#tellStayer(offer)
        })
      }),
    )
  }

  #tellStayer(offered: string): void {
    const { stayer, called, leaver, consulting } = this.#plan
    if (this.#isSettled) return this.#restore(called, consulting)
    return reinvite(stayer.leg, called.leg.media, this.#deps, (result) => {
      if (result.kind === 'answered' && !this.#isSettled) return this.#joined(offered)
      if (result.kind === 'answered') this.#restore(stayer, leaver)
      else this.#fail(result.status, result.reason)
      return this.#restore(called, consulting)
    })
  }

  #joined(offered: string): void {
    this.#settle()
    const { leaver, consulting, stayer, called, hooks } = this.#plan
    this.#show('transferred', null)
    hooks.onTaken()
    for (const { side, conversation } of [leaver, consulting])
      if (side === 'callee') this.#deps.calls.calleeLeft(conversation.call)
    Conversation.connect(stayer, called)
    // As whom he has called would do, had he got an INVITE with Replaces (RFC 3891 §3).
    consulting.leg.hangUp({})
    if (agrees(offered, called.leg.media, stayer.leg.media)) return undefined
    return called.conversation.pause(() =>
      reinvite(called.leg, stayer.leg.media, this.#deps, () => called.conversation.resume()),
    )
  }

  /** Both calls go on as they were, but for whoever has gone already. */
  #fail(status: number, reason: string): void {
    if (this.#isSettled) return
    this.#settle()
    const { leaver, consulting, stayer, called, hooks } = this.#plan
    for (const { conversation } of [leaver, consulting]) conversation.excuseNobody()
    this.#show('failed', status)
    hooks.onFailed(status, reason)
    for (const { conversation } of [stayer, called]) conversation.resume()
    if (this.#gone.has(leaver)) hangUpAlone(stayer)
    if (this.#gone.has(consulting)) hangUpAlone(called)
  }

  /** Who was told of new media hears again where the old ones go. */
  #restore({ leg, conversation }: Participant, partner: Participant): void {
    if (this.#gone.has(partner) || conversation.call.stopped) return
    reinvite(leg, asOffer(partner.leg.media), this.#deps, () => undefined)
  }

  #settle(): void {
    this.#isSettled = true
    for (const forget of this.#forgetStops) forget()
  }

  #show(state: CallTransfer['state'], sipCode: number | null): void {
    const { stayer, called, leaver, consulting } = this.#plan
    const [one, other] = [stayer.conversation.call, called.conversation.call]
    const destination = other.start.calledNumber
    const seen = { state, destination, sipCode, callUuid: other.start.callUuid }
    for (const { conversation } of [leaver, consulting]) conversation.call.transfer = seen
    this.#deps.calls.transfer(one, seen)
    this.#deps.calls.transfer(other, { ...seen, callUuid: one.start.callUuid })
  }
}

function hangUpAlone({ conversation, side }: Participant): void {
  conversation.call.stop({ kind: 'hung-up', by: otherSide(side) })
}
