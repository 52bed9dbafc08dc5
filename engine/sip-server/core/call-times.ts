/**
 * How long calls take until they ring and until they are answered, as histograms. A call is an INVITE
 * outside dialogs; what refuses it is no answer.
 */

/** Upper bounds in seconds, those of drachtio-server. */
const untilRinging = [1, 2, 3, 5, 7, 10, 15, 20]
const untilAnswered = [1, 3, 6, 10, 15, 20, 30, 60]

export class Histogram {
  readonly bounds: readonly number[]
  /** Observations up to each bound and above the one before; the last are those above all bounds. */
  readonly counts: number[]
  sum = 0

  constructor(bounds: readonly number[]) {
    this.bounds = bounds
    this.counts = [...bounds, Infinity].map(() => 0)
  }

  observe(value: number): void {
    const found = this.bounds.findIndex((bound) => value <= bound)
    const index = found === -1 ? this.bounds.length : found
    this.counts[index] = (this.counts[index] ?? 0) + 1
    this.sum += value
  }
}

/** A call that was received or sent, and has not been answered yet. */
export interface TimedCall {
  readonly startedAt: number
  /** Something but Trying was heard of the called side. */
  hasRung: boolean
}

/** Of calls that come in and of calls that go out. */
export interface CallTimesByDirection {
  readonly inbound: CallTimes
  readonly outbound: CallTimes
}

export class CallTimes {
  readonly ringing = new Histogram(untilRinging)
  readonly answer = new Histogram(untilAnswered)

  /** A response to the call passed; no copy of one. */
  responded(call: TimedCall, status: number, now: number): void {
    if (status <= 100 || status >= 300) return
    const seconds = (now - call.startedAt) / 1_000
    if (!call.hasRung) this.ringing.observe(seconds)
    call.hasRung = true
    if (status >= 200) this.answer.observe(seconds)
  }
}
