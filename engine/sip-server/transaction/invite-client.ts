/**
 * INVITE client transaction: RFC 3261 §17.1.1 with the Accepted state of RFC 6026 §7.2, in which
 * every copy of a 2xx, also of another branch, still reaches the user, which acknowledges it.
 */
import { isReliable, type Flow } from '../flow.ts'
import type { SipMessage } from '../message/message.ts'
import type { ClientUser, TransactionContext } from './context.ts'
import type { Deadline } from './deadlines.ts'
import type { Table } from './machine.ts'
import { ackOfFailure, type SentRequest } from './sent-request.ts'
import { transactionTimeoutMs } from './timers.ts'

type State = 'calling' | 'proceeding' | 'completed' | 'accepted' | 'terminated'
type Timer = 'timerA' | 'timerB' | 'timerD' | 'timerM'
type Event = Timer | 'receive1xx' | 'receive2xx' | 'receive3xx-6xx' | 'transportError'
type Action =
  | 'resend'
  | 'backOffA'
  | 'stopAB'
  | 'startD'
  | 'startM'
  | 'sendAck'
  | 'forgetRequest'
  | 'passUp'
  | 'reportTimeout'
  | 'reportTransportError'

export const inviteClient: Table<State, Event, Action> = {
  calling: {
    timerA: { to: 'calling', do: ['resend', 'backOffA'] },
    timerB: { to: 'terminated', do: ['stopAB', 'reportTimeout'] },
    transportError: { to: 'terminated', do: ['stopAB', 'reportTransportError'] },
    receive1xx: { to: 'proceeding', do: ['stopAB', 'passUp'] },
    receive2xx: { to: 'accepted', do: ['stopAB', 'startM', 'forgetRequest', 'passUp'] },
    'receive3xx-6xx': {
      to: 'completed',
      do: ['stopAB', 'sendAck', 'startD', 'forgetRequest', 'passUp'],
    },
  },
  proceeding: {
    receive1xx: { to: 'proceeding', do: ['passUp'] },
    receive2xx: { to: 'accepted', do: ['startM', 'forgetRequest', 'passUp'] },
    'receive3xx-6xx': {
      to: 'completed',
      do: ['sendAck', 'startD', 'forgetRequest', 'passUp'],
    },
  },
  accepted: {
    receive2xx: { to: 'accepted', do: ['passUp'] },
    timerM: { to: 'terminated', do: [] },
  },
  completed: {
    'receive3xx-6xx': { to: 'completed', do: ['sendAck'] },
    transportError: { to: 'terminated', do: [] },
    timerD: { to: 'terminated', do: [] },
  },
  terminated: {},
}

export class InviteClientTransaction {
  readonly method = 'INVITE'
  readonly #branch: string
  readonly #flow: Flow
  #user: ClientUser
  readonly #context: TransactionContext
  #state: State = 'calling'
  #intervalA: number
  /** Until the final response. */
  #request: SentRequest | undefined
  /** Of a failure response, repeated for every copy of it. */
  #ack = ''
  #timerA: Deadline<Timer> | undefined
  #timerB: Deadline<Timer> | undefined
  #response: SipMessage | undefined
  #from: Flow

  constructor(
    request: SentRequest,
    flow: Flow,
    user: ClientUser,
    context: TransactionContext,
    now: number,
  ) {
    this.#request = request
    this.#branch = request.branch
    this.#flow = flow
    this.#from = flow
    this.#user = user
    this.#context = context
    this.#intervalA = context.timers.t1Ms
    context.send(request.text, flow, request.branch)
    if (!isReliable(flow.listener.protocol))
      this.#timerA = context.deadlines.start(this, 'timerA', this.#intervalA, now)
    this.#timerB = this.#start('timerB', now)
  }

  get state(): State {
    return this.#state
  }

  get flow(): Flow {
    return this.#flow
  }

  receive(response: SipMessage, flow: Flow, now: number): void {
    this.#response = response
    this.#from = flow
    const { status } = response
    this.#step(status < 200 ? 'receive1xx' : status < 300 ? 'receive2xx' : 'receive3xx-6xx', now)
    this.#response = undefined
    this.#from = this.#flow
  }

  transportFailed(now: number): void {
    this.#step('transportError', now)
  }

  /** Another user hears of it from now on; it no longer waits for an answer. */
  handOver(user: ClientUser): void {
    this.#user = user
    this.stopRetransmitting()
  }

  /** The user no longer wants an answer: a copy that was lost need not be repeated. */
  stopRetransmitting(): void {
    this.#timerA?.cancel()
  }

  onTimer(timer: Timer, now: number): void {
    this.#step(timer, now)
  }

  #step(event: Event, now: number): void {
    const step = inviteClient[this.#state][event]
    if (!step) return
    this.#state = step.to
    for (const action of step.do) this.#perform(action, now)
    if (step.to === 'terminated') this.#user.onTerminated(now)
  }

  #perform(action: Action, now: number): void {
    switch (action) {
      case 'resend':
        if (this.#request) this.#context.repeat(this.#request.text, this.#flow, this.#branch)
        return
      case 'backOffA':
        this.#intervalA *= 2
        this.#timerA = this.#context.deadlines.start(this, 'timerA', this.#intervalA, now)
        return
      case 'stopAB':
        this.#timerA?.cancel()
        this.#timerB?.cancel()
        this.#timerA = this.#timerB = undefined
        return
      case 'startD':
        // §17.1.1.2: zero on reliable transports, at least 32 s (64·T1) otherwise.
        if (isReliable(this.#flow.listener.protocol))
          this.#context.deadlines.start(this, 'timerD', 0, now)
        else this.#start('timerD', now)
        return
      case 'startM':
        this.#start('timerM', now)
        return
      case 'sendAck':
        if (this.#response && this.#request)
          this.#ack = ackOfFailure(this.#request, this.#response.get('To') ?? this.#request.to)
        return this.#context.send(this.#ack, this.#flow, this.#branch)
      case 'forgetRequest':
        this.#request = undefined
        return
      case 'passUp':
        if (this.#response) this.#user.onResponse(this.#response, this.#from, now)
        return
      case 'reportTimeout':
        return this.#user.onFailure('timeout', now)
      case 'reportTransportError':
        return this.#user.onFailure('transport', now)
    }
  }

  #start(timer: Timer, now: number): Deadline<Timer> {
    const { deadlines, timers } = this.#context
    return deadlines.start(this, timer, transactionTimeoutMs(timers), now)
  }
}
