import { type Algorithm } from './digest.ts'
import { recentlyUsed } from '../../../schema/recently-used.ts'

/** Phones whose unanswered challenges are counted. */
const MAX_PHONES = 10_000

const all: readonly Algorithm[] = ['SHA-256', 'MD5']
const plainFirst: readonly Algorithm[] = ['MD5', 'SHA-256']
const plain: readonly Algorithm[] = ['MD5']

/** Linphone's phones; baresip from 3.11; PJSUA from 2.11. */
const readsSeveral =
  /^(linphone|baresip v(3\.(1[1-9]|[2-9]\d)|[4-9]|[1-9]\d)|pjsua v(2\.(1[1-9]|[2-9]\d)|[3-9]))/i

/**
 * JsSIP and SIP.js; FreeSWITCH and whatever else is made of Sofia-SIP; baresip and PJSUA as they
 * were before.
 */
const failsWithSeveral =
  /jssip|sip\.js|freeswitch|sofia|^baresip v?([0-2]\.|3\.\d\b|3\.10)|pjsua v?([01]\.|2\.\d\b|2\.10)/i

/**
 * A phone that has left so many unanswered gets MD5 alone. A phone that nothing is known of may be
 * made of Sofia-SIP, and gives up at its first challenge: it registers with the next.
 */
const UNANSWERED = { known: 3, unknown: 1 } as const

/** The client that gets a challenge. */
export interface PhoneClient {
  /** User, domain and address in one text. */
  readonly phone: string
  /** Undefined: it does not say what it is. */
  readonly userAgent: string | undefined
  /** The request came by a WebSocket. */
  readonly isPage: boolean
}

/**
 * Chooses the digest algorithms for a phone, one challenge each (RFC 8760 §2.4). A phone that is
 * known to read several challenges: the strongest first. One that is known to fail with several:
 * MD5 alone. All others: MD5 first, because who reads one challenge only takes the first one.
 *
 * There is no order that all would take. SIPp 3.6 ends its test at a first challenge with SHA-256;
 * PJSIP before 2.11 gives up at any; JsSIP and SIP.js take the last one; Sofia-SIP, and libre
 * before 3.11, fail with any second challenge for one realm. MD5 first weakens nothing: a client
 * that knows the password may always answer with it.
 */
export class PhoneAlgorithms {
  /** Challenges in a row that stayed unanswered, by phone; the least recently challenged first. */
  readonly #unanswered = recentlyUsed<string, number>(MAX_PHONES)

  /** The algorithms of the next challenge. */
  offer({ phone, userAgent = '', isPage }: PhoneClient): readonly Algorithm[] {
    // A page speaks by JsSIP or SIP.js, under whatever name its author gives it.
    if (isPage || failsWithSeveral.test(userAgent)) return plain
    const unanswered = (this.#unanswered.get(phone) ?? 0) + 1
    this.#unanswered.set(phone, unanswered)
    const isKnown = readsSeveral.test(userAgent)
    if (unanswered > (isKnown ? UNANSWERED.known : UNANSWERED.unknown)) return plain
    return isKnown ? all : plainFirst
  }

  /** The phone has answered with this algorithm. */
  answered(phone: string, algorithm: Algorithm): void {
    const unanswered = this.#unanswered.peek(phone)
    if (unanswered === undefined) return
    if (algorithm === 'MD5' && unanswered > UNANSWERED.unknown) return
    this.#unanswered.delete(phone)
  }
}
