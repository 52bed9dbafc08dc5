/**
 * Which digest algorithms a phone is offered. All of them, the strongest first, one challenge each
 * (RFC 8760 §2.4); phones older than that RFC may give up on what they do not know or on a second
 * challenge for the same realm. They show it by asking again and again without credentials, and get
 * MD5 alone from then on. It weakens nothing: whoever knows the password may answer with MD5 anyway.
 */
import type { Algorithm } from './digest.ts'

const all: readonly Algorithm[] = ['SHA-256', 'MD5']
const plain: readonly Algorithm[] = ['MD5']

/** Phones that are known for it: libre before 3 refuses any algorithm but MD5, wherever it stands. */
const onlyPlain = /^baresip v[0-2]\./
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
    if (userAgent !== undefined && onlyPlain.test(userAgent)) return plain
    const unanswered = (this.#unanswered.get(phone) ?? 0) + 1
    this.#unanswered.delete(phone)
    this.#unanswered.set(phone, unanswered)
    if (this.#unanswered.size > this.#max) {
      const [oldest] = this.#unanswered.keys()
      if (oldest !== undefined) this.#unanswered.delete(oldest)
    }
    return unanswered > UNANSWERED_CHALLENGES ? plain : all
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
