/**
 * Text messages between registered phones of one tenant (RFC 3428, page mode). Nothing is stored or
 * charged, and nothing leaves for a carrier.
 */
import {
  ANONYMOUS_HOST,
  escapeUser,
  formatNameAddr,
  withoutBrackets,
} from '../../../schema/sip/index.ts'
import { isIP } from 'node:net'
import { takeFrom, TokenBuckets } from '../../flood-guard/token-buckets.ts'
import type { ExtensionOrigin } from '../../routing/routing.ts'
import type { CallDeps } from '../call-deps.ts'
import type { PhoneCandidate } from '../dialing/outgoing-invite.ts'
import {
  calledOf,
  domainOf,
  isAnonymous,
  partyOf,
  respond,
  unsupportedOptions,
} from '../sip-headers.ts'
import type { Answer, Headers, SipRequest } from '../signalling.ts'
import type { ReceivedRequest } from '../user-agent/received-request.ts'
import type { RequestEnd } from '../user-agent/user-agent.ts'
import { innerExtension } from '../inbound/route.ts'
import { identify, isUnproven, respondToPhone, sourceOf } from '../inbound/admission.ts'
import { hopsLeftOf } from '../inbound/incoming-invite.ts'

/** §8: the limit of a request where a hop may lack congestion control. */
const MAX_BYTES = 1_300

/** The rate of one extension; a person types more slowly. */
const RATE = { packetsPerSecond: 2, burst: 20, maxSources: 10_000 }

/** Messages on their way at the same time, each to as many phones as its extension has. */
const MAX_UNDER_WAY = 1_000

/** The sender gives up after 32 s (RFC 3261, timer F), and RFC 4320 forbids a late answer. */
const ANSWER_MS = 15_000

/** Headers of the message that pass: they do not reveal the location of its sender. */
const passedHeaders = [
  'content-type',
  'content-disposition',
  'content-encoding',
  'content-language',
  'mime-version',
  'subject',
  'date',
  'expires',
  'priority',
  'in-reply-to',
]

export interface MessageTotals {
  readonly delivered: number
  readonly refused: number
}

interface Refusal {
  readonly status: number
  readonly reason?: string
  readonly headers?: Headers
}

export class Messages {
  readonly #deps: CallDeps
  readonly #rates = new TokenBuckets(RATE)
  readonly #totals = { delivered: 0, refused: 0 }
  #underWay = 0

  constructor(deps: CallDeps) {
    this.#deps = deps
  }

  get totals(): MessageTotals {
    return this.#totals
  }

  /** Answers one MESSAGE outside any dialog. */
  take(request: ReceivedRequest, answer: Answer): void {
    const identified = identify(request, this.#deps)
    request.isFromStranger = isUnproven(identified)
    if (identified.kind === 'challenged') return respondToPhone(answer, identified.answer)
    const { origin } = identified
    if (origin.kind === 'unknown')
      this.#deps.onUnknownSource(sourceOf(request), identified.unknownDomain)
    if (origin.kind !== 'extension') return this.#refuse(answer, { status: 403 })
    const rejection = this.#rejectionFor(request, origin)
    if (rejection) return this.#refuse(answer, rejection)
    const phones = this.#phonesFor(request, origin)
    if (phones === undefined) return this.#refuse(answer, { status: 404 })
    if (phones.length === 0) return this.#refuse(answer, { status: 480 })
    return this.#deliver(phones, request, origin, answer)
  }

  #rejectionFor(request: SipRequest, { extensionId }: ExtensionOrigin): Refusal | undefined {
    const { calls, now, retryAfterSeconds } = this.#deps
    const later = { 'Retry-After': String(retryAfterSeconds) }
    const { headers } = request
    if (calls.isDraining || this.#underWay >= MAX_UNDER_WAY) return { status: 503, headers: later }
    if (sizeOf(request) > MAX_BYTES) return { status: 513, reason: 'Message Too Large' }
    const unsupported = unsupportedOptions(headers['require'])
    if (unsupported !== '') return { status: 420, headers: { Unsupported: unsupported } }
    if (hopsLeftOf(headers) < 0) return { status: 483 }
    const bucket = this.#rates.of(String(extensionId), now())
    // A 503 would make a phone take the whole server for dead.
    return takeFrom(bucket, RATE, now()) ? undefined : { status: 480, headers: later }
  }

  /** Undefined: the Request-URI names no extension of the sender's tenant. */
  #phonesFor({ uri }: SipRequest, origin: ExtensionOrigin): readonly PhoneCandidate[] | undefined {
    const { registrar } = this.#deps
    const called = calledOf(uri)
    const domain = domainOf(called)
    const isHere = registrar.tenantOf(domain) !== undefined || this.#isOurHost(domain)
    if (!isHere || called.number === '') return undefined
    const extension = innerExtension(origin, called.number, domain, this.#deps)
    return extension?.tenantId === origin.tenantId ? extension.phones : undefined
  }

  /** A phone without a domain writes the address of its server, as it sees it. */
  #isOurHost(host: string): boolean {
    return isIP(withoutBrackets(host)) !== 0 || this.#deps.client.ownHost.startsWith(`${host}:`)
  }

