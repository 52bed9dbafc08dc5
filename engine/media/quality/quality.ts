/** The quality of calls: measured by a relay, else reported by the phones. */
import type { Quality } from '../../../schema/contracts/charging.ts'
import type { LiveCall } from '../../call/call-machine/state.ts'
import type { CallMedia, ClosedSession } from '../call-media.ts'
import { MediaTimeout, type MediaTimeoutDeps } from './media-timeout.ts'
import { numberIn, PhoneReports, type PhoneReportsDeps, streamOf } from './phone-reports.ts'
import { qualityOf, type Tags } from './statistics.ts'
import type { CallQuality, StreamQuality } from '../../../schema/contracts/field-values.ts'
import { type CallParties, sideOf } from '../../call/call-parties.ts'
import {
  identify,
  type IdentifyDeps,
  isUnproven,
  respondToPhone,
  sourceOf,
} from '../../call/inbound/admission.ts'
import type { Answer, Headers } from '../../call/signalling.ts'
import { respond } from '../../call/sip-headers.ts'
import type { ReceivedRequest } from '../../call/user-agent/received-request.ts'
import { takeFrom, TokenBuckets } from '../../flood-guard/token-buckets.ts'

/** The parts that are asked at each call. */
interface QualitySources extends Pick<PublishDeps, 'routing' | 'registrar'> {
  readonly calls: PublishDeps['calls'] & PhoneReportsDeps['calls'] & MediaTimeoutDeps['calls']
  /** Undefined: there are no relays. */
  readonly media: { readonly calls: CallMedia } | undefined
}

interface QualityDeps
  extends
    Pick<PublishDeps, 'onUnknownSource'>,
    Pick<MediaTimeoutDeps, 'deadlines' | 'now' | 'wallNow' | 'onLost'> {
  readonly config: {
    readonly mediaTimeoutMs: number
    readonly mediaTimeoutCharge: MediaTimeoutDeps['charge']
  }
}

/** The functions that call control uses. */
export function createQuality(sources: QualitySources, deps: QualityDeps) {
  const { calls } = sources
  const media = sources.media?.calls
  const { mediaTimeoutMs: timeoutMs, mediaTimeoutCharge: charge } = deps.config
  if (media && timeoutMs > 0) new MediaTimeout({ ...deps, calls, media, timeoutMs, charge }).start()
  const reports = new PhoneReports({ ...deps, calls })
  return {
    qualityOf: (call: LiveCall): Quality | undefined => {
      const measured = media && measuredQuality(call, media)
      const reported = reports.of(call)
      if (measured === undefined || reported === undefined) return measured ?? reported
      return Promise.all([measured, reported]).then(merged)
    },
    onByeHeaders: reports.noteBye,
    publications: new QualityPublications({ ...sources, ...deps, reports }),
  }
}

function merged([measured, reported]: readonly [CallQuality | undefined, CallQuality | undefined]):
  CallQuality | undefined {
  if (measured === undefined || reported === undefined) return measured ?? reported
  const { caller, callee } = measured
  return { caller: better(caller, reported.caller), callee: better(callee, reported.callee) }
}

/** Without RTCP a relay knows only the packets. */
const better = (measured: StreamQuality | null, reported: StreamQuality | null) =>
  measured !== null && measured.mos !== null ? measured : (reported ?? measured)

/** Undefined: the call was not answered, or had no session at a relay. */
export function measuredQuality(
  { answeredAt, start, legs }: LiveCall,
  media: Pick<CallMedia, 'closedSessions'>,
): Quality | undefined {
  if (answeredAt === null) return undefined
  const { caller, callee } = legs
  return media
    .closedSessions(start.callUuid)
    ?.then((sessions) => combined(sessions, { caller, callee }))
}

/**
 * If a call had several sessions, the one with the most packets of a party counts for that party.
 */
function combined(
  sessions: readonly ClosedSession[],
  legs: LiveCall['legs'],
): CallQuality | undefined {
  const qualities = sessions.flatMap(({ session, values }) => {
    const quality = values && qualityOf(values, tagsOf(session.legs, legs))
    return quality === undefined ? [] : [quality]
  })
  if (qualities.length === 0) return undefined
  return {
    caller: longest(qualities.map(({ caller }) => caller)),
    callee: longest(qualities.map(({ callee }) => callee)),
  }
}

