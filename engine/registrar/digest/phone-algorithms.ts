/**
 * Which digest algorithms a phone is offered: MD5 alone, unless its User-Agent is known to read several
 * challenges. That one is offered all, the strongest first, one challenge each (RFC 8760 §2.4).
 *
 * One that does not say what it is, is no phone, but a program that somebody wrote: it is offered both,
 * MD5 first, which SIPp takes, and so does whoever reads one challenge only.
 *
 * There is no order that the others would take. SIPp ends its test at a first challenge with SHA-256, and
 * PJSIP before 2.11 gives up; JsSIP takes the last one; Sofia-SIP, and libre before 3.11, fail with any
 * second challenge for one realm. MD5 weakens nothing: whoever knows the password may always answer
 * with it.
 */
import type { Algorithm } from './digest.ts'

const all: readonly Algorithm[] = ['SHA-256', 'MD5']
const plainFirst: readonly Algorithm[] = ['MD5', 'SHA-256']
const plain: readonly Algorithm[] = ['MD5']

/** Linphone's phones; baresip from 3.11; PJSUA from 2.11. */
const readsSeveral =
  /^(linphone|baresip v(3\.(1[1-9]|[2-9]\d)|[4-9]|[1-9]\d)|pjsua v(2\.(1[1-9]|[2-9]\d)|[3-9]))/i
/** A phone that is known, and still asks again and again without credentials, gets MD5 alone, too. */
const UNANSWERED_CHALLENGES = 3

export class PhoneAlgorithms {
  readonly #max: number
  /** Challenges in a row that stayed unanswered, by phone; the least recently challenged first. */
  readonly #unanswered = new Map<string, number>()

  /** Remembers at most `max` phones. */
  constructor(max: number) {
    this.#max = max
  }

  /** What the next challenge offers. `phone` is user, domain and address in one text. */
  offer(phone: string, userAgent: string | undefined): readonly Algorithm[] {
    if (userAgent !== undefined && !readsSeveral.test(userAgent)) return plain
    const unanswered = (this.#unanswered.get(phone) ?? 0) + 1
    this.#unanswered.delete(phone)
    this.#unanswered.set(phone, unanswered)
    if (this.#unanswered.size > this.#max) {
      const [oldest] = this.#unanswered.keys()
      if (oldest !== undefined) this.#unanswered.delete(oldest)
    }
    if (unanswered > UNANSWERED_CHALLENGES) return plain
    return userAgent === undefined ? plainFirst : all
  }

  /** The phone has answered with this algorithm. */
  answered(phone: string, algorithm: Algorithm): void {
    const unanswered = this.#unanswered.get(phone)
    if (unanswered === undefined) return
    if (algorithm === 'MD5' && unanswered > UNANSWERED_CHALLENGES) return
    this.#unanswered.delete(phone)
  }

  get size(): number {
    return this.#unanswered.size
  }
}