  /** Sends to all phones at the same time: the first 2xx counts (RFC 3428 §4). */
  #deliver(
    phones: readonly PhoneCandidate[],
    request: ReceivedRequest,
    origin: ExtensionOrigin,
    answer: Answer,
  ): void {
    const { client, deadlines, now } = this.#deps
    const refusals: number[] = []
    let isOver = false
    this.#underWay += 1
    const end = (settle: () => void): void => {
      if (isOver) return
      isOver = true
      this.#underWay -= 1
      deadlines.cancel(deadline)
      settle()
    }
    const refuse = (): void => end(() => this.#refuse(answer, { status: worstOf(refusals) }))
    const deadline = deadlines.at(now() + ANSWER_MS, refuse)
    const onEnd = (result: RequestEnd): void => {
      const status = 'status' in result ? result.status : 480
      if (status < 300)
        return end(() => {
          this.#totals.delivered += 1
          respond(answer, status === 202 ? 202 : 200)
        })
      refusals.push(status)
      return refusals.length === phones.length ? refuse() : undefined
    }
    for (const phone of phones) {
      const { uri, nextHop } = phone
      const headers = headersFor(phone, request, origin)
      const { body } = request
      client.send(
        { method: 'MESSAGE', uri, nextHop, headers, body, near: request.transactionId },
        onEnd,
      )
    }
  }

  #refuse(answer: Answer, { status, reason, headers = {} }: Refusal): void {
    this.#totals.refused += 1
    respond(answer, status, reason, { headers })
  }
}

/**
 * Returns the headers for a phone. From names the authenticated extension, whatever the sender
 * wrote.
 */
function headersFor(phone: PhoneCandidate, request: SipRequest, origin: ExtensionOrigin): Headers {
  const from = partyOf(request.headers['from'] ?? '')
  const headers: Headers = {
    From: isAnonymous(from)
      ? formatNameAddr('Anonymous', `sip:anonymous@${ANONYMOUS_HOST}`)
      : formatNameAddr(origin.displayName, `sip:${escapeUser(origin.extension)}@${origin.domain}`),
    To: `<sip:${escapeUser(phone.extension)}@${phone.domain}>`,
    'Max-Forwards': String(hopsLeftOf(request.headers)),
  }
  for (const name of passedHeaders) {
    const value = request.headers[name]
    if (value !== undefined) headers[name] = value
  }
  if (request.body) headers['content-type'] ??= 'text/plain'
  if (phone.routes.length > 0) headers['Route'] = phone.routes.join(', ')
  return headers
}

/** The approximate size on the wire. */
function sizeOf({ uri, headers, body }: SipRequest): number {
  let size = uri.length + 'MESSAGE  SIP/2.0\r\n\r\n'.length + Buffer.byteLength(body)
  for (const name in headers) size += name.length + 4 + (headers[name]?.length ?? 0)
  return size
}

/**
 * RFC 3261 §16.7 step 6: the decision of a person has precedence over the limits of a device. The
 * sender does not see challenges and other responses that concern only us.
 */
function worstOf(refusals: readonly number[]): number {
  const declined = refusals.find((status) => status >= 600)
  if (declined !== undefined) return declined
  const passedOn = refusals.find((status) => [413, 415, 486, 488, 405].includes(status))
  return passedOn ?? 480
}
