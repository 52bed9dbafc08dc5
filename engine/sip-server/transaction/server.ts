/**
 * INVITE server transaction: RFC 3261 §17.2.1. Retransmitting a 2xx is the dialog's work, so the state Accepted of
 * RFC 6026 §7.1 only absorbs repeated INVITEs: it is a key that the context keeps until timer L would fire.
 */
import { type Flow, isReliable } from '../flow.ts'
import type { Deadline } from './deadlines.ts'
import {
  type ServerUser,
  type Table,
  type TransactionContext,
  transactionTimeoutMs,
} from './machine.ts'

type State = 'proceeding' | 'completed' | 'confirmed' | 'terminated'
type Timer = 'timerG' | 'timerH' | 'timerI'
type Event = Timer | 'invite' | 'ack' | 'send1xx' | 'send2xx' | 'send3xx-6xx' | 'transportError'
type Action =
  | 'resend'
  | 'startG'
  | 'backOffG'
  | 'startH'
  | 'stopGH'
  | 'startI'
  | 'keepTag'
  | 'forgetResponse'
  | 'reportAckTimeout'

export const inviteServer: Table<State, Event, Action> = {
  proceeding: {
    invite: { to: 'proceeding', do: ['resend'] },
    send1xx: { to: 'proceeding', do: ['resend'] },
    send2xx: { to: 'terminated', do: ['resend', 'keepTag'] },
    'send3xx-6xx': { to: 'completed', do: ['resend', 'startG', 'startH'] },
  },
  completed: {
    invite: { to: 'completed', do: ['resend'] },
    ack: { to: 'confirmed', do: ['stopGH', 'forgetResponse', 'startI'] },
    timerG: { to: 'completed', do: ['resend', 'backOffG'] },
    timerH: { to: 'terminated', do: ['stopGH', 'reportAckTimeout'] },
    transportError: { to: 'terminated', do: ['stopGH'] },
  },
  confirmed: { timerI: { to: 'terminated', do: [] } },
  terminated: {},
}

export class InviteServerTransaction {
  readonly key: string
  readonly #flow: Flow
  readonly #user: ServerUser
  readonly #context: TransactionContext
  #state: State = 'proceeding'
  #response = ''
  #wasSent = false
  #intervalG: number
  #timerG: Deadline<Timer> | undefined
  #timerH: Deadline<Timer> | undefined

  constructor(key: string, flow: Flow, user: ServerUser, context: TransactionContext) {
    this.key = key
    this.#flow = flow
    this.#user = user
    this.#context = context
    this.#intervalG = context.timers.t1Ms
  }

  get state(): State {
    return this.#state
  }

  get flow(): Flow {
    return this.#flow
  }

  /** Our tag in its responses. */
  get toTag(): string {
    return this.#user.toTag
  }

  /** A copy of the INVITE. */
  repeated(now: number): void {
    this.#step('invite', now)
  }

  /** The ACK of a failure response; the ACK of a 2xx belongs to the dialog. */
  acknowledged(now: number): void {
    this.#step('ack', now)
  }

