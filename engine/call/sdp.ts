/**
 * Session descriptions: their streams (RFC 4566 §5), and third-party call control (RFC 3725 §4, RFC
 * 3264). Pure.
 */
import { isIP } from 'node:net'

/** The answer to an offer that lets no media flow: every stream goes nowhere. */
export function silentAnswer(offer: string): string {
  return [...session, ...mediaSections(offer).flatMap(silenced), ''].join('\r\n')
}

/** An offer without media, in the codecs that every phone has. */
export const silentOffer: string = [
  'v=0',
  'o=- 1 1 IN IP4 0.0.0.0',
  's=-',
  'c=IN IP4 0.0.0.0',
  't=0 0',
  'm=audio 9 RTP/AVP 9 8 0 101',
  'a=rtpmap:9 G722/8000',
  'a=rtpmap:8 PCMA/8000',
  'a=rtpmap:0 PCMU/8000',
  'a=rtpmap:101 telephone-event/8000',
  'a=inactive',
  '',
].join('\r\n')

/** A body of another type, such as multipart, cannot be sent on: its Content-Type is not stored. */
export const canBeOffered = (media: string): boolean => media.startsWith('v=0')

/** A phone's answer to one party, as its offer to another. */
export const asOffer = (answer: string): string =>
  answer.replace(/^a=(inactive|recvonly|sendonly)(?=\r?$)/gm, 'a=sendrecv')

const session = ['v=0', 'o=- 1 1 IN IP4 0.0.0.0', 's=-', 'c=IN IP4 0.0.0.0', 't=0 0']

/** The lines of each media description, without those of the session. */
function mediaSections(sdp: string): string[][] {
  const sections: string[][] = []
  for (const line of sdp.split(/\r?\n/))
    if (line.startsWith('m=')) sections.push([line])
    else if (line !== '') sections.at(-1)?.push(line)
  return sections
}

/** Port 9 is the discard port: 0 would refuse the stream for good (RFC 3264 §6). */
function silenced([media = '', ...attributes]: readonly string[]): string[] {
  const codecs = attributes.filter((line) => /^a=(rtpmap|fmtp):/.test(line))
  return [media.replace(/^m=(\S+) \d+(\/\d+)?/, 'm=$1 9'), ...codecs, 'a=inactive']
}

/**
 * Whether two parties agree that got each other's descriptions one after the other: `offered` is
 * the first party's as sent to the second, `answered` the answer, and `final` the first party's
 * reply to that. Where `final` differs from `offered`, the second party needs another re-INVITE.
 */
export function agrees(offered: string, answered: string, final: string): boolean {
  const [offers, answers, finals] = [streamsOf(offered), streamsOf(answered), streamsOf(final)]
  return finals.every(({ address, port, direction, formats }, index) => {
    const [before, chosen] = [offers[index], answers[index]]
    return (
      address === before?.address &&
      port === before.port &&
      direction === before.direction &&
      chosen?.formats.every((format) => formats.includes(format)) === true
    )
  })
}

/**
 * Makes the answer to an offer of a party from what the party has been offered (RFC 3264 §6): the
 * same, without what it does not offer. `last` was sent to it last. Undefined: no stream is left.
 */
export function asAnswer(own: string, offer: string, last: string): string | undefined {
  const [offered, streams, sections] = [streamsOf(offer), streamsOf(own), mediaSections(own)]
  const answers = offered.map((stream, at) => answeredStream(stream, streams[at], sections[at]))
  if (answers.every((lines) => lines.length === 1)) return undefined
  const start = own.search(/^m=/m)
  const next = own.slice(0, start) + [...answers.flat(), ''].join('\r\n')
  return continued(last, next)
}

