/** PUBLISH with a voice quality report (RFC 6035 §4, RFC 3903): from a party of the call that it is about, or refused. */
import { respondToPhone, sourceOf } from '../../call/phones/register.ts'
import { identify, isUnproven, type IdentifyDeps } from '../../call/inbound/identify.ts'
import { sideOf, type CallParties } from '../../call/call-parties.ts'
import { respond } from '../../call/sip/answers.ts'
import type { Answer, Headers } from '../../call/signalling.ts'
import type { ReceivedRequest } from '../../call/user-agent/received-request.ts'
import { takeFrom, TokenBuckets } from '../../guard/token-buckets.ts'
import type { PhoneReports } from './phone-reports.ts'
import { MAX_REPORT_BYTES, readVqReport } from './vq-report.ts'

export interface PublishDeps {
  readonly routing: IdentifyDeps['routing']
  readonly registrar: IdentifyDeps['registrar']
  readonly calls: {
    /** The call with such a leg, that lives or ended a moment ago. */
    withLeg(callId: string): CallParties | undefined
  }
  readonly reports: Pick<PhoneReports, 'take'>
  readonly onUnknownSource: (source: ReturnType<typeof sourceOf>) => void
  /** Milliseconds by the steady clock. */
  readonly now: () => number
}

const EVENT = 'vq-rtcpxr'
const CONTENT_TYPE = 'application/vq-rtcpxr'
/** Of one address; a phone sends one report for each call, some of them one every few seconds. */
const RATE = { packetsPerSecond: 10, burst: 50, maxSources: 10_000 }

export class QualityPublications {
  readonly #deps: PublishDeps
  readonly #rates = new TokenBuckets(RATE)

  constructor(deps: PublishDeps) {
    this.#deps = deps
  }

  /** Answers one PUBLISH outside any dialog. */
  take(request: ReceivedRequest, answer: Answer): void {
    const { headers, body, sourceAddress: address } = request
    const refuse = (status: number, more: Headers = {}): void =>
      respond(answer, status, undefined, { headers: more })
    request.isFromStranger = true
    if (word(headers['event']) !== EVENT) return refuse(489, { 'Allow-Events': EVENT })
    const identified = identify(request, this.#deps)
    request.isFromStranger = isUnproven(identified)
    if (identified.kind === 'challenged') return respondToPhone(answer, identified.answer)
    const { origin } = identified
    if (origin.kind === 'unknown') {
      this.#deps.onUnknownSource(sourceOf(request))
      return refuse(403)
    }
    const now = this.#deps.now()
    if (!takeFrom(this.#rates.of(address, now), RATE, now))
      return refuse(480, { 'Retry-After': '5' })
    if (word(headers['content-type']) !== CONTENT_TYPE) return refuse(415, { Accept: CONTENT_TYPE })
    if (body.length > MAX_REPORT_BYTES) return refuse(413)
    const report = readVqReport(body)
    if (report === undefined) return refuse(400)
    const parties = this.#deps.calls.withLeg(report.callId)
    if (parties === undefined) return refuse(404)
    const side = sideOf(parties, { origin, address, callId: report.callId })
    if (side === undefined) return refuse(403)
    this.#deps.reports.take(parties, side, report.local, report.remote)
    // RFC 3903 §6: nothing is kept that could be refreshed.
    return respond(answer, 200, undefined, {
      headers: { 'SIP-ETag': parties.callUuid, Expires: '0' },
    })
  }
}

const word = (value = ''): string => (value.split(';', 1)[0] ?? '').trim().toLowerCase()
