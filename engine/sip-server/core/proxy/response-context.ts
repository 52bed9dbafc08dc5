/**
 * One request that is forwarded, from its first destination to the answer that goes back: the
 * response context of RFC 3261 §16.2, with serial or parallel forking.
 */
import type { Flow } from '../../flow.ts'
import type { SipMessage } from '../../message/message.ts'
import type { SentRequest } from '../../transaction/sent-request.ts'
import type { InboundRequest } from '../uas/inbound-request.ts'
import { answer } from '../uas/send-response.ts'
import { tellForwarded } from '../applications/call-details.ts'
import type { Stack } from '../stack.ts'
import { bestOf, challengesOfOthers, type BranchEnd } from './best-response.ts'
import { Branch, type BranchUser, type Patience } from './branch.ts'
import { forwardedResponse } from './forwarded-text.ts'
import { redirections } from './redirections.ts'
import { composeForward, keyOf, type Forwarding, type Target } from './target.ts'
import { avoidUntil, byTcp, isSamePlace, wantsTcp } from '../uac/ways.ts'
import { findWays } from './ways.ts'

export interface ForwardOptions extends Forwarding {
  readonly isParallel: boolean
  /** 3xx Contacts become further targets (§16.7 step 4). */
  readonly followsRedirects: boolean
  readonly patience: Patience
  readonly report?: Report
}

/** Who wants to know how it goes. */
export interface Report {
  /** A final response came from a destination. */
  readonly final: (text: string, flow: Flow, now: number) => void
  /** The caller has its final response. */
  readonly done: () => void
}

/** The present branch of a target, and what else can be done when it fails. */
interface Attempt {
  readonly target: Target
  readonly way: Flow
  readonly otherWays: readonly Flow[]
}

/** A place that has said no would say it by another transport, too. */
const waysElsewhere = ({ way, otherWays }: Attempt): readonly Flow[] =>
  otherWays.filter((other) => !isSamePlace(other, way))

export class ResponseContext implements BranchUser {
  readonly #stack: Stack
  readonly #inbound: InboundRequest
  readonly #options: ForwardOptions
  #waiting: Target[]
  /** Everything that was tried or is to be tried: a redirection cannot go in circles. */
  readonly #known: Set<string>
  readonly #active = new Map<Branch, Attempt>()
  /** Targets that are being looked up. */
  #lookups = 0
  readonly #ends: BranchEnd[] = []
  #wasCancelled = false
  #isAnswered = false

  constructor(
    stack: Stack,
    inbound: InboundRequest,
    targets: readonly Target[],
    options: ForwardOptions,
  ) {
    this.#stack = stack
    this.#inbound = inbound
    this.#options = options
    this.#waiting = [...targets]
    this.#known = new Set(targets.map(keyOf))
  }

  start(now: number): void {
    this.#stack.forwarding.add(this)
    this.#inbound.handOver(this)
    this.#next(now)
  }

