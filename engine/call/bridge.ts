/**
 * One attempt to one destination. It ends as a value, exactly once: answered, refused, silent, or
 * stopped from outside. What comes after that end (a late 200) is taken back here.
 */
import type { Attempt } from '../../schema/call-record.ts'
import type { Charging } from '../../schema/contracts/charging.ts'
import type { Call } from './call.ts'
import { Conversation, type ConversationDeps } from './legs/conversation.ts'
import type { Deadline, Deadlines } from './deadlines.ts'
import type { End, Refusal } from './cdr/end-reason.ts'
import { cause, reasonHeader } from './cdr/end-reason.ts'
import { journalled } from './record/journal.ts'
import type { Headers, PendingOffer, SipRequest, SipResponse, SrfDialog } from './srf/drachtio.ts'
import { peerAddress } from './sip/peer-address.ts'
import { advertiseReplaces, tagOf, withoutClaims } from './sip/headers.ts'
import type { Caller } from './legs/caller.ts'
import type { Announced, Callee } from './dialing/outgoing-invite.ts'
import { inviteFor } from './dialing/outgoing-invite.ts'
import { withheld, type WithheldDeps } from './dialing/withheld.ts'
import type { SrfClient, UacEnd } from './srf/srf-client.ts'

export type AttemptResult =
  | { readonly kind: 'answered'; readonly ended: Promise<End> }
  /** A final answer. `isFinal`: nobody else may be tried, whatever the status. */
  | {
      readonly kind: 'rejected'
      readonly status: number
      readonly reason: string
      readonly headers: Headers
      readonly isFinal: boolean
      /** All headers of a 3xx. */
      readonly redirect?: Headers
    }
  /** No answer of any kind in time. */
  | { readonly kind: 'silent' }
  | { readonly kind: 'not-sent'; readonly reason: string; readonly isConnectionLost?: true }
  /** It must not leave; `end` says why. */
  | { readonly kind: 'withheld'; readonly end: Refusal }
  /** `call.stopped` says why. */
  | { readonly kind: 'stopped' }

export interface BridgeDeps extends ConversationDeps, WithheldDeps {
  readonly client: SrfClient
  readonly charging: Charging
  readonly deadlines: Deadlines
  /** Milliseconds UTC. */
  readonly now: () => number
  readonly nodeTimeoutMs: number
  /** Where Trying cannot be heard: the most that a node may take until it rings, if it answers OPTIONS. */
  readonly nodeProgressTimeoutMs: number
  readonly ringTimeoutMs: number
}

/** Below, a late answer is the node's own fault. */
const NOTICEABLE_LAG_MS = 50
/** However busy we are, a silent node is given up at last. */
const MAX_EXTRA_MS = 3_000

/** Given up for another node, or because the caller has gone. */
const givenUp: Headers = { Reason: reasonHeader({ by: 'system', cause: cause.normal }) }
/** One of several attempts that run at the same time. */
export interface Branch {
  /** This one is answered: the others are to be given up, now. */
  readonly onAnswered: () => void
  /** The callee wants no call, on whatever phone (6xx): neither do the others go on ringing. */
  readonly onDeclined: (status: number) => void
}

export class Bridge {
  readonly #deps: BridgeDeps
  readonly #call: Call
  readonly #caller: Caller
  readonly #announced: Announced
  readonly #destination: string
  readonly #startedAt: number
  #resolve: (result: AttemptResult) => void = () => undefined
  #isOver = false
  #isPhone = false
  #sent: SipRequest | undefined
  #mustCancel = false
  #deadline: Deadline | undefined
  #forgetStop: () => void = () => undefined
  #hasEarlyMedia = false
  /** The last description before the answer, and the tag of who gave it. */
  #early: { readonly tag: string; readonly sdp: string } | undefined
  readonly #branch: Branch | undefined
  #farewell = givenUp
  /** The last answer of any kind. */
  #status = 0
  #reason = ''

  constructor(
    deps: BridgeDeps,
    call: Call,
    caller: Caller,
    announced: Announced,
    destination: string,
    branch?: Branch,
  ) {
    this.#deps = deps
    this.#branch = branch
    this.#call = call
    this.#caller = caller
    this.#announced = announced
    this.#destination = destination
    this.#startedAt = deps.now()
  }

  /** What the record keeps of this attempt; to be asked after it has ended. */
  get record(): Attempt {
    return {
      destination: this.#destination,
      status: this.#status,
      reason: this.#reason,
      startedAt: this.#startedAt,
      endedAt: this.#deps.now(),
    }
  }

