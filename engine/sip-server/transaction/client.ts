/**
 * INVITE client transaction: RFC 3261 §17.1.1 with the Accepted state of RFC 6026 §7.2, in which
 * every copy of a 2xx, also of another branch, still reaches the user, which acknowledges it, or
 * ends the transaction and answers copies by itself. In place of its state Completed the context
 * has the ACK until timer D would fire.
 */
import { type Flow, isReliable } from '../flow.ts'
import type { SipMessage } from '../../../schema/sip/message.ts'
import type { Deadline } from './deadlines.ts'
import {
  ackOfFailure,
  type ClientUser,
  type SentRequest,
  type TransactionTable,
  Transaction,
  type TransactionContext,
  transactionTimeoutMs,
} from './machine.ts'

type State = 'calling' | 'proceeding' | 'accepted' | 'terminated'
type Timer = 'timerA' | 'timerB' | 'timerM'
type Event = Timer | 'receive1xx' | 'receive2xx' | 'receive3xx-6xx' | 'transportError'
type Action =
  | 'resend'
  | 'backOffA'
  | 'stopAB'
  | 'startM'
  | 'sendAck'
  | 'forgetRequest'
  | 'passUp'
  | 'reportTimeout'
  | 'reportTransportError'

export const inviteClient: TransactionTable<State, Event, Action> = {
  calling: {
    timerA: { to: 'calling', do: ['resend', 'backOffA'] },
    timerB: { to: 'terminated', do: ['stopAB', 'reportTimeout'] },
    transportError: { to: 'terminated', do: ['stopAB', 'reportTransportError'] },
    receive1xx: { to: 'proceeding', do: ['stopAB', 'passUp'] },
    receive2xx: { to: 'accepted', do: ['stopAB', 'startM', 'forgetRequest', 'passUp'] },
    'receive3xx-6xx': { to: 'terminated', do: ['stopAB', 'sendAck', 'passUp'] },
  },
  proceeding: {
    receive1xx: { to: 'proceeding', do: ['passUp'] },
    receive2xx: { to: 'accepted', do: ['startM', 'forgetRequest', 'passUp'] },
    'receive3xx-6xx': { to: 'terminated', do: ['sendAck', 'passUp'] },
  },
  accepted: {
    receive2xx: { to: 'accepted', do: ['passUp'] },
    timerM: { to: 'terminated', do: [] },
  },
  terminated: {},
}

export class InviteClientTransaction extends Transaction<State, Event, Action, ClientUser> {
  readonly method = 'INVITE'
  readonly #branch: string
  #intervalA: number
  /** Until the final response. */
  #request: SentRequest | undefined
  #timerA: Deadline<Timer> | undefined
  #timerB: Deadline<Timer> | undefined
  #timerM: Deadline<Timer> | undefined
  #response: SipMessage | undefined
  #from: Flow

  constructor(
    request: SentRequest,
    flow: Flow,
    user: ClientUser,
    context: TransactionContext,
    now: number,
  ) {
    super(inviteClient, 'calling', flow, user, context)
    this.#request = request
    this.#branch = request.branch
    this.#from = flow
    this.#intervalA = context.timers.t1Ms
    context.send(request.text, flow, request.branch)
    if (!isReliable(flow.listener.protocol))
      this.#timerA = context.deadlines.start(this, 'timerA', this.#intervalA, now)
    this.#timerB = this.#start('timerB', now)
  }

  receive(response: SipMessage, flow: Flow, now: number): void {
    this.#response = response
    this.#from = flow
    const { status } = response
    this.step(status < 200 ? 'receive1xx' : status < 300 ? 'receive2xx' : 'receive3xx-6xx', now)
    this.#response = undefined
    this.#from = this.flow
  }

  transportFailed(now: number): void {
    this.step('transportError', now)
  }

  /** Another user gets its responses from now on; a lost copy is not repeated any more. */
  handOver(user: ClientUser): void {
    this.user = user
    this.stopRetransmitting()
  }

  /** The user no longer wants an answer: a copy that was lost need not be repeated. */
  stopRetransmitting(): void {
    this.#timerA?.cancel()
  }

  /** Its 2xx is acknowledged. The user answers copies of it, and late answers of other branches. */
  leaveAccepted(): void {
    this.#timerM?.cancel()
    this.enter('terminated')
  }

  onTimer(timer: Timer, now: number): void {
    this.step(timer, now)
  }

