/**
 * INVITE with Replaces (RFC 3891): the caller takes the place of somebody in a call of ours. Nobody is
 * called and nobody pays for it: the call in which he takes the place goes on, on its own account.
 */
import type { Call } from '../call.ts'
import type { Outcome } from '../cascade.ts'
import type { InboundCallDeps } from '../inbound/inbound-call.ts'
import { Conversation, isTransferring, type Participant } from '../legs/conversation.ts'
import type { Invite } from '../legs/invite.ts'
import { asOffer, silentAnswer } from '../sdp/third-party.ts'
import type { Reading } from '../inbound/incoming-invite.ts'
import type { Refusal } from '../cdr/end-reason.ts'
import { journalled } from '../record/journal.ts'
import { unpaid } from '../inbound/admission.ts'
import type { Acknowledge } from '../srf/drachtio.ts'
import { identityOf, mayTakePlace } from './identity.ts'
import { readReplaces } from './replaces.ts'
import { reinvite, type Reinvited } from './reinvite.ts'

/** Resolves when the caller has the place, or not. */
export async function takePlace(
  invite: Invite,
  call: Call,
  reading: Reading,
  deps: InboundCallDeps,
): Promise<Outcome> {
  const found = placeFor(invite, reading, deps)
  if ('kind' in found) return { kind: 'over', end: found }
  const { tenantId = null } = found.replaced.conversation.call.account ?? {}
  call.origin = reading.origin
  call.isFree = true
  call.account = unpaid(tenantId)
  call.direction = 'internal'
  call.notes.push({ at: deps.now(), what: 'recognized', origin: reading.origin })
  deps.calls.started(call)
  return new Replacement(invite, call, found, deps).run()
}

interface Place {
  readonly replaced: Participant
  /** Whom the replaced one talks to. */
  readonly partner: Participant
  /** Undefined: the newcomer wants to be offered something. */
  readonly offer: string | undefined
}

/** §3, in its order. */
function placeFor(invite: Invite, { origin }: Reading, deps: InboundCallDeps): Place | Refusal {
  const replaces = readReplaces(invite.headers['replaces'] ?? '')
  if (replaces === undefined || invite.headers['join'] !== undefined)
    return refused(400, 'Bad Replaces', 'bad_request')
  const { callId, toTag, fromTag, isEarlyOnly } = replaces
  const replaced = deps.calls.participantIn(callId, toTag, fromTag)
  const partner = replaced?.conversation.partnerOf(replaced.side)
  if (!replaced || !partner)
    return deps.calls.hasEnded(callId)
      ? refused(603, 'Decline', 'replaces_ended_call')
      : refused(481, 'Call/Transaction Does Not Exist', 'replaces_unknown_call')
  const tenants = [replaced.conversation.call.account?.tenantId, tenantOf(replaced, deps)]
  if (!tenants.some((tenantId) => mayTakePlace(origin, tenantId ?? null, deps)))
    return refused(403, 'Forbidden', 'replaces_not_allowed')
  if (isEarlyOnly) return refused(486, 'Busy Here', 'replaces_answered_call')
  if (isTransferring(replaced, partner)) return refused(491, 'Request Pending', 'transfer')
  return { replaced, partner, offer: invite.body }
}

function tenantOf(participant: Participant, deps: InboundCallDeps): number | null {
  const origin = identityOf(participant, deps)?.origin
  return origin?.kind === 'extension' ? origin.tenantId : null
}

class Replacement {
  readonly #invite: Invite
  readonly #call: Call
  readonly #place: Place
  readonly #deps: InboundCallDeps
  /** The partner's call has ended meanwhile. */
  #isGone = false
  /** Answers the partner's offer, which waits for the newcomer's ACK. */
  #acknowledge: Acknowledge | undefined

  constructor(invite: Invite, call: Call, place: Place, deps: InboundCallDeps) {
    this.#invite = invite
    this.#call = call
    this.#place = place
    this.#deps = deps
  }

