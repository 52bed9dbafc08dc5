import type { Timer } from './call-machine/protocol.ts'
import type { CallDeadline, CallDeadlines } from './deadlines.ts'

/** The timers of the call machine. */
export class CallTimers {
  readonly #deadlines: CallDeadlines
  readonly #onTimer: (timer: Timer) => void
  readonly #timers: Readonly<Record<Timer['kind'], Map<string, CallDeadline>>> = {
    attempt: new Map(),
    holder: new Map(),
    ring: new Map(),
    grant: new Map(),
    'grant-end': new Map(),
    source: new Map(),
    exchange: new Map(),
    retry: new Map(),
    parting: new Map(),
    question: new Map(),
  }

  constructor(deadlines: CallDeadlines, onTimer: (timer: Timer) => void) {
    this.#deadlines = deadlines
    this.#onTimer = onTimer
  }

  /** Replaces the same timer, if it runs. `at` by the steady clock. */
  start(timer: Timer, at: number): void {
    const timers = this.#timers[timer.kind]
    const id = idOf(timer)
    this.#deadlines.cancel(timers.get(id))
    const deadline = this.#deadlines.at(at, () => {
      timers.delete(id)
      this.#onTimer(timer)
    })
    timers.set(id, deadline)
  }

  stop(timer: Timer): void {
    const timers = this.#timers[timer.kind]
    const id = idOf(timer)
    this.#deadlines.cancel(timers.get(id))
    timers.delete(id)
  }
}

function idOf(timer: Timer): string {
  switch (timer.kind) {
    case 'exchange':
      return timer.exchangeId
    case 'retry':
      return `${timer.legId} ${timer.retryId}`
    case 'attempt':
    case 'holder':
    case 'parting':
      return timer.legId
    case 'question':
    case 'ring':
    case 'source':
    case 'grant':
    case 'grant-end':
    default:
      return timer.callUuid
  }
}
