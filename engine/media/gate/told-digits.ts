/** Digits that a relay has heard in the RTP of one party become INFO to the other, one after the other. */
import type { ActiveCalls } from '../../call/active-calls.ts'
import type { LegCommand, LegEventData } from '../../call/signalling.ts'
import type { RelayDigit } from '../digits/heard-digits.ts'
import { infoOf, type Digit } from './digits.ts'
import { type MediaLeg, type MediaLegs, otherLeg } from './session.ts'
import type { Sessions } from './sessions.ts'

interface ToldDigitsDeps {
  readonly sessions: Pick<Sessions, 'withId'>
  readonly legs: MediaLegs
  readonly calls: Pick<ActiveCalls, 'leg'>
  readonly now: () => number
  readonly takesInfo: (leg: MediaLeg) => boolean
  readonly perform: (command: LegCommand) => void
}

interface Line {
  /** The INFO that has no final response yet. */
  pending: string | undefined
  readonly waiting: { readonly digit: Digit; readonly at: number }[]
}

/** A party that has not answered the digit before for so long does not get one that is so old. */
const STALE_MS = 4_000
const MAX_WAITING = 32
const mark = 'digit!'

export class InfoDigits {
  readonly #deps: ToldDigitsDeps
  /** By the leg that is told. */
  readonly #lines = new Map<string, Line>()
  #count = 0

  constructor(deps: ToldDigitsDeps) {
    this.#deps = deps
  }

  /** False: the session is not known here. */
  take({ session: id, from: fromId, digit }: RelayDigit): boolean {
    const { sessions, legs, calls, takesInfo, now } = this.#deps
    const session = sessions.withId(id, fromId)
    if (session === undefined) return false
    const to = legs.get(otherLeg(session, fromId))
    if (to?.current !== session || session.isClosed) return true
    if (calls.leg(to.id)?.state !== 'confirmed' || !takesInfo(to)) return true
    const line = this.#lines.get(to.id) ?? { pending: undefined, waiting: [] }
    this.#lines.set(to.id, line)
    if (line.waiting.length >= MAX_WAITING) return true
    line.waiting.push({ digit, at: now() })
    this.#sendNext(to.id, line)
    return true
  }

  #sendNext(legId: string, line: Line): void {
    if (line.pending !== undefined) return
    const { calls, now, perform } = this.#deps
    const oldest = now() - STALE_MS
    let next = line.waiting.shift()
    while (next && next.at < oldest) next = line.waiting.shift()
    if (next === undefined || calls.leg(legId)?.state !== 'confirmed')
      return void this.#lines.delete(legId)
    line.pending = `${mark}${this.#count++}`
    return perform({ ...infoOf(next.digit), legId, transactionId: line.pending })
  }

  /** Whether the event answers an INFO of ours: call control did not ask. */
  isAnswer(event: LegEventData): boolean {
    if (event.type !== 'response' && event.type !== 'requestFailed') return false
    const { legId, transactionId } = event
    if (!transactionId.startsWith(mark)) return false
    const line = this.#lines.get(legId)
    const isFinal = event.type === 'requestFailed' || event.response.status >= 200
    if (line?.pending === transactionId && isFinal) {
      line.pending = undefined
      this.#sendNext(legId, line)
    }
    return true
  }

  forget(legId: string): void {
    this.#lines.delete(legId)
  }
}
