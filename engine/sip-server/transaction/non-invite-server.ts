/**
 * Non-INVITE server transaction: RFC 3261 §17.2.2. Its state Completed is a text that the context keeps until timer J
 * would fire.
 */
import { isReliable, type Flow } from '../flow.ts'
import type { ServerUser, TransactionContext } from './context.ts'
import type { Table } from './machine.ts'

type State = 'trying' | 'proceeding' | 'terminated'
type Event = 'request' | 'send1xx' | 'sendFinal' | 'abandon' | 'transportError'
type Action = 'resend' | 'keepResponse'

export const nonInviteServer: Table<State, Event, Action> = {
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
  #state: State = 'trying'
  #response = ''
  #wasSent = false

  constructor(key: string, flow: Flow, user: ServerUser, context: TransactionContext) {
    this.key = key
    this.#flow = flow
    this.#user = user
    this.#context = context
  }

  get state(): State {
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

  #step(event: Event, now: number): void {
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

  #perform(action: Action, now: number): void {
    if (action === 'resend') this.#send()
    // §17.2.2: timer J is zero on reliable transports.
    else if (!isReliable(this.#flow.listener.protocol))
      this.#context.keepResponse(this.key, this.#user.toTag, this.#response, this.#flow, now)
  }
}
