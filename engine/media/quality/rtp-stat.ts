/**
 * What a phone says in BYE, or in the answer to it, about the RTP it has received: `X-RTP-Stat` (AVM, AudioCodes, Poly,
 * baresip, Snom) and `P-RTP-Stat` (Cisco, Yealink, TelcoBridges). `NAME=value` between commas or semicolons; what is not
 * documented is ignored. Pure.
 */
import type { StreamQuality } from '../../../schema/contracts/field-values.ts'
import { mosOf } from './statistics.ts'

/** A longer value is no statistic. */
const MAX_LENGTH = 1_000
const MAX_PACKETS = 1e9
const MAX_JITTER_MS = 60_000

const names = new Set(['X-RTP-STAT', 'P-RTP-STAT'])

/** Of the headers of a BYE, or of its answer; undefined: there is none. Repeated headers count once. */
export function readRtpStat(headers: Readonly<Record<string, string>>): StreamQuality | undefined {
  for (const name in headers)
    if (name.length === 10 && names.has(name.toUpperCase())) return readValue(headers[name] ?? '')
  return undefined
}

function readValue(value: string): StreamQuality | undefined {
  if (value.length > MAX_LENGTH) return undefined
  const fields = fieldsOf(value)
  const packets = numberIn(fields.get('PR'), MAX_PACKETS)
  if (packets === null || packets === 0) return undefined
  // baresip tells what its peer has received first, then what itself has.
  const isOwnLast = fields.get('EX')?.toLowerCase() === 'baresip'
  const own = (name: string): string | undefined =>
    isOwnLast ? fields.get(name)?.split(',').at(-1) : fields.get(name)
  const lost = numberIn(own('PL'), MAX_PACKETS)
  return streamOf({
    packets,
    jitterMs: numberIn(own('JI'), MAX_JITTER_MS),
    roundTripMs: null,
    packetLossPct: lost === null ? null : Math.round((1_000 * lost) / (packets + lost)) / 10,
    mos: numberIn(fields.get('MOS'), 5),
    codec: fields.get('DE'),
  })
}

interface ReportedStream extends Pick<
  StreamQuality,
  'mos' | 'jitterMs' | 'packetLossPct' | 'roundTripMs' | 'packets'
> {
  readonly codec: string | undefined
}

/** The jitter and loss of a phone that tells no MOS are taken as they are. */
export function streamOf({ mos, codec, ...rest }: ReportedStream): StreamQuality {
  if (mos !== null && mos >= 1) return { mos, mosSource: 'reported', ...rest }
  const { jitterMs, packetLossPct, roundTripMs } = rest
  if (jitterMs === null || packetLossPct === null) return { mos: null, mosSource: null, ...rest }
  const figures = { jitterMs, packetLossPct, roundTripMs: roundTripMs ?? 0, codec }
  return { mos: mosOf(figures), mosSource: 'computed', ...rest }
}

/** Values may have commas: `PL=0,3`. */
function fieldsOf(value: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>()
  let last = ''
  for (const part of value.split(/[;,]/)) {
    const [, name, text] = /^\s*([A-Za-z]{2,3})=(.*)$/.exec(part) ?? []
    if (name === undefined) {
      if (last !== '') fields.set(last, `${fields.get(last)},${part.trim()}`)
      continue
    }
    last = name.toUpperCase()
    if (fields.has(last)) last = ''
    else fields.set(last, text?.trim() ?? '')
  }
  return fields
}

/** The number that a text begins with; null: there is none, or it is none that can be. */
export function numberIn(text: string | undefined, most: number): number | null {
  const [digits] = /^\d{1,10}(?:\.\d{1,6})?/.exec(text ?? '') ?? []
  const value = digits === undefined ? NaN : Number(digits)
  return value <= most ? value : null
}
