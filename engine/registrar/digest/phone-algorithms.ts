/**
 * Which digest algorithms a phone is offered, one challenge each (RFC 8760 §2.4). One that is known to read
 * several challenges: the strongest first. One that is known to fail with several: MD5 alone. All others:
 * MD5 first, because who reads one challenge only takes the first one.
 *
 * There is no order that all would take. SIPp 3.6 ends its test at a first challenge with SHA-256; PJSIP before
 * 2.11 gives up at any; JsSIP and SIP.js take the last one; Sofia-SIP, and libre before 3.11, fail with any second
 * challenge for one realm. MD5 first weakens nothing: a client that knows the password may always answer with it.
 */
import type { Algorithm } from './digest.ts'

const all: readonly Algorithm[] = ['SHA-256', 'MD5']
const plainFirst: readonly Algorithm[] = ['MD5', 'SHA-256']
const plain: readonly Algorithm[] = ['MD5']

/** Linphone's phones; baresip from 3.11; PJSUA from 2.11. */
const readsSeveral =
  /^(linphone|baresip v(3\.(1[1-9]|[2-9]\d)|[4-9]|[1-9]\d)|pjsua v(2\.(1[1-9]|[2-9]\d)|[3-9]))/i
/** JsSIP and SIP.js; FreeSWITCH and whatever else is made of Sofia-SIP; baresip and PJSUA as they were before. */
const failsWithSeveral =
  /jssip|sip\.js|freeswitch|sofia|^baresip v?([0-2]\.|3\.\d\b|3\.10)|pjsua v?([01]\.|2\.\d\b|2\.10)/i
/**
 * A phone that has left so many unanswered gets MD5 alone. A phone that nothing is known of may be made of Sofia-SIP, and
 * gives up at its first challenge: it registers with the next.
 */
const UNANSWERED = { known: 3, unknown: 1 } as const

/** Who is to be challenged. */
export interface Asking {
  /** User, domain and address in one text. */
  readonly phone: string
  /** Undefined: it does not say what it is. */
  readonly userAgent: string | undefined
  /** It came by a WebSocket. */
  readonly isPage: boolean
}

export class PhoneAlgorithms {
  readonly #max: number
  /** Challenges in a row that stayed unanswered, by phone; the least recently challenged first. */
  readonly #unanswered = new Map<string, number>()

  /** Remembers at most `max` phones. */
  constructor(max: number) {
    this.#max = max
  }

  /** What the next challenge offers. */
  offer({ phone, userAgent = '', isPage }: Asking): readonly Algorithm[] {
    // A page speaks by JsSIP or SIP.js, under whatever name its author gives it.
    if (isPage || failsWithSeveral.test(userAgent)) return plain
    const unanswered = (this.#unanswered.get(phone) ?? 0) + 1
    this.#unanswered.delete(phone)
    this.#unanswered.set(phone, unanswered)
    if (this.#unanswered.size > this.#max) {
      const [oldest] = this.#unanswered.keys()
      if (oldest !== undefined) this.#unanswered.delete(oldest)
    }
    const isKnown = readsSeveral.test(userAgent)
    if (unanswered > (isKnown ? UNANSWERED.known : UNANSWERED.unknown)) return plain
    return isKnown ? all : plainFirst
  }

  /** The phone has answered with this algorithm. */
  answered(phone: string, algorithm: Algorithm): void {
    const unanswered = this.#unanswered.get(phone)
    if (unanswered === undefined) return
    if (algorithm === 'MD5' && unanswered > UNANSWERED.unknown) return
    this.#unanswered.delete(phone)
  }

  get size(): number {
    return this.#unanswered.size
  }
}