/** One line where the stream is refused. */
function answeredStream(
  offered: Stream,
  own: Stream | undefined,
  section: readonly string[] = [],
): readonly string[] {
  const { kind, port, protocol, formats, codecNames, direction } = offered
  const isSame = own?.kind === kind && own.protocol === protocol
  const isOn = isSame && !port.startsWith('0') && !own.port.startsWith('0')
  const isShared = (format: string): boolean => {
    const [ours, theirs] = [own?.codecNames.get(format), codecNames.get(format)]
    const isKnown = ours !== undefined && theirs !== undefined
    return formats.includes(format) && (!isKnown || ours.toLowerCase() === theirs.toLowerCase())
  }
  const shared = isOn ? own.formats.filter(isShared) : []
  if (own === undefined || shared.length === 0)
    return [`m=${kind} 0 ${protocol} ${formats.join(' ')}`]
  const kept = section.slice(1).filter((line) => {
    const [, format] = /^a=(?:rtpmap|fmtp):(\d+)/.exec(line) ?? []
    return !directionLine.test(line) && (format === undefined || shared.includes(format))
  })
  const [media = ''] = section
  const line = media.replace(/^(m=\S+ \S+ \S+).*/, `$1 ${shared.join(' ')}`)
  return [line, ...kept, `a=${answeringDirection(direction, own.direction)}`]
}

/** RFC 3264 §6.1. */
function answeringDirection(offered: string, own: string): string {
  const sends = offered !== 'sendonly' && offered !== 'inactive' && own.startsWith('send')
  const receives =
    offered !== 'recvonly' && offered !== 'inactive' && own !== 'sendonly' && own !== 'inactive'
  if (sends) return receives ? 'sendrecv' : 'sendonly'
  return receives ? 'recvonly' : 'inactive'
}

/**
 * Whether two descriptions have the same streams, wherever they lead: the same codecs in the same
 * directions.
 */
export function isAlike(one: string, other: string): boolean {
  const [ones, others] = [streamsOf(one), streamsOf(other)]
  const isSame = (stream: Stream, at: number): boolean => {
    const match = others[at]
    return (
      match !== undefined &&
      stream.kind === match.kind &&
      stream.protocol === match.protocol &&
      stream.direction === match.direction &&
      stream.formats.join() === match.formats.join()
    )
  }
  return ones.length === others.length && ones.every(isSame)
}

/** Whether two descriptions say the same, whoever says it: all but `o=`. */
export function isEqual(one: string, other: string): boolean {
  const [own, next] = [originLine.exec(one), originLine.exec(other)]
  if (own === null || next === null) return one === other
  return bodyAround(one, own) === bodyAround(other, next)
}

export interface Stream {
  /** `audio`, `video`, … */
  readonly kind: string
  /** The address of its `c=` line, or of that of the session, such as `IN IP4 192.0.2.1`. */
  readonly address: string
  /** Begins with 0: there is no such stream (RFC 3264 §6). */
  readonly port: string
  readonly protocol: string
  readonly direction: string
  readonly formats: readonly string[]
  /** Names of codecs from `a=rtpmap`, by format. */
  readonly codecNames: ReadonlyMap<string, string>
}

export function streamsOf(sdp: string): readonly Stream[] {
  const session = { address: '', direction: 'sendrecv' }
  const streams: (Stream & typeof session & { readonly codecNames: Map<string, string> })[] = []
  for (const line of sdp.split(/\r?\n/)) {
    const last = streams.at(-1)
    if (line.startsWith('m=')) {
      const [kind = '', port = '', protocol = '', ...formats] = line.slice(2).trimEnd().split(' ')
      streams.push({ kind, port, protocol, formats, ...session, codecNames: new Map() })
    } else if (line.startsWith('c=')) (last ?? session).address = line.slice(2)
    else if (line.startsWith('a=rtpmap:')) {
      const [, format, name] = /^a=rtpmap:(\d+) ([^/\s]+)/.exec(line) ?? []
      if (format !== undefined && name !== undefined) last?.codecNames.set(format, name)
    } else if (directionLine.test(line)) (last ?? session).direction = line.slice(2)
  }
  return streams
}

