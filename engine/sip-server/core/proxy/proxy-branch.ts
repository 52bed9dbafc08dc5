/** A forwarded request on its way to one destination: RFC 3261 §16.6 steps 10 and 11, §16.8. */
import type { Flow } from '../../flow.ts'
import type { SipMessage } from '../../message/message.ts'
import type { ClientFailure, ClientUser } from '../../transaction/context.ts'
import type { Deadline } from '../../transaction/deadlines.ts'
import { InviteClientTransaction } from '../../transaction/invite-client.ts'
import type { SentRequest } from '../../transaction/sent-request.ts'
import { transactionTimeoutMs } from '../../transaction/timers.ts'
import { tagOf } from '../app-headers.ts'
import type { CallTimes, TimedCall } from '../call-times.ts'
import type { ClientTransaction, Transactions } from '../transactions.ts'

type Timer = 'timerC' | 'cancelTimeout' | 'provisionalTimeout' | 'finalTimeout'

/** Forwards a request: every branch tells it what came of it. */
export interface BranchUser {
  /** Any response but 100; after a final one only copies of a 2xx, and 2xx of branches further on. */
  onBranchResponse(branch: ProxyBranch, response: SipMessage, flow: Flow, now: number): void
  /** It ended without a final answer, exactly once: silence is a 408, no way to send a 503. */
  onBranchFailure(branch: ProxyBranch, status: 408 | 503, now: number): void
}

export interface Patience {
  /** Milliseconds until a first answer of any kind; undefined: as long as the transaction lives. */
  readonly provisionalMs: number | undefined
  /** Milliseconds until the final answer; undefined: timer C. */
  readonly finalMs: number | undefined
}

export interface BranchPorts {
  readonly transactions: Transactions
  /** Of calls that go out. */
  readonly callTimesOut: CallTimes
}

export class ProxyBranch implements ClientUser, TimedCall {
  startedAt = 0
  hasRung = false
  readonly #sent: SentRequest
  readonly #ports: BranchPorts
  readonly #user: BranchUser
  readonly #patience: Patience
  readonly #flow: Flow
  #transaction: ClientTransaction | undefined
  #isOver = false
  #wasCancelled = false
  #holdsCancel = false
  #timers: Partial<Record<Timer, Deadline<Timer>>> = {}

  constructor(
    ports: BranchPorts,
    sent: SentRequest,
    flow: Flow,
    user: BranchUser,
    patience: Patience,
  ) {
    this.#ports = ports
    this.#sent = sent
    this.#flow = flow
    this.#user = user
    this.#patience = patience
  }

  start(now: number): void {
    const { transactions } = this.#ports
    this.startedAt = now
    this.#transaction = transactions.startClient(this.#sent, this.#flow, this, now)
    const { provisionalMs, finalMs } = this.#patience
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
    if (!this.#isOver && this.#isCall) this.#ports.callTimesOut.responded(this, status, now)
    if (status < 200) {
      if (this.#sent.method === 'INVITE') this.#ringing(now)
      this.#timers.provisionalTimeout?.cancel()
      if (status > 100) this.#user.onBranchResponse(this, response, flow, now)
      return
    }
    this.#isOver = true
    this.#stopTimers()
    this.#user.onBranchResponse(this, response, flow, now)
  }

  onFailure(failure: ClientFailure, now: number): void {
    this.#fail(failure === 'timeout' ? 408 : 503, now)
  }

  onTerminated(): void {
    this.#stopTimers()
    this.#ports.transactions.endClient(this.#sent.branch)
  }

  onTimer(timer: Timer, now: number): void {
    if (timer === 'timerC') return this.cancel(now)
    if (timer === 'cancelTimeout') {
      // §9.1: without a final response 64·T1 after the CANCEL the INVITE counts as cancelled.
      this.#ports.transactions.endClient(this.#sent.branch)
      return this.#fail(408, now)
    }
    // A destination that says nothing in its time is given up: what it says later is not waited for.
    this.cancel(now)
    this.#fail(408, now)
  }

  /** §16.7 step 2: an INVITE that rings for ever is cancelled, counted from its last provisional. */
  #ringing(now: number): void {
    if (!this.#isOver) {
      this.#timers.timerC?.cancel()
      this.#watch('timerC', this.#ports.transactions.timers.cMs, now)
    }
    if (!this.#holdsCancel) return
    this.#holdsCancel = false
    this.#sendCancel(now)
  }

  #sendCancel(now: number): void {
    const { transactions } = this.#ports
    transactions.cancel(this.#sent, this.#flow, '', now)
    this.#watch('cancelTimeout', transactionTimeoutMs(transactions.timers), now)
  }

  /** It begins a call: it changes none. */
  get #isCall(): boolean {
    return this.#sent.method === 'INVITE' && tagOf(this.#sent.to) === ''
  }

  #fail(status: 408 | 503, now: number): void {
    if (this.#isOver) return
    this.#isOver = true
    for (const name of waits) this.#timers[name]?.cancel()
    this.#user.onBranchFailure(this, status, now)
  }

  #watch(name: Timer, delayMs: number, now: number): void {
    this.#timers[name] = this.#ports.transactions.deadlines.start(this, name, delayMs, now)
  }

  #stopTimers(): void {
    for (const timer of Object.values(this.#timers)) timer.cancel()
    this.#timers = {}
  }
}

/** Those that end when the branch is given up; the CANCEL of a branch outlives it. */
const waits = ['timerC', 'provisionalTimeout', 'finalTimeout'] as const
