/**
 * INVITE server transaction: RFC 3261 §17.2.1. Retransmitting a 2xx is the dialog's work, so the
 * state Accepted of RFC 6026 §7.1 only absorbs repeated INVITEs: the context has its key until
 * timer L would fire.
 */
import { type Flow, isReliable } from '../flow.ts'
import type { Deadline } from './deadlines.ts'
import {
  type ServerUser,
  type TransactionTable,
  Transaction,
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

export const inviteServer: TransactionTable<State, Event, Action> = {
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

/** Sends responses, and repeats the last one. */
abstract class RespondingTransaction<
  State extends string,
  Event extends string,
  Action extends string,
> extends Transaction<State, Event | 'transportError', Action, ServerUser> {
  abstract readonly key: string
  protected response = ''
  #wasSent = false

  protected answer(event: Event, text: string, now: number): void {
    if (!this.accepts(event)) return
    this.response = text
    this.#wasSent = false
    this.step(event, now)
  }

  protected sendResponse(): void {
    if (this.response === '') return
    // In other states it makes no difference that a response did not leave.
    const reference = this.accepts('transportError') ? this.key : ''
    if (this.#wasSent) return this.context.repeat(this.response, this.flow, reference)
    this.#wasSent = true
    this.context.send(this.response, this.flow, reference)
  }
}

export class InviteServerTransaction extends RespondingTransaction<State, Event, Action> {
  readonly key: string
  #intervalG: number
  #timerG: Deadline<Timer> | undefined
  #timerH: Deadline<Timer> | undefined

  constructor(key: string, flow: Flow, user: ServerUser, context: TransactionContext) {
    super(inviteServer, 'proceeding', flow, user, context)
    this.key = key
    this.#intervalG = context.timers.t1Ms
  }

  /** Our tag in its responses. */
  get toTag(): string {
    return this.user.toTag
  }

  /** A copy of the INVITE. */
  repeated(now: number): void {
    this.step('invite', now)
  }

  /** The ACK of a failure response; the ACK of a 2xx belongs to the dialog. */
  acknowledged(now: number): void {
    this.step('ack', now)
  }

  respond(status: number, text: string, now: number): void {
    this.answer(status < 200 ? 'send1xx' : status < 300 ? 'send2xx' : 'send3xx-6xx', text, now)
  }

  transportFailed(now: number): void {
    this.step('transportError', now)
  }

  onTimer(timer: Timer, now: number): void {
    this.step(timer, now)
  }

  protected perform(action: Action, now: number): void {
    const { deadlines, timers } = this.context
    switch (action) {
      case 'resend':
        return this.sendResponse()
      case 'startG':
        if (!isReliable(this.flow.listener.protocol))
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
          isReliable(this.flow.listener.protocol) ? 0 : timers.t4Ms,
          now,
        )
        return
      case 'keepTag':
        return this.context.keepResponse(this.key, this.user.toTag, '', this.flow, now)
      case 'forgetResponse':
        this.response = ''
        return
      case 'reportAckTimeout':
        return this.user.onAckTimeout(now)
    }
  }
}

/**
 * Non-INVITE server transaction: RFC 3261 §17.2.2. Its state Completed is an entry of the cache of
 * the context until timer J would fire.
 */
type NonInviteState = 'trying' | 'proceeding' | 'terminated'
type NonInviteEvent = 'request' | 'send1xx' | 'sendFinal' | 'abandon' | 'transportError'
type NonInviteAction = 'resend' | 'keepResponse'

export const nonInviteServer: TransactionTable<NonInviteState, NonInviteEvent, NonInviteAction> = {
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

export class NonInviteServerTransaction extends RespondingTransaction<
  NonInviteState,
  NonInviteEvent,
  NonInviteAction
> {
  readonly key: string

  constructor(key: string, flow: Flow, user: ServerUser, context: TransactionContext) {
    super(nonInviteServer, 'trying', flow, user, context)
    this.key = key
  }

  /** A copy of the request. */
  repeated(now: number): void {
    this.step('request', now)
  }

  respond(status: number, text: string, now: number): void {
    this.answer(status < 200 ? 'send1xx' : 'sendFinal', text, now)
  }

  /** Ends without a final response: a 408 that comes late only disturbs (RFC 4320 §4.2). */
  abandon(now: number): void {
    this.step('abandon', now)
  }

  transportFailed(now: number): void {
    this.step('transportError', now)
  }

  protected perform(action: NonInviteAction, now: number): void {
    if (action === 'resend') this.sendResponse()
    // §17.2.2: timer J is zero on reliable transports.
    else if (!isReliable(this.flow.listener.protocol))
      this.context.keepResponse(this.key, this.user.toTag, this.response, this.flow, now)
  }
}
