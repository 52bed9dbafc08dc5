/**
 * One request that is forwarded, from its first destination to the answer that goes back: the
 * response context of RFC 3261 §16.2, with serial or parallel forking.
 */
import type { CoreParts } from '../parts.ts'
import type { ClientTransaction } from '../transactions.ts'
import { elsewhere, isSips, ownUri } from '../hop-finder.ts'
import {
  forwardedRequest,
  forwardedResponse,
  keyOf,
  redirections,
  type ForwardTarget,
} from './forwarded-text.ts'
import type { OwnRoutes } from './own-routes.ts'
import { viaOf } from '../request-writer.ts'
import type { TimedCall } from '../call-times.ts'
import type { InboundRequest } from '../uas/inbound-request.ts'
import type { Responder } from '../uas/responder.ts'
import type { Flow } from '../../flow.ts'
import { tagOf } from '../../../../schema/sip/fields.ts'
import type { SipMessage } from '../../../../schema/sip/message.ts'
import type { RecordRouteTokens } from '../../options.ts'
import { InviteClientTransaction } from '../../transaction/client.ts'
import type { Deadline } from '../../transaction/deadlines.ts'
import {
  type ClientFailure,
  type ClientUser,
  type SentRequest,
  transactionTimeoutMs,
} from '../../transaction/machine.ts'

export interface ForwardOptions {
  /** Max-Forwards of the forwarded request. */
  readonly maxForwards: number
  /** Later requests of the dialog come this way too. */
  readonly staysInDialog: boolean
  /** The same, by routes with these tokens in place of sealed ones. */
  readonly recordRoute?: RecordRouteTokens | undefined
  /** Headers of the application. */
  readonly added: readonly (readonly [string, string])[]
  readonly isParallel: boolean
  /** 3xx Contacts become further targets (§16.7 step 4). */
  readonly followsRedirects: boolean
  readonly timeouts: BranchTimeouts
  /** A final response came from a destination. */
  readonly onFinal?: (text: string, flow: Flow, now: number) => void
  /** The caller has its final response. */
  readonly onDone?: () => void
}

export interface ForwardParts extends CoreParts {
  readonly responder: Responder
  readonly ownRoutes: OwnRoutes
}

/** The present branch of a target, and its other flows, should it fail. */
interface Attempt {
  readonly target: ForwardTarget
  readonly flow: Flow
  readonly others: readonly Flow[]
}

export class ResponseContext {
  readonly #parts: ForwardParts
  readonly #inbound: InboundRequest
  readonly #options: ForwardOptions
  #waiting: ForwardTarget[]
  /** All targets, tried or waiting: a redirection cannot go in circles. */
  readonly #known: Set<string>
  readonly #active = new Map<ProxyBranch, Attempt>()
  /** Targets that are being looked up. */
  #lookups = 0
  readonly #ends: BranchEnd[] = []
  #wasCancelled = false
  #isAnswered = false

  constructor(
    parts: ForwardParts,
    inbound: InboundRequest,
    targets: readonly ForwardTarget[],
    options: ForwardOptions,
  ) {
    this.#parts = parts
    this.#inbound = inbound
    this.#options = options
    this.#waiting = [...targets]
    this.#known = new Set(targets.map(keyOf))
  }

  start(now: number): void {
    this.#inbound.handOver(this, now)
    this.#next(now)
  }