const directionLine = /^a=(?:sendrecv|sendonly|recvonly|inactive)$/

/**
 * RFC 3264 §8.4, and the older way of a null address. Audio counts before video; refused streams do
 * not count.
 */
export function isHold(sdp: string): boolean {
  // Most descriptions have none of these.
  if (!/a=(?:sendonly|inactive)|c=IN IP(?:4 0\.0\.0\.0|6 ::)/.test(sdp)) return false
  const live = streamsOf(sdp).filter(({ port }) => !port.startsWith('0'))
  const spoken = live.filter(({ kind }) => kind === 'audio')
  const streams = spoken.length > 0 ? spoken : live
  return streams.length > 0 && streams.every(isSilent)
}

const isSilent = ({ direction, address }: Stream): boolean =>
  direction === 'sendonly' || direction === 'inactive' || nullAddress.test(address)

const nullAddress = /^IN IP(?:4 0\.0\.0\.0|6 ::)$/

const originLine = /^o=(\S+ \S+) (\d+) ([^\r\n]*)/m

/**
 * Returns `next` as the description after `last` in one dialog: with the origin of `last` and its
 * next version, or the same version where nothing else differs. A description without a readable o=
 * line is left unchanged.
 */
export function continued(last: string, next: string): string {
  const [before, after] = [originLine.exec(last), originLine.exec(next)]
  if (!before || !after) return next
  const [own, session = '', version = '0', address = ''] = before
  if (bodyAround(last, before) === bodyAround(next, after)) return replaced(next, after, own)
  return replaced(next, after, `o=${session} ${BigInt(version) + 1n} ${address}`)
}

function bodyAround(sdp: string, { index, 0: { length } }: RegExpExecArray): string {
  return `${sdp.slice(0, index)}${sdp.slice(index + length)}`
}

function replaced(sdp: string, { index, 0: { length } }: RegExpExecArray, by: string): string {
  return `${sdp.slice(0, index)}${by}${sdp.slice(index + length)}`
}

/** An IP version, as `c=` has it (RFC 4566 §5.7). */
export type Family = 'IP4' | 'IP6'

/**
 * The IP versions of each stream (ANAT has two, RFC 4092), and of its candidates (RFC 8839 §5.1)
 * and alternatives (RFC 6947).
 */
export function familiesIn(
  sdp: string,
  streams: readonly Stream[] = streamsOf(sdp),
): readonly Family[] {
  const found = new Set<Family>()
  for (const { address, port } of streams) {
    const family = /^IN (IP[46])/.exec(address)?.[1]
    if (isFamily(family) && !port.startsWith('0') && !isNowhere.test(address)) found.add(family)
  }
  if (found.size === 0) return []
  if (sdp.includes('\na=candidate:'))
    for (const [, address = ''] of sdp.matchAll(candidateLine))
      if (isIP(address) !== 0) found.add(isIP(address) === 6 ? 'IP6' : 'IP4')
  if (sdp.includes('\na=altc:'))
    for (const [, family] of sdp.matchAll(alternativeLine)) if (isFamily(family)) found.add(family)
  return [...found]
}

const isFamily = (text: string | undefined): text is Family => text === 'IP4' || text === 'IP6'
/** RFC 3264 §8.4, RFC 6157 §4.2.1: on hold, or for an offer that has no address yet. */
const isNowhere = /^IN IP(?:4 0\.0\.0\.0|6 ::)$|\.invalid$/i
const candidateLine = /^a=candidate:\S+ \d+ \S+ \d+ (\S+)/gm
const alternativeLine = /^a=altc:\d+ (IP[46])/gm

/** RFC 6157: both are known, and have no version in common. */
export const areApart = (ones: readonly Family[], others: readonly Family[]): boolean =>
  ones.length > 0 && others.length > 0 && !ones.some((family) => others.includes(family))
