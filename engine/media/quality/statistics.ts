/**
 * Reads the statistics in a relay's answer to `query` or `delete`.
 *
 * rtpengine stores a receiver report under the SSRC of its sender. The report is about the stream
 * that this party receives, and so about the stream of the other one. A phone without RTCP sends no
 * reports.
 */
import type { CallQuality, StreamQuality } from '../../../schema/contracts/field-values.ts'
import { dictionaryOf, listOf } from '../relay/bencode.ts'
import type { NgDictionary, NgValue } from '../relay/relays.ts'

/** The tags of the parties: the ids of their legs. */
export interface Tags {
  readonly caller: string
  readonly callee: string
}

/** Undefined: neither party has sent packets. */
export function qualityOf(values: NgDictionary, tags: Tags): CallQuality | undefined {
  const [caller, callee] = [partyOf(values, tags.caller), partyOf(values, tags.callee)]
  const quality = { caller: streamQuality(caller, callee), callee: streamQuality(callee, caller) }
  return quality.caller === null && quality.callee === null ? undefined : quality
}

/** One party as the relay sees it. */
interface Party {
  readonly packets: number
  readonly codec: string | undefined
  /** Its report about the stream of the other party. */
  readonly report: NgDictionary
}

function partyOf(values: NgDictionary, tag: string): Party {
  const streams = streamsOf(values, tag)
  const packets = sum(streams.map(packetsOf))
  const reports = dictionaryOf(values['SSRC'])
  const ssrc = streams
    .map((stream) => positive(stream['SSRC']) ?? '')
    .find((each) => each in reports)
  const report = dictionaryOf(reports[ssrc ?? ''])
  return { packets, codec: codecOf(values, tag), report }
}

/** Null: no packet has come from `sender`. */
function streamQuality({ packets, codec }: Party, { report }: Party): StreamQuality | null {
  if (packets === 0) return null
  const average = dictionaryOf(report['average MOS'])
  const jitterMs = positive(average['jitter'])
  const packetLossPct = lossOf(report, packets)
  const roundTripUs = positive(average['round-trip time'])
  const roundTripMs = roundTripUs ? Math.round(roundTripUs / 100) / 10 : null
  const rest = { jitterMs, packetLossPct, roundTripMs, packets }
  // Ten times the value; 0: none.
  const measured = (positive(average['MOS']) || Infinity) / 10
  const computed =
    jitterMs === null || packetLossPct === null
      ? Infinity
      : mosOf({ jitterMs, packetLossPct, roundTripMs: roundTripMs ?? 0, codec })
  // The relay subtracts 2.5 points of R for each percent of loss, whatever the codec.
  const mos = Math.min(measured, computed)
  if (mos === Infinity) return { mos: null, mosSource: null, ...rest }
  return { mos, mosSource: computed < measured ? 'computed' : 'measured', ...rest }
}

/** The sum is more exact than the average, which has whole percents. */
function lossOf(report: NgDictionary, packets: number): number | null {
  const lost = positive(report['cumulative loss'])
  if (lost === null) return positive(dictionaryOf(report['average MOS'])['packet loss'])
  return Math.round((1_000 * lost) / (packets + lost)) / 10
}

/**
 * When the relay has taken the last packet of media from either party, in seconds UTC by its clock,
 * and how many it has taken in all: of video and fax (UDPTL), too. Both are 0 if none has come: a
 * stream without packets has the time at which it was opened.
 */
export function lastPacketOf(values: NgDictionary, tags: readonly string[]) {
  const streams = tags
    .flatMap((tag) => mediasOf(values, tag).flatMap(streamsIn))
    .filter((each) => packetsOf(each) > 0)
  const seconds = streams.map((stream) => positive(stream['last packet']) ?? 0)
  return { seconds: Math.max(0, ...seconds), packets: sum(streams.map(packetsOf)) }
}

/** RTP and RTCP, of audio. */
const streamsOf = (values: NgDictionary, tag: string): readonly NgDictionary[] =>
  audioOf(values, tag).flatMap(streamsIn)

const streamsIn = (media: NgDictionary): readonly NgDictionary[] =>
  listOf(media['streams']).map(dictionaryOf)

const audioOf = (values: NgDictionary, tag: string): readonly NgDictionary[] =>
  mediasOf(values, tag).filter(({ type }) => type === 'audio')

const mediasOf = (values: NgDictionary, tag: string): readonly NgDictionary[] =>
  listOf(dictionaryOf(dictionaryOf(values['tags'])[tag])['medias']).map(dictionaryOf)

/** UDPTL, too, has this flag; RTCP has not. */
const isRtp = (stream: NgDictionary): boolean => listOf(stream['flags']).includes('RTP')

const packetsOf = (stream: NgDictionary): number =>
  isRtp(stream) ? (positive(dictionaryOf(stream['stats'])['packets']) ?? 0) : 0

/** The name in a codec such as `PCMA/8000`. */
function codecOf(values: NgDictionary, tag: string): string | undefined {
  const codec = audioOf(values, tag)[0]?.['codec']
  return typeof codec === 'string' ? codec.split('/', 1)[0] : undefined
}

const positive = (value: NgValue | undefined): number | null =>
  typeof value === 'number' && value >= 0 ? value : null

const sum = (numbers: readonly number[]): number => numbers.reduce((all, each) => all + each, 0)

// The MOS by the E-model of ITU-T G.107 with its defaults, from delay, jitter and loss.

interface StreamFigures {
  readonly jitterMs: number
  /** 0 to 100. */
  readonly packetLossPct: number
  readonly roundTripMs: number
  /** The name in SDP, such as `PCMA`. Undefined: counts as G.711. */
  readonly codec: string | undefined
}

/** Equipment impairment and robustness against loss (ITU-T G.113, appendix I). */
interface Impairment {
  readonly ie: number
  readonly bpl: number
}

/** Whether a phone conceals losses (G.711, appendix I) is unknown; the codec itself does not. */
const g711: Impairment = { ie: 0, bpl: 4.3 }
/** For other codecs: as G.711 with concealment, which their decoders have. */
const concealed: Impairment = { ie: 0, bpl: 25.1 }

const impairments: Readonly<Record<string, Impairment>> = {
  '': g711,
  PCMU: g711,
  PCMA: g711,
  G711U: g711,
  G711A: g711,
  G729: { ie: 11, bpl: 19 },
  G723: { ie: 15, bpl: 16.1 },
  AMR: { ie: 5, bpl: 10 },
}

/** R without any impairment by the network. */
const BEST_R = 93.2
/** Above this one-way delay people begin to interrupt each other. */
const NOTICED_DELAY_MS = 177.3

/** 1 to 4.4, with one decimal. */
export function mosOf({ jitterMs, packetLossPct, roundTripMs, codec = '' }: StreamFigures): number {
  const { ie, bpl } = impairments[codec.toUpperCase()] ?? concealed
  // A buffer holds about twice the jitter back.
  const delayMs = roundTripMs / 2 + 2 * jitterMs
  const late = Math.max(0, delayMs - NOTICED_DELAY_MS)
  const byDelay = 0.024 * delayMs + 0.11 * late
  const byLoss = ie + ((95 - ie) * packetLossPct) / (packetLossPct + bpl)
  return mosOfR(BEST_R - byDelay - byLoss)
}

/** ITU-T G.107, annex B. */
function mosOfR(r: number): number {
  if (r <= 0) return 1
  const bounded = Math.min(r, 100)
  const mos = 1 + 0.035 * bounded + bounded * (bounded - 60) * (100 - bounded) * 7e-6
  return Math.max(1, Math.round(mos * 10) / 10)
}