  /** §16.10: the caller does not wait any more. The destinations' 487 goes back to it. */
  cancel(now: number): void {
    if (this.#isAnswered) return
    this.#wasCancelled = true
    this.#giveUpOthers(now)
    this.#next(now)
  }

  onBranchResponse(branch: Branch, response: SipMessage, flow: Flow, now: number): void {
    const { status } = response
    if (status < 200) {
      if (!this.#isAnswered) this.#forward(response, '', now)
      return
    }
    const attempt = this.#active.get(branch)
    this.#active.delete(branch)
    const isNews = !this.#isAnswered && (attempt !== undefined || status < 300)
    if (isNews) this.#options.report?.final(response.text, flow, now)
    if (status < 300) return this.#accepted(response, now)
    if (attempt === undefined || this.#isAnswered) return
    // RFC 3263 §4.3: another server of the same name may do it.
    if (status === 503 && this.#tryAny(waysElsewhere(attempt), attempt.target, now)) return
    this.#refused(response)
    if (status >= 600) this.#giveUpOthers(now)
    // A challenge is for the caller: another destination could not use its answer.
    if (status === 401 || status === 407) this.#waiting = []
    this.#next(now)
  }

  onBranchFailure(branch: Branch, status: 408 | 503, now: number): void {
    const attempt = this.#active.get(branch)
    this.#active.delete(branch)
    if (this.#isAnswered || attempt === undefined) return
    const { target, way, otherWays } = attempt
    if (way.connectMs !== undefined) this.#stack.avoided.avoid(way, avoidUntil(way, undefined, now))
    // Who was silent would be so by another transport, too.
    const ways = status === 408 ? waysElsewhere(attempt) : otherWays
    if (this.#tryAny(ways, target, now)) return
    this.#ends.push({ status, message: undefined })
    this.#next(now)
  }

  /** §16.7 step 5: every 2xx to an INVITE goes back at once, copies and those of other forks too. */
  #accepted(response: SipMessage, now: number): void {
    const isFirst = !this.#isAnswered
    this.#isAnswered = true
    if (isFirst || this.#inbound.request.method === 'INVITE') this.#forward(response, '', now)
    if (!isFirst) return
    this.#giveUpOthers(now)
    this.#close()
  }

  #refused(response: SipMessage): void {
    const { status } = response
    const isRedirection = status >= 300 && status < 400
    const mayFollow = isRedirection && this.#options.followsRedirects && !this.#wasCancelled
    const further = mayFollow ? redirections(response, this.#known) : []
    if (further.length === 0) this.#ends.push({ status, message: response })
    else this.#waiting.push(...further)
  }

  /** More destinations, or, when there are none and nobody is left to wait for, the best answer. */
  #next(now: number): void {
    while (this.#waiting.length > 0 && (this.#options.isParallel || this.#isIdle)) {
      const target = this.#waiting.shift()
      if (target !== undefined) this.#lookUp(target, now)
    }
    if (this.#waiting.length === 0 && this.#isIdle) this.#finish(now)
  }

  get #isIdle(): boolean {
    return this.#active.size === 0 && this.#lookups === 0
  }

  #lookUp(target: Target, now: number): void {
    let isNow = true
    this.#lookups += 1
    findWays(this.#stack, target, now, (ways, at) => {
      this.#lookups -= 1
      const mayStart = !this.#isAnswered && !this.#wasCancelled
      if (!mayStart || !this.#tryAny(ways, target, at))
        this.#ends.push({ status: 503, message: undefined })
      if (!isNow) this.#next(at)
    })
    isNow = false
  }

  /** False: there is none, or nobody wants it any more. */
  #tryAny(ways: readonly Flow[], target: Target, now: number): boolean {
    const [way, ...otherWays] = ways
    if (way === undefined || this.#wasCancelled) return false
    const sent = composeForward(this.#stack, this.#inbound, target, way, this.#options)
    // §18.1.1: what is too large for a datagram goes by TCP, if the destination has it.
    const [tcp] = wantsTcp(target.hop, sent.text) ? byTcp(this.#stack, way, now) : []
    if (tcp) this.#begin({ target, way: tcp, otherWays: ways }, undefined, now)
    else this.#begin({ target, way, otherWays }, sent, now)
    return true
  }

  #begin(attempt: Attempt, composed: SentRequest | undefined, now: number): void {
    const { target, way } = attempt
    const sent = composed ?? composeForward(this.#stack, this.#inbound, target, way, this.#options)
    const branch = new Branch(this.#stack, sent, way, this, this.#options.patience)
    this.#active.set(branch, attempt)
    branch.start(now)
  }

  #giveUpOthers(now: number): void {
    this.#waiting = []
    for (const branch of [...this.#active.keys()]) branch.cancel(now)
  }

  /** §16.7 step 6: the best of the refusals. */
  #finish(now: number): void {
    if (this.#isAnswered) return
    this.#isAnswered = true
    const best = bestOf(this.#ends)
    // Step 6: that one destination cannot serve says nothing about this server, so 503 becomes 500.
    if (best?.message === undefined || best.status === 503) this.#answer(best?.status ?? 408, now)
    else this.#forward(best.message, challengesOfOthers(best, this.#ends), now)
    this.#close()
  }

  #answer(status: number, now: number): void {
    const stack = this.#stack
    const inbound = this.#inbound
    if (this.#wasCancelled) answer(stack, inbound, 487, 'Request Terminated', '', now)
    else if (status !== 408) answer(stack, inbound, 500, 'Server Internal Error', '', now)
    else if (inbound.request.method === 'INVITE')
      answer(stack, inbound, 408, 'Request Timeout', '', now)
    // RFC 4320 §4.2: the sender has given up by now, a 408 would only disturb.
    else inbound.abandon(now)
  }

  #forward(response: SipMessage, lines: string, now: number): void {
    const text = forwardedResponse(response, lines)
    if (text === undefined) return
    const { transaction, request } = this.#inbound
    const { method, toTag } = request
    const isOver = transaction.state !== 'proceeding' && transaction.state !== 'trying'
    // RFC 6026 §7.1: the transaction sends its final response; further 2xx pass beside it.
    if (isOver) return this.#stack.send(text, transaction.flow, '')
    transaction.respond(response.status, text, now)
    const isCall = method === 'INVITE' && toTag === ''
    if (isCall) this.#stack.callTimes.inbound.responded(this.#inbound, response.status, now)
    if (response.status < 200) return
    this.#inbound.finished()
    if (response.status >= 300) this.#inbound.refused()
    if (isCall && !this.#wasCancelled)
      tellForwarded(this.#stack, response.status, response.text, text, now)
  }

  #close(): void {
    this.#stack.forwarding.delete(this)
    this.#options.report?.done()
  }
}