/** One leg of a session may belong to another call. */
function tagsOf([first, second]: readonly [string, string], legs: LiveCall['legs']): Tags {
  const isTurned = first === legs.callee || second === legs.caller
  return isTurned ? { caller: second, callee: first } : { caller: first, callee: second }
}

const longest = (streams: readonly (StreamQuality | null)[]): StreamQuality | null =>
  streams.reduce((most, each) => ((each?.packets ?? 0) > (most?.packets ?? 0) ? each : most), null)

// PUBLISH with a voice quality report (RFC 6035 §4, RFC 3903): from a party of the call that it is
// about, or refused.

interface PublishDeps {
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
/** The rate of one address. A phone sends one report for each call, or one every few seconds. */
const RATE = { packetsPerSecond: 10, burst: 50, maxSources: 10_000 }

class QualityPublications {
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
    // RFC 3903 §6: there is no state that could be refreshed.
    return respond(answer, 200, undefined, {
      headers: { 'SIP-ETag': parties.callUuid, Expires: '0' },
    })
  }
}

const word = (value = ''): string => (value.split(';', 1)[0] ?? '').trim().toLowerCase()

/** A voice quality report of a phone: `application/vq-rtcpxr` (RFC 6035). Pure. */
interface VqReport {
  readonly callId: string
  /** The stream that the phone has received. */
  readonly local: StreamQuality | undefined
  /** The stream that the other party has received, as far as the phone knows. */
  readonly remote: StreamQuality | undefined
}

const MAX_REPORT_BYTES = 8_192
const MAX_LINES = 100
const MAX_MS = 60_000

type Metrics = ReadonlyMap<string, string>

/** Undefined: the body is not such a report. */
export function readVqReport(body: string): VqReport | undefined {
  if (body.length > MAX_REPORT_BYTES) return undefined
  const lines = body.split(/\r?\n/, MAX_LINES)
  if (!/^VQ(?:Session|Interval|Alert)Report\b/i.test(lines[0] ?? '')) return undefined
  const callId = valueOf(lines, 'CallID')
  if (callId === undefined || callId === '') return undefined
  const remoteAt = lines.findIndex((line) => /^RemoteMetrics\s*:/i.test(line))
  const localAt = lines.findIndex((line) => /^LocalMetrics\s*:/i.test(line))
  const end = remoteAt === -1 ? lines.length : remoteAt
  return {
    callId,
    local: localAt === -1 ? undefined : streamIn(lines.slice(localAt, end)),
    remote: remoteAt === -1 ? undefined : streamIn(lines.slice(remoteAt)),
  }
}

function valueOf(lines: readonly string[], name: string): string | undefined {
  const prefix = `${name.toLowerCase()}:`
  const line = lines.find((each) => each.toLowerCase().startsWith(prefix))
  return line?.slice(prefix.length).trim()
}

function streamIn(lines: readonly string[]): StreamQuality | undefined {
  const metrics = (name: string): Metrics => metricsOf(valueOf(lines, name) ?? '')
  const [loss, delay, quality] = [metrics('PacketLoss'), metrics('Delay'), metrics('QualityEst')]
  const stream = streamOf({
    // Network loss, and what came too late to be played.
    packetLossPct: sumOf(numberIn(loss.get('NLR'), 100), numberIn(loss.get('JDR'), 100)),
    jitterMs: numberIn(delay.get('IAJ'), MAX_MS),
    roundTripMs: numberIn(delay.get('RTD'), MAX_MS),
    // RFC 6035 has no count of packets.
    packets: 0,
    mos: numberIn(quality.get('MOSLQ'), 5) ?? numberIn(quality.get('MOSCQ'), 5),
    codec: metrics('SessionDesc').get('PD'),
  })
  const { mos, jitterMs, packetLossPct } = stream
  return mos === null && jitterMs === null && packetLossPct === null ? undefined : stream
}

/** `NAME=value` between blanks; 127 stands for what is not known (RFC 6035 §4.6). */
function metricsOf(text: string): Metrics {
  const pairs = text.split(/\s+/, MAX_LINES).flatMap((part) => {
    const [name = '', value] = part.split('=', 2)
    return value === undefined ? [] : [[name.toUpperCase(), value] as const]
  })
  return new Map(pairs)
}

const sumOf = (first: number | null, second: number | null): number | null =>
  first === null ? second : Math.min(100, Math.round(10 * (first + (second ?? 0))) / 10)
