/**
 * How long calls take until they ring and until they are answered, as histograms. A call is an
 * INVITE outside dialogs; what refuses it is no answer.
 */
import { Histogram } from './histogram.ts'

/** Upper bounds in seconds, those of drachtio-server. */
const untilRinging = [1, 2, 3, 5, 7, 10, 15, 20]
const untilAnswered = [1, 3, 6, 10, 15, 20, 30, 60]

/** A call that was received or sent, and has not been answered yet. */
export interface TimedCall {
  readonly startedAt: number
  /** The called side has sent a provisional response other than 100. */
  hasRung: boolean
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
