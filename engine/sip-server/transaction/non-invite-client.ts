/**
 * Non-INVITE client transaction: RFC 3261 §17.1.2. It has no state Completed, which only absorbs copies of the
 * response: one that belongs to no transaction is dropped all the same.
 */
import { isReliable, type Flow } from '../flow.ts'
import type { SipMessage } from '../message/message.ts'
import type { ClientUser, TransactionContext } from './context.ts'
import type { Deadline } from './deadlines.ts'
import type { Table } from './machine.ts'
import type { SentRequest } from './sent-request.ts'
import { transactionTimeoutMs } from './timers.ts'

type State = 'trying' | 'proceeding' | 'terminated'
type Timer = 'timerE' | 'timerF'
type Event = Timer | 'receive1xx' | 'receiveFinal' | 'transportError'
type Action =
  | 'resend'
  | 'backOffE'
  | 'repeatEAtT2'
  | 'stopEF'
  | 'passUp'
  | 'reportTimeout'
  | 'reportTransportError'

export const nonInviteClient: Table<State, Event, Action> = {
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

export class NonInviteClientTransaction {
  readonly method: string
  /** Repeated until the final response. */
  readonly #text: string
  readonly #reference: string
  readonly #flow: Flow
  #user: ClientUser
  readonly #context: TransactionContext
  #state: State = 'trying'
  #intervalE: number
  #timerE: Deadline<Timer> | undefined
  #timerF: Deadline<Timer> | undefined
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
    this.method = request.method
    this.#text = request.text
    this.#reference = reference
    this.#flow = flow
    this.#from = flow
    this.#user = user
    this.#context = context
    this.#intervalE = context.timers.t1Ms
    const { deadlines, timers } = context
    this.#timerF = deadlines.start(this, 'timerF', transactionTimeoutMs(timers) - age, now)
    if (age > 0) return
    context.send(request.text, flow, reference)
    if (!isReliable(flow.listener.protocol))
      this.#timerE = deadlines.start(this, 'timerE', this.#intervalE, now)
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
    this.#step(response.status < 200 ? 'receive1xx' : 'receiveFinal', now)
    this.#response = undefined
  }

  transportFailed(now: number): void {
    this.#step('transportError', now)
  }

  /** Another user hears of it from now on; it no longer waits for an answer. */
  handOver(user: ClientUser): void {
    this.#user = user
    this.#timerE?.cancel()
  }

  onTimer(timer: Timer, now: number): void {
    this.#step(timer, now)
  }

  #step(event: Event, now: number): void {
    const step = nonInviteClient[this.#state][event]
    if (!step) return
    this.#state = step.to
    for (const action of step.do) this.#perform(action, now)
    if (step.to === 'terminated') this.#user.onTerminated(now)
  }

  #perform(action: Action, now: number): void {
    const { deadlines, timers } = this.#context
    switch (action) {
      case 'resend':
        return this.#context.repeat(this.#text, this.#flow, this.#reference)
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
        if (this.#response) this.#user.onResponse(this.#response, this.#from, now)
        return
      case 'reportTimeout':
        return this.#user.onFailure('timeout', now)
      case 'reportTransportError':
        return this.#user.onFailure('transport', now)
    }
  }
}