  respond(status: number, text: string, now: number): void {
    const event = status < 200 ? 'send1xx' : status < 300 ? 'send2xx' : 'send3xx-6xx'
    if (!inviteServer[this.#state][event]) return
    this.#response = text
    this.#wasSent = false
    this.#step(event, now)
  }

  transportFailed(now: number): void {
    this.#step('transportError', now)
  }

  onTimer(timer: Timer, now: number): void {
    this.#step(timer, now)
  }

  #step(event: Event, now: number): void {
    const step = inviteServer[this.#state][event]
    if (!step) return
    this.#state = step.to
    for (const action of step.do) this.#perform(action, now)
    if (step.to === 'terminated') this.#user.onTerminated(now)
  }

  #send(): void {
    if (this.#response === '') return
    if (this.#wasSent) return this.#context.repeat(this.#response, this.#flow, this.key)
    this.#wasSent = true
    this.#context.send(this.#response, this.#flow, this.key)
  }

  #perform(action: Action, now: number): void {
    const { deadlines, timers } = this.#context
    switch (action) {
      case 'resend':
        return this.#send()
      case 'startG':
        if (!isReliable(this.#flow.listener.protocol))
          this.#timerG = deadlines.start(this, 'timerG', this.#intervalG, now)
        return
      case 'backOffG':
        this.#intervalG = Math.min(this.#intervalG * 2, timers.t2Ms)
        this.#timerG = deadlines.start(this, 'timerG', this.#intervalG, now)
        return
      case 'startH':
        this.#timerH = deadlines.start(this, 'timerH', transactionTimeoutMs(timers), now)
        return
      case 'stopGH':
        this.#timerG?.cancel()
        this.#timerH?.cancel()
        this.#timerG = this.#timerH = undefined
        return
      case 'startI':
        deadlines.start(
          this,
          'timerI',
          isReliable(this.#flow.listener.protocol) ? 0 : timers.t4Ms,
          now,
        )
        return
      case 'keepTag':
        return this.#context.keepResponse(this.key, this.#user.toTag, '', this.#flow, now)
      case 'forgetResponse':
        this.#response = ''
        return
      case 'reportAckTimeout':
        return this.#user.onAckTimeout(now)
    }
  }
}

/**
 * Non-INVITE server transaction: RFC 3261 §17.2.2. Its state Completed is a text that the context keeps until timer J
 * would fire.
 */
type NonInviteState = 'trying' | 'proceeding' | 'terminated'
type NonInviteEvent = 'request' | 'send1xx' | 'sendFinal' | 'abandon' | 'transportError'
type NonInviteAction = 'resend' | 'keepResponse'

export const nonInviteServer: Table<NonInviteState, NonInviteEvent, NonInviteAction> = {
  trying: {
    send1xx: { to: 'proceeding', do: ['resend'] },
    sendFinal: { to: 'terminated', do: ['resend', 'keepResponse'] },
    abandon: { to: 'terminated', do: [] },
  },
  proceeding: {
    request: { to: 'proceeding', do: ['resend'] },
    send1xx: { to: 'proceeding', do: ['resend'] },
    sendFinal: { to: 'terminated', do: ['resend', 'keepResponse'] },
    abandon: { to: 'terminated', do: [] },
    transportError: { to: 'terminated', do: [] },
  },
  terminated: {},
}

export class NonInviteServerTransaction {
  readonly key: string
  readonly #flow: Flow
  readonly #user: ServerUser
  readonly #context: TransactionContext
  #state: NonInviteState = 'trying'
  #response = ''
  #wasSent = false

  constructor(key: string, flow: Flow, user: ServerUser, context: TransactionContext) {
    this.key = key
    this.#flow = flow
    this.#user = user
    this.#context = context
  }

  get state(): NonInviteState {
    return this.#state
  }

  get flow(): Flow {
    return this.#flow
  }

  /** A copy of the request. */
  repeated(now: number): void {
    this.#step('request', now)
  }

  respond(status: number, text: string, now: number): void {
    const event = status < 200 ? 'send1xx' : 'sendFinal'
    if (!nonInviteServer[this.#state][event]) return
    this.#response = text
    this.#wasSent = false
    this.#step(event, now)
  }

  /** Ends without a final response: a 408 that comes late only disturbs (RFC 4320 §4.2). */
  abandon(now: number): void {
    this.#step('abandon', now)
  }

  transportFailed(now: number): void {
    this.#step('transportError', now)
  }

  #step(event: NonInviteEvent, now: number): void {
    const step = nonInviteServer[this.#state][event]
    if (!step) return
    this.#state = step.to
    for (const action of step.do) this.#perform(action, now)
    if (step.to === 'terminated') this.#user.onTerminated(now)
  }

  #send(): void {
    if (this.#wasSent) return this.#context.repeat(this.#response, this.#flow, this.key)
    this.#wasSent = true
    this.#context.send(this.#response, this.#flow, this.key)
  }

  #perform(action: NonInviteAction, now: number): void {
    if (action === 'resend') this.#send()
    // §17.2.2: timer J is zero on reliable transports.
    else if (!isReliable(this.#flow.listener.protocol))
      this.#context.keepResponse(this.key, this.#user.toTag, this.#response, this.#flow, now)
  }
}
