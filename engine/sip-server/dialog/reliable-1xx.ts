/**
 * Provisional responses to one INVITE that must arrive: RFC 3262 §3. One is under way at a time and
 * is repeated until its PRACK; those that follow wait for it, and so may the 2xx.
 */
import type { Flow } from '../flow.ts'
import type { RAck } from '../../../schema/sip/fields.ts'
import type { Deadline } from '../transaction/deadlines.ts'
import { type TransactionContext, transactionTimeoutMs } from '../transaction/machine.ts'

type Timer = 'repeat' | 'giveUp'

interface Provisional {
  readonly rseq: number
  readonly text: string
  /** '' where it describes no media. */
  readonly sdp: string
  /** Its first transmission. */
  send(now: number): void
}

interface HeldAnswer {
  send(now: number): void
  /** The INVITE has ended otherwise. */
  refuse(): void
}

/**
 * RFC 3262 §3: more would only fill memory, as the later ones are not sent before the first is
 * acknowledged.
 */
const MAX_WAITING = 16

export class Reliable1xx {
  /** CSeq of the INVITE, which each PRACK quotes. */
  readonly cseq: number
  /** A session description has arrived at the other side: offer and answer are exchanged. */
  hasAgreed = false
  /** The last one that was sent, '' for none. */
  lastSdp = ''
  #lastRSeq: number
  /** The first one is under way. */
  readonly #provisionals: Provisional[] = []
  #held: HeldAnswer | undefined
  #isOver = false
  readonly #flow: Flow
  readonly #context: TransactionContext
  readonly #onUnacknowledged: (now: number) => void
  #intervalMs = 0
  #repeat: Deadline<Timer> | undefined
  #giveUp: Deadline<Timer> | undefined

  constructor(
    cseq: number,
    firstRSeq: number,
    flow: Flow,
    context: TransactionContext,
    onUnacknowledged: (now: number) => void,
  ) {
    this.cseq = cseq
    this.#lastRSeq = firstRSeq - 1
    this.#flow = flow
    this.#context = context
    this.#onUnacknowledged = onUnacknowledged
  }

  /** The RSeq of the next response; undefined: too many wait. */
  get nextRSeq(): number | undefined {
    return this.#provisionals.length < MAX_WAITING ? this.#lastRSeq + 1 : undefined
  }

  add(provisional: Provisional, now: number): void {
    this.#lastRSeq = provisional.rseq
    if (provisional.sdp !== '') this.lastSdp = provisional.sdp
    this.#provisionals.push(provisional)
    if (this.#provisionals.length === 1) this.#begin(provisional, now)
  }

  /** A PRACK; false: it belongs to no response that waits for one. */
  acknowledged({ rseq, cseq }: RAck, now: number): boolean {
    const [first] = this.#provisionals
    const isOurs = cseq.number === this.cseq && cseq.method === 'INVITE'
    if (first === undefined || first.rseq !== rseq || !isOurs) return false
    this.#stopTimers()
    this.hasAgreed ||= first.sdp !== ''
    this.#provisionals.shift()
    const [next] = this.#provisionals
    if (next && !this.#isOver) this.#begin(next, now)
    return true
  }

  /** A 2xx would overtake a session description (§3). */
  get mustHoldAnswer(): boolean {
    return this.#provisionals.some(({ sdp }) => sdp !== '')
  }

  /** False: one is held already. */
  hold(answer: HeldAnswer): boolean {
    if (this.#held) return false
    this.#held = answer
    return true
  }

  /** The application has answered a PRACK: a 2xx that has waited for it is sent. */
  settled(now: number): void {
    if (this.mustHoldAnswer) return
    const held = this.#held
    this.#held = undefined
    held?.send(now)
  }

  /**
   * The INVITE has its final answer: no response is repeated any more, and none that waits is sent.
   */
  stop(): void {
    this.#isOver = true
    this.#stopTimers()
    // A PRACK for a response that was sent may still come, and is answered (§3).
    this.#provisionals.splice(1)
    const held = this.#held
    this.#held = undefined
    held?.refuse()
  }

  onTimer(timer: Timer, now: number): void {
    const [first] = this.#provisionals
    if (timer === 'giveUp' || first === undefined) {
      this.#stopTimers()
      return this.#onUnacknowledged(now)
    }
    this.#context.repeat(first.text, this.#flow, '')
    this.#intervalMs *= 2
    this.#repeat = this.#context.deadlines.start(this, 'repeat', this.#intervalMs, now)
  }

  #begin(provisional: Provisional, now: number): void {
    const { deadlines, timers } = this.#context
    provisional.send(now)
    this.#intervalMs = timers.t1Ms
    this.#repeat = deadlines.start(this, 'repeat', this.#intervalMs, now)
    this.#giveUp = deadlines.start(this, 'giveUp', transactionTimeoutMs(timers), now)
  }

  #stopTimers(): void {
    this.#repeat?.cancel()
    this.#giveUp?.cancel()
  }
}
