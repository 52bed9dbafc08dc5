/** A voice quality report of a phone: `application/vq-rtcpxr` (RFC 6035). Pure. */
import type { StreamQuality } from '../../../schema/contracts/field-values.ts'
import { numberIn, streamOf } from './rtp-stat.ts'

export interface VqReport {
  readonly callId: string
  /** What the phone has heard. */
  readonly local: StreamQuality | undefined
  /** What it knows of what the other party has heard. */
  readonly remote: StreamQuality | undefined
}

export const MAX_REPORT_BYTES = 8_192
const MAX_LINES = 100
const MAX_MS = 60_000

type Metrics = ReadonlyMap<string, string>

/** Undefined: it is no such report. */
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