  run(candidate: Callee): Promise<AttemptResult> {
    const { deadlines, client, filter, nodeTimeoutMs } = this.#deps
    const { body } = this.#announced
    const isBranch = this.#branch !== undefined
    this.#isPhone = candidate.kind === 'phone'
    const { uri, nextHop, headers, credentials } = inviteFor(
      candidate,
      this.#announced,
      filter,
      isBranch,
    )
    const refusal = withheld(candidate, { uri, nextHop }, this.#announced, this.#deps)
    if (refusal) {
      this.#reason = refusal.why
      this.#isOver = true
      return Promise.resolve({ kind: 'withheld', end: refusal.end })
    }
    return new Promise((resolve) => {
      this.#resolve = resolve
      this.#forgetStop = this.#call.whenStopped((end) => {
        if (end.kind === 'cut') this.#farewell = { Reason: reasonHeader(end) }
        // RFC 3326: a phone counts a call as missed unless it hears that somebody else took it.
        else if (end.kind === 'cancelled' && end.reason) this.#farewell = { Reason: end.reason }
        this.#giveUp({ kind: 'stopped' }, end.kind)
      })
      this.#deadline = deadlines.at(this.#startedAt + nodeTimeoutMs, () =>
        this.#onSilence(candidate),
      )
      client.invite(
        { uri, nextHop, headers, body, credentials, near: this.#call.near },
        {
          onSent: (request) => this.#onSent(request),
          onProvisional: (response) => this.#onProvisional(response),
          onEnd: (end) => this.#onEnd(end),
        },
      )
    })
  }

  /** Ends an attempt that is not over yet; `why` is for the record, `farewell` for the phone. */
  abandon(why: string, farewell: Headers = givenUp): void {
    this.#farewell = farewell
    this.#giveUp({ kind: 'silent' }, why)
  }

  /** Where Trying cannot be heard, a node is asked whether it is there; others have to ring. */
  #onSilence(candidate: Callee): void {
    const { client, now, nodeTimeoutMs, nodeProgressTimeoutMs, ringTimeoutMs } = this.#deps
    // What it has said may wait to be read, while we are busy: silence counts only after that.
    const lagMs = client.lagMs()
    if (lagMs > NOTICEABLE_LAG_MS && now() < this.#startedAt + nodeTimeoutMs + MAX_EXTRA_MS) {
      this.#deadline = this.#deps.deadlines.at(now() + lagMs, () => this.#onSilence(candidate))
      return undefined
    }
    if (client.hearsTrying || this.#isLeftHere) return this.#silent()
    if (candidate.kind !== 'node') return this.#ringUntil(now() + ringTimeoutMs)
    this.#giveUpAt(now() + nodeTimeoutMs)
    client.sendOptions(candidate.uri, (answer) => {
      const isThere = 'status' in answer && answer.status < 500
      if (!isThere || this.#isOver || this.#status !== 0) return
      // It may be slow to ring; but one that takes OPTIONS and no calls must not hold the call up.
      this.#giveUpAt(Math.max(now(), this.#startedAt + nodeProgressTimeoutMs))
    })
  }

  #giveUpAt(timeMs: number): void {
    this.#deps.deadlines.cancel(this.#deadline)
    this.#deadline = this.#deps.deadlines.at(timeMs, () => this.#silent())
  }

  /** A server that has not even said that the INVITE left is away: the destination is not to blame. */
  #silent(): void {
    const away = { kind: 'not-sent', reason: 'silence', isConnectionLost: true } as const
    this.#giveUp(this.#isLeftHere ? away : { kind: 'silent' }, 'silence')
  }

  get #isLeftHere(): boolean {
    return !this.#sent && this.#deps.client.isElsewhere
  }

  #onSent(request: SipRequest): void {
    this.#sent = request
    this.#call.legs.push(request.headers['call-id'] ?? '')
    if (this.#mustCancel) this.#cancel()
  }

  #onProvisional(response: SipResponse): void {
    if (this.#isOver) return
    if (this.#status === 0) this.#ringUntil(this.#deps.now() + this.#deps.ringTimeoutMs)
    this.#noteAnswer(response)
    if (response.status <= 100) return
    this.#call.firstProgressAt ??= this.#deps.now()
    this.#call.peers.callee ??= peerAddress(response)
    if (this.#branch) return this.#ringing()
    if (response.body) this.#noteEarlyMedia(response)
    else if (response.status === 180 && this.#call.state === 'DIALING') this.#call.state = 'RINGING'
    this.#caller.progress(response, this.#passed(response.headers))
  }

  #noteEarlyMedia({ headers, body }: SipResponse): void {
    this.#hasEarlyMedia = true
    this.#call.state = 'EARLY'
    if (/^application\/sdp\b/i.test(headers['content-type'] ?? ''))
      this.#early = { tag: tagOf(headers['to']), sdp: body ?? '' }
  }

  /** The caller hears of it once: answers of several phones to one offer would contradict each other. */
  #ringing(): void {
    if (this.#call.state !== 'DIALING') return
    this.#call.state = 'RINGING'
    this.#caller.progress({ status: 180, reason: 'Ringing', body: undefined }, {})
  }

  #ringUntil(timeMs: number): void {
    this.#deps.deadlines.cancel(this.#deadline)
    this.#deadline = this.#deps.deadlines.at(timeMs, () => this.#call.stop({ kind: 'no-answer' }))
  }

  #onEnd(end: UacEnd): void {
    if (this.#isOver) return this.#takeBack(end)
    switch (end.kind) {
      case 'answered':
        return this.#answered(end.dialog.res, end.dialog, undefined)
      case 'offered':
        return this.#answered(end.offer.res, undefined, end.offer)
      case 'unusable':
        this.#noteAnswer(end.response)
        this.#deps.client.release(end.response)
        return this.#settle(rejected(502, 'Bad Gateway', {}, true))
      case 'rejected': {
        this.#noteAnswer(end.response)
        const { status, reason, headers } = end.response
        const passed = this.#passed(headers)
        if (status >= 600) this.#branch?.onDeclined(status)
        const result = rejected(status, reason, passed, this.#hasEarlyMedia)
        return this.#settle(status < 400 ? { ...result, redirect: headers } : result)
      }
      case 'not-sent':
        this.#reason = end.reason
        return this.#settle(end)
    }
  }

  /** An end that nobody waits for any more. */
  #takeBack(end: UacEnd): void {
    if (end.kind === 'answered') end.dialog.destroy({ headers: this.#farewell }, () => undefined)
    else if (end.kind === 'offered') void end.offer.destroy()
    else if (end.kind === 'unusable') this.#deps.client.release(end.response)
  }

  /** The called side has answered: so does the caller's leg. Exactly one of the last two is given. */
  #answered(
    response: SipResponse,
    callee: SrfDialog | undefined,
    offer: PendingOffer | undefined,
  ): void {
    this.#noteAnswer(response)
    this.#isOver = true
    this.#deps.deadlines.cancel(this.#deadline)
    this.#forgetStop()
    this.#branch?.onAnswered()
    this.#call.firstProgressAt ??= this.#deps.now()
    this.#call.peers.callee = peerAddress(response)
    const conversation = new Conversation(this.#call, this.#deps, () => void offer?.destroy())
    const sdp = this.#descriptionIn(response)
    if (callee) {
      const leg = conversation.join('callee', callee, true)
      if (leg.media === '') leg.media = sdp
    }
    const attempts = [...this.#call.attempts, this.record]
    void journalled(this.#call, attempts, this.#deps).then((isSafe) =>
      isSafe
        ? this.#acceptCaller(conversation, { response, sdp }, offer)
        : this.#resolve({ kind: 'stopped' }),
    )
  }

  /**
   * RFC 3262 §5: whoever has answered our offer reliably does not do so again in the 200. The caller
   * heard it unreliably, and must find it there (RFC 3261 §13.3.1).
   */
  #descriptionIn({ headers, body }: SipResponse): string {
    if (body) return body
    return this.#early?.tag === tagOf(headers['to']) ? this.#early.sdp : ''
  }

  #acceptCaller(
    conversation: Conversation,
    { response, sdp }: { readonly response: SipResponse; readonly sdp: string },
    offer: PendingOffer | undefined,
  ): void {
    const headers = this.#passed(response.headers)
    advertiseReplaces(headers)
    this.#caller.accept(this.#deps.client, sdp, headers, (taken) => {
      if (!taken) {
        this.#call.stop({ kind: 'cancelled' })
        return this.#resolve({ kind: 'stopped' })
      }
      this.#call.answeredAt = this.#deps.now()
      this.#call.state = 'ACTIVE'
      if ('leg' in taken) {
        const callee = conversation.participant('callee')
        if (callee) Conversation.connect(taken, callee)
      } else {
        const caller = conversation.join('caller', taken, !this.#caller.owesAck)
        if (this.#caller.keepsOrigin) caller.keepOrigin()
        if (offer)
          caller.whenAcknowledged((ack) => {
            caller.media = ack.body ?? ''
            this.#complete(conversation, offer, ack)
          })
      }
      return this.#resolve({ kind: 'answered', ended: conversation.ended })
    })
  }

  /** The caller's ACK answers the callee's offer. */
  #complete(conversation: Conversation, offer: PendingOffer, ack: SipRequest): void {
    offer.ack(ack.body ?? '').then(
      (dialog) => conversation.join('callee', dialog, true),
      () => {
        this.#deps.client.release(offer.res)
        this.#call.stop({ kind: 'cut', by: 'system', cause: cause.failure, code: null })
      },
    )
  }

  #giveUp(result: AttemptResult, why: string): void {
    if (this.#isOver) return
    if (this.#reason === '') this.#reason = why
    this.#mustCancel = true
    this.#cancel()
    this.#settle(result)
  }

  #cancel(): void {
    if (this.#sent) this.#deps.client.cancel(this.#sent, this.#farewell)
  }

  #settle(result: AttemptResult): void {
    this.#isOver = true
    this.#deps.deadlines.cancel(this.#deadline)
    this.#forgetStop()
    this.#resolve(result)
  }

  #passed(headers: Headers): Headers {
    const passed = this.#deps.filter.inviteAnswer(headers)
    return this.#isPhone ? withoutClaims(passed) : passed
  }

  #noteAnswer({ status, reason }: SipResponse): void {
    this.#status = status
    this.#reason = reason
  }
}

function rejected(
  status: number,
  reason: string,
  headers: Headers,
  isFinal: boolean,
): AttemptResult & { readonly kind: 'rejected' } {
  return { kind: 'rejected', status, reason, headers, isFinal }
}