  async run(): Promise<Outcome> {
    const { partner } = this.#place
    this.#show('transferring')
    const { call } = partner.conversation
    const forgetEnd = call.whenStopped(() => {
      this.#isGone = true
      this.#call.stop(gone)
    })
    const moved = await this.#move()
    if (moved.kind === 'answered') await journalled(this.#call, [], this.#deps)
    const conversation = new Conversation(this.#call, this.#deps)
    const isTaken = moved.kind === 'answered' && (await this.#accept(conversation))
    forgetEnd()
    if (isTaken) return { kind: 'answered', ended: conversation.ended }
    this.#show('failed')
    if (this.#isGone) return { kind: 'over', end: gone }
    if (moved.kind === 'answered') this.#restore()
    partner.conversation.resume()
    return { kind: 'over', end: this.#call.stopped ?? refusalOf(moved) }
  }

  /** The partner hears of the new media first: its answer is what the caller gets. */
  #move(): Promise<Reinvited> {
    const { partner, offer } = this.#place
    return new Promise((resolve) => {
      this.#call.whenStopped(() => resolve(stopped))
      partner.conversation.pause(() => {
        if (this.#call.stopped) return
        reinvite(partner.leg, offer, this.#deps, (result) => {
          if (result.kind === 'answered') this.#keep(result.acknowledge)
          if (result.kind === 'answered' && this.#call.stopped) this.#restore()
          resolve(result)
        })
      })
    })
  }

  /** However it goes on: a 2xx gets its ACK, and that comes before a BYE. */
  #keep(acknowledge: Acknowledge | undefined): void {
    if (acknowledge === undefined) return
    this.#acknowledge = acknowledge
    this.#place.partner.leg.beforeBye = () => this.#answerOffer('')
  }

  #answerOffer(answer: string): void {
    const acknowledge = this.#acknowledge
    if (acknowledge === undefined) return
    this.#acknowledge = undefined
    const { leg } = this.#place.partner
    leg.beforeBye = undefined
    acknowledge({ body: leg.tell(answer || silentAnswer(leg.media)) })
  }

  /** The partner gets the media again that it had before. */
  #restore(): void {
    const { partner, replaced } = this.#place
    this.#answerOffer('')
    if (!this.#isGone)
      reinvite(partner.leg, asOffer(replaced.leg.media), this.#deps, () => undefined)
  }

  #accept(conversation: Conversation): Promise<boolean> {
    const { partner, replaced } = this.#place
    const { client, now, calls } = this.#deps
    if (this.#call.stopped) return Promise.resolve(false)
    return new Promise((resolve) => {
      this.#invite.accept(client, partner.leg.media, {}, (dialog) => {
        if (!dialog || 'leg' in dialog) return resolve(false)
        this.#call.answeredAt = now()
        this.#call.state = 'ACTIVE'
        const leg = conversation.join('caller', dialog, false)
        if (this.#acknowledge)
          leg.whenAcknowledged((ack) => {
            leg.media = ack.body ?? ''
            this.#answerOffer(leg.media)
          })
        this.#show('transferred')
        if (replaced.side === 'callee') calls.calleeLeft(replaced.conversation.call)
        Conversation.connect(partner, { conversation, side: 'caller', leg })
        replaced.leg.hangUp({})
        return resolve(true)
      })
    })
  }

  #show(state: 'transferring' | 'transferred' | 'failed'): void {
    const { call } = this.#place.partner.conversation
    const { callUuid, callerNumber: destination } = this.#call.start
    const sipCode = null
    this.#deps.calls.transfer(call, { state, callUuid, destination, sipCode })
    this.#call.transfer = { state, callUuid: call.start.callUuid, destination, sipCode }
  }
}

function refusalOf(moved: Reinvited): Refusal {
  if (moved.kind === 'answered') return gone
  return refused(moved.status, moved.reason, 'replaces_refused')
}

function refused(status: number, reason: string, code: string): Refusal {
  return { kind: 'refused', status, reason, code }
}

const gone = refused(481, 'Call/Transaction Does Not Exist', 'replaces_ended_call')
const stopped: Reinvited = { kind: 'refused', status: 487, reason: 'Request Terminated' }
