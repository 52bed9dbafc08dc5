/**
 * A 2xx to an INVITE is repeated by the dialog until its ACK arrives, on every transport: RFC 3261
 * §13.3.1.4. The transaction no longer does it (RFC 6026).
 */
import type { Flow } from '../flow.ts'
import type { Deadline } from '../transaction/deadlines.ts'
import { type TransactionContext, transactionTimeoutMs } from '../transaction/machine.ts'

type AckTimer = 'repeat' | 'giveUp'

export class Reliable2xx {
  /** CSeq of the INVITE: the ACK carries the same number. */
  readonly cseq: number
  readonly transactionId: string
  readonly #text: string
  readonly #flow: Flow
  readonly #context: TransactionContext
  readonly #onUnacknowledged: (now: number) => void
  #intervalMs: number
  #repeat: Deadline<AckTimer>
  readonly #giveUp: Deadline<AckTimer>

  constructor(
    response: {
      readonly cseq: number
      readonly transactionId: string
      readonly text: string
      readonly flow: Flow
    },
    context: TransactionContext,
    onUnacknowledged: (now: number) => void,
    now: number,
  ) {
    this.cseq = response.cseq
    this.transactionId = response.transactionId
    this.#text = response.text
    this.#flow = response.flow
    this.#context = context
    this.#onUnacknowledged = onUnacknowledged
    this.#intervalMs = context.timers.t1Ms
    this.#repeat = context.deadlines.start(this, 'repeat', this.#intervalMs, now)
    const giveUpMs = transactionTimeoutMs(context.timers)
    this.#giveUp = context.deadlines.start(this, 'giveUp', giveUpMs, now)
  }

  stop(): void {
    this.#repeat.cancel()
    this.#giveUp.cancel()
  }

  onTimer(timer: AckTimer, now: number): void {
    if (timer === 'giveUp') {
      this.stop()
      return this.#onUnacknowledged(now)
    }
    const { deadlines, timers } = this.#context
    this.#context.repeat(this.#text, this.#flow, '')
    this.#intervalMs = Math.min(this.#intervalMs * 2, timers.t2Ms)
    this.#repeat = deadlines.start(this, 'repeat', this.#intervalMs, now)
  }
}