  /** §16.10: the caller does not wait any more. The destinations' 487 goes back to it. */
  cancel(now: number): void {
    if (this.#isAnswered) return
    this.#wasCancelled = true
    this.#giveUpOthers(now)
    this.#next(now)
  }

  /**
   * Any response but 100; after a final one only copies of a 2xx, and 2xx of branches further on.
   */
  onBranchResponse(branch: ProxyBranch, response: SipMessage, flow: Flow, now: number): void {
    const { status } = response
    if (status < 200) {
      if (!this.#isAnswered) this.#forward(response, '', now)
      return
    }
    const attempt = this.#active.get(branch)
    this.#active.delete(branch)
    const isNews = !this.#isAnswered && (attempt !== undefined || status < 300)
    if (isNews) this.#options.onFinal?.(response.text, flow, now)
    if (status < 300) return this.#accepted(response, now)
    if (attempt === undefined || this.#isAnswered) return
    // RFC 3263 §4.3: another server of the same name may do it.
    const { target, others } = attempt
    if (status === 503 && this.#tryAny(elsewhere(others, attempt.flow), target, now)) return
    this.#refused(response)
    if (status >= 600) this.#giveUpOthers(now)
    // A challenge is for the caller: another destination could not use its answer.
    if (status === 401 || status === 407) this.#waiting = []
    this.#next(now)
  }

  /**
   * Called once for a branch that ends without a final answer: 408 after silence, 503 when it
   * cannot be sent.
   */
  onBranchFailure(branch: ProxyBranch, status: 408 | 503, now: number): void {
    const attempt = this.#active.get(branch)
    this.#active.delete(branch)
    if (this.#isAnswered || attempt === undefined) return
    const { target, flow, others } = attempt
    if (flow.connectMs !== undefined) this.#parts.hops.failed(flow, undefined, now)
    // A target that is silent by one transport is tried by no other.
    const flows = status === 408 ? elsewhere(others, flow) : others
    if (this.#tryAny(flows, target, now)) return
    this.#ends.push({ status, message: undefined })
    this.#next(now)
  }

  /**
   * §16.7 step 5: every 2xx to an INVITE goes back at once, copies and those of other branches too.
   */
  #accepted(response: SipMessage, now: number): void {
    const isFirst = !this.#isAnswered
    this.#isAnswered = true
    if (isFirst || this.#inbound.request.method === 'INVITE') this.#forward(response, '', now)
    if (!isFirst) return
    this.#giveUpOthers(now)
    this.#options.onDone?.()
  }

  #refused(response: SipMessage): void {
    const { status } = response
    const isRedirection = status >= 300 && status < 400
    const mayFollow = isRedirection && this.#options.followsRedirects && !this.#wasCancelled
    const further = mayFollow ? redirections(response, this.#known) : []
    if (further.length === 0) this.#ends.push({ status, message: response })
    else this.#waiting.push(...further)
  }

  /**
   * More destinations, or, when there are none and no branch is left to wait for, the best answer.
   */
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

  #lookUp(target: ForwardTarget, now: number): void {
    let isNow = true
    this.#lookups += 1
    const onFlows = (flows: readonly Flow[], at: number): void => {
      this.#lookups -= 1
      const mayStart = !this.#isAnswered && !this.#wasCancelled
      if (!mayStart || !this.#tryAny(flows, target, at))
        this.#ends.push({ status: 503, message: undefined })
      if (!isNow) this.#next(at)
    }
    this.#parts.hops.find(target, now, onFlows)
    isNow = false
  }

  /** False: there is none, or the caller has given up. */
  #tryAny(flows: readonly Flow[], target: ForwardTarget, now: number): boolean {
    const [flow, ...others] = flows
    if (flow === undefined || this.#wasCancelled) return false
    const sent = this.#compose(target, flow)
    // §18.1.1: what is too large for a datagram goes by TCP, if the destination has it.
    const [first = flow] = this.#parts.hops.tcpFirst(target.hop, sent.text, [flow], now)
    if (first === flow) this.#begin({ target, flow, others }, sent, now)
    else this.#begin({ target, flow: first, others: flows }, this.#compose(target, first), now)
    return true
  }

  #begin(attempt: Attempt, sent: SentRequest, now: number): void {
    const { timeouts } = this.#options
    const branch = new ProxyBranch(this.#parts, sent, attempt.flow, this, timeouts)
    this.#active.set(branch, attempt)
    branch.start(now)
  }

  /** The request as it goes to one destination (§16.6). */
  #compose(target: ForwardTarget, flow: Flow): SentRequest {
    const { request, echo } = this.#inbound
    const { maxForwards, staysInDialog, recordRoute, added } = this.#options
    const branch = this.#parts.ids.branch()
    return forwardedRequest(request, {
      uri: target.uri,
      routes: target.routes,
      via: viaOf(flow.listener, branch),
      branch,
      vias: echo.vias,
      maxForwards,
      added,
      ownRoutes: recordRoute
        ? this.#tokenRoutes(recordRoute, target, flow)
        : staysInDialog
          ? this.#ownRoutes(target, flow)
          : [],
    })
  }

  /** RFC 5658: always two, so that each says where the requests go that show it first. */
  #tokenRoutes(tokens: RecordRouteTokens, target: ForwardTarget, to: Flow): readonly string[] {
    const isSecure = isSips(target.uri)
    const entryOf = ({ listener }: Flow, token: string): string =>
      `<${ownUri(listener, token, isSecure)};lr>`
    const from = this.#inbound.transaction.flow
    return [entryOf(to, tokens.toCaller), entryOf(from, tokens.toCallee)]
  }

  /** RFC 5658: one entry for each side, where they differ; the nearest to the destination first. */
  #ownRoutes(target: ForwardTarget, to: Flow): readonly string[] {
    const { transaction, request } = this.#inbound
    const isSecure = isSips(target.routes[0] ?? target.uri)
    const entryOf = ({ listener, connectionId }: Flow): string =>
      this.#parts.ownRoutes.entry(listener, request.callId, connectionId, isSecure)
    const near = entryOf(to)
    const far = entryOf(transaction.flow)
    return near === far ? [near] : [near, far]
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
    this.#options.onDone?.()
  }

  #answer(status: number, now: number): void {
    const { responder } = this.#parts
    const inbound = this.#inbound
    if (this.#wasCancelled) responder.answer(inbound, 487, 'Request Terminated', '', now)
    else if (status !== 408) responder.answer(inbound, 500, 'Server Internal Error', '', now)
    else if (inbound.request.method === 'INVITE')
      responder.answer(inbound, 408, 'Request Timeout', '', now)
    // RFC 4320 §4.2: the sender has given up by now, a 408 would only disturb.
    else inbound.abandon(now)
  }

  #forward(response: SipMessage, lines: string, now: number): void {
    const text = forwardedResponse(response, lines)
    if (text === undefined) return
    const { transactions, callTimes, events } = this.#parts
    const { transaction, request } = this.#inbound
    const isOver = transaction.state !== 'proceeding' && transaction.state !== 'trying'
    // RFC 6026 §7.1: the transaction has sent its final response; further 2xx are sent without it.
    if (isOver) return transactions.send(text, transaction.flow, '')
    transaction.respond(response.status, text, now)
    const isCall = request.method === 'INVITE' && request.toTag === ''
    if (isCall) callTimes.inbound.responded(this.#inbound, response.status, now)
    if (response.status < 200) return
    this.#inbound.answered(response.status, now)
    if (isCall && !this.#wasCancelled)
      events.forwardedCallAnswered(response.status, response.text, text, now)
  }
}

/** The end of one branch. Without a message it was made here: silence, or no way to send. */
interface BranchEnd {
  readonly status: number
  readonly message: SipMessage | undefined
}

/** Refusals that show the caller how to try again come before others of their class. */
const helpful = new Set([401, 407, 415, 420, 484])

function rank({ status, message }: BranchEnd): number {
  if (status >= 600) return 0
  if (helpful.has(status)) return 1
  if (status >= 400 && status < 500) return message === undefined ? 4 : 2
  return status >= 500 ? 3 : 2
}

/** The best of them; undefined when there is none. Among equals the first to come. */
function bestOf(ends: readonly BranchEnd[]): BranchEnd | undefined {
  let best: BranchEnd | undefined
  for (const end of ends) if (best === undefined || rank(end) < rank(best)) best = end
  return best
}

/** Step 7: a caller that is challenged learns of the challenges of all branches. */
function challengesOfOthers(best: BranchEnd, ends: readonly BranchEnd[]): string {
  if (best.status !== 401 && best.status !== 407) return ''
  let lines = ''
  for (const { status, message } of ends) {
    if (message === undefined || message === best.message) continue
    if (status !== 401 && status !== 407) continue
    for (const name of ['WWW-Authenticate', 'Proxy-Authenticate'])
      for (const value of message.all(name)) lines += `${name}: ${value}\r\n`
  }
  return lines
}

/** A forwarded request on its way to one destination: RFC 3261 §16.6 steps 10 and 11, §16.8. */
type Timer = 'timerC' | 'cancelTimeout' | 'provisionalTimeout' | 'finalTimeout'

interface BranchTimeouts {
  /** Milliseconds until a first answer of any kind; undefined: as long as the transaction lives. */
  readonly provisionalMs: number | undefined
  /** Milliseconds until the final answer; undefined: timer C. */
  readonly finalMs: number | undefined
}

class ProxyBranch implements ClientUser, TimedCall {
  startedAt = 0
  hasRung = false
  readonly #sent: SentRequest
  readonly #parts: CoreParts
  readonly #context: ResponseContext
  readonly #timeouts: BranchTimeouts
  readonly #flow: Flow
  #transaction: ClientTransaction | undefined
  #isOver = false
  #wasCancelled = false
  #holdsCancel = false
  #timers: Partial<Record<Timer, Deadline<Timer>>> = {}

  constructor(
    parts: CoreParts,
    sent: SentRequest,
    flow: Flow,
    context: ResponseContext,
    timeouts: BranchTimeouts,
  ) {
    this.#parts = parts
    this.#sent = sent
    this.#flow = flow
    this.#context = context
    this.#timeouts = timeouts
  }

  start(now: number): void {
    const { transactions } = this.#parts
    this.startedAt = now
    this.#transaction = transactions.startClient(this.#sent, this.#flow, this, now)
    const { provisionalMs, finalMs } = this.#timeouts
    if (provisionalMs !== undefined) this.#watch('provisionalTimeout', provisionalMs, now)
    if (finalMs !== undefined) this.#watch('finalTimeout', finalMs, now)
  }

  /** Its answer is not waited for any more. Only an INVITE can be cancelled (§9.1). */
  cancel(now: number): void {
    if (this.#isOver || this.#wasCancelled || this.#sent.method !== 'INVITE') return
    this.#wasCancelled = true
    const transaction = this.#transaction
    if (!(transaction instanceof InviteClientTransaction)) return
    if (transaction.state === 'proceeding') return this.#sendCancel(now)
    this.#holdsCancel = true
    transaction.stopRetransmitting()
  }

  onResponse(response: SipMessage, flow: Flow, now: number): void {
    const { status } = response
    if (!this.#isOver && this.#isCall) this.#parts.callTimes.outbound.responded(this, status, now)
    if (status < 200) {
      if (this.#sent.method === 'INVITE') this.#ringing(now)
      this.#timers.provisionalTimeout?.cancel()
      if (status > 100) this.#context.onBranchResponse(this, response, flow, now)
      return
    }
    this.#isOver = true
    this.#stopTimers()
    this.#context.onBranchResponse(this, response, flow, now)
  }

  onFailure(failure: ClientFailure, now: number): void {
    this.#fail(failure === 'timeout' ? 408 : 503, now)
  }

  onTerminated(): void {
    this.#stopTimers()
    this.#parts.transactions.endClient(this.#sent.branch)
  }

  onTimer(timer: Timer, now: number): void {
    if (timer === 'timerC') return this.cancel(now)
    if (timer === 'cancelTimeout') {
      // §9.1: without a final response 64·T1 after the CANCEL the INVITE counts as cancelled.
      this.#parts.transactions.endClient(this.#sent.branch)
      return this.#fail(408, now)
    }
    // A destination that is silent for its time is given up; later answers have no effect.
    this.cancel(now)
    this.#fail(408, now)
  }

  /**
   * §16.7 step 2: an INVITE that rings for ever is cancelled, counted from its last provisional.
   */
  #ringing(now: number): void {
    if (!this.#isOver) {
      this.#timers.timerC?.cancel()
      this.#watch('timerC', this.#parts.transactions.timers.cMs, now)
    }
    if (!this.#holdsCancel) return
    this.#holdsCancel = false
    this.#sendCancel(now)
  }

  #sendCancel(now: number): void {
    const { transactions } = this.#parts
    transactions.cancel(this.#sent, this.#flow, '', now)
    this.#watch('cancelTimeout', transactionTimeoutMs(transactions.timers), now)
  }

  /** An INVITE outside dialogs. */
  get #isCall(): boolean {
    return this.#sent.method === 'INVITE' && tagOf(this.#sent.to) === ''
  }

  #fail(status: 408 | 503, now: number): void {
    if (this.#isOver) return
    this.#isOver = true
    for (const name of waits) this.#timers[name]?.cancel()
    this.#context.onBranchFailure(this, status, now)
  }

  #watch(name: Timer, delayMs: number, now: number): void {
    this.#timers[name] = this.#parts.transactions.deadlines.start(this, name, delayMs, now)
  }

  #stopTimers(): void {
    for (const timer of Object.values(this.#timers)) timer.cancel()
    this.#timers = {}
  }
}

/** Timers that end when the branch is given up; that of its CANCEL goes on. */
const waits = ['timerC', 'provisionalTimeout', 'finalTimeout'] as const