  protected perform(action: Action, now: number): void {
    switch (action) {
      case 'resend':
        if (this.#request) this.context.repeat(this.#request.text, this.flow, this.#branch)
        return
      case 'backOffA':
        this.#intervalA *= 2
        this.#timerA = this.context.deadlines.start(this, 'timerA', this.#intervalA, now)
        return
      case 'stopAB':
        this.#timerA?.cancel()
        this.#timerB?.cancel()
        this.#timerA = this.#timerB = undefined
        return
      case 'startM':
        this.#timerM = this.#start('timerM', now)
        return
      case 'sendAck':
        return this.#acknowledge(now)
      case 'forgetRequest':
        this.#request = undefined
        return
      case 'passUp':
        if (this.#response) this.user.onResponse(this.#response, this.#from, now)
        return
      case 'reportTimeout':
        return this.user.onFailure('timeout', now)
      case 'reportTransportError':
        return this.user.onFailure('transport', now)
    }
  }

  #acknowledge(now: number): void {
    const request = this.#request
    if (request === undefined) return
    const ack = ackOfFailure(request, this.#response?.get('To') ?? request.to)
    this.context.send(ack, this.flow, this.#branch)
    // §17.1.1.2: timer D is zero on reliable transports.
    if (!isReliable(this.flow.listener.protocol))
      this.context.keepAck(this.#branch, ack, this.flow, now)
  }

  #start(timer: Timer, now: number): Deadline<Timer> {
    const { deadlines, timers } = this.context
    return deadlines.start(this, timer, transactionTimeoutMs(timers), now)
  }
}

/**
 * Non-INVITE client transaction: RFC 3261 §17.1.2. It has no state Completed, which only absorbs
 * copies of the response: one that belongs to no transaction is dropped all the same.
 */
type NonInviteState = 'trying' | 'proceeding' | 'terminated'
type NonInviteTimer = 'timerE' | 'timerF'
type NonInviteEvent = NonInviteTimer | 'receive1xx' | 'receiveFinal' | 'transportError'
type NonInviteAction =
  | 'resend'
  | 'backOffE'
  | 'repeatEAtT2'
  | 'stopEF'
  | 'passUp'
  | 'reportTimeout'
  | 'reportTransportError'

export const nonInviteClient: TransactionTable<NonInviteState, NonInviteEvent, NonInviteAction> = {
  trying: {
    timerE: { to: 'trying', do: ['resend', 'backOffE'] },
    timerF: { to: 'terminated', do: ['stopEF', 'reportTimeout'] },
    transportError: { to: 'terminated', do: ['stopEF', 'reportTransportError'] },
    receive1xx: { to: 'proceeding', do: ['passUp'] },
    receiveFinal: { to: 'terminated', do: ['stopEF', 'passUp'] },
  },
  proceeding: {
    timerE: { to: 'proceeding', do: ['resend', 'repeatEAtT2'] },
    timerF: { to: 'terminated', do: ['stopEF', 'reportTimeout'] },
    transportError: { to: 'terminated', do: ['stopEF', 'reportTransportError'] },
    receive1xx: { to: 'proceeding', do: ['passUp'] },
    receiveFinal: { to: 'terminated', do: ['stopEF', 'passUp'] },
  },
  terminated: {},
}

export class NonInviteClientTransaction extends Transaction<
  NonInviteState,
  NonInviteEvent,
  NonInviteAction,
  ClientUser
> {
  readonly method: string
  /** Repeated until the final response. */
  readonly #text: string
  readonly #reference: string
  #intervalE: number
  #timerE: Deadline<NonInviteTimer> | undefined
  #timerF: Deadline<NonInviteTimer> | undefined
  #response: SipMessage | undefined
  #from: Flow

  /** `age`: 0, or T1 for a request that was sent so long ago and is due to be repeated now. */
  constructor(
    request: Pick<SentRequest, 'method' | 'text'>,
    reference: string,
    flow: Flow,
    user: ClientUser,
    context: TransactionContext,
    now: number,
    age = 0,
  ) {
    super(nonInviteClient, 'trying', flow, user, context)
    this.method = request.method
    this.#text = request.text
    this.#reference = reference
    this.#from = flow
    this.#intervalE = context.timers.t1Ms
    const { deadlines, timers } = context
    this.#timerF = deadlines.start(this, 'timerF', transactionTimeoutMs(timers) - age, now)
    if (age > 0) return
    context.send(request.text, flow, reference)
    if (!isReliable(flow.listener.protocol))
      this.#timerE = deadlines.start(this, 'timerE', this.#intervalE, now)
  }

  receive(response: SipMessage, flow: Flow, now: number): void {
    this.#response = response
    this.#from = flow
    this.step(response.status < 200 ? 'receive1xx' : 'receiveFinal', now)
    this.#response = undefined
  }

  transportFailed(now: number): void {
    this.step('transportError', now)
  }

  /** Another user gets its responses from now on; a lost copy is not repeated any more. */
  handOver(user: ClientUser): void {
    this.user = user
    this.#timerE?.cancel()
  }

  onTimer(timer: NonInviteTimer, now: number): void {
    this.step(timer, now)
  }

  protected perform(action: NonInviteAction, now: number): void {
    const { deadlines, timers } = this.context
    switch (action) {
      case 'resend':
        return this.context.repeat(this.#text, this.flow, this.#reference)
      case 'backOffE':
        this.#intervalE = Math.min(this.#intervalE * 2, timers.t2Ms)
        this.#timerE = deadlines.start(this, 'timerE', this.#intervalE, now)
        return
      case 'repeatEAtT2':
        this.#timerE = deadlines.start(this, 'timerE', timers.t2Ms, now)
        return
      case 'stopEF':
        this.#timerE?.cancel()
        this.#timerF?.cancel()
        this.#timerE = this.#timerF = undefined
        return
      case 'passUp':
        if (this.#response) this.user.onResponse(this.#response, this.#from, now)
        return
      case 'reportTimeout':
        return this.user.onFailure('timeout', now)
      case 'reportTransportError':
        return this.user.onFailure('transport', now)
    }
  }
}
