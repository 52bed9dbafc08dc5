/**
 * Which commands carry a session description, and whether it is an offer or an answer (RFC 3264).
 * Pure.
 */
import { silentAnswer } from '../../call/sdp.ts'
import type { LegCommand } from '../../call/signalling.ts'
import { type MediaLeg, otherLeg, type RelayResult, type RelaySession } from './session.ts'
import type { NgAnswer, NgDictionary, NgRequest } from '../relay/relays.ts'

export type SdpRole = 'offer' | 'answer'

export type Describing = Extract<
  LegCommand,
  {
    readonly type:
      'accept' | 'acknowledge' | 'acknowledgeReinvite' | 'answerRequest' | 'request' | 'respond'
  }
>

/** Why a description is not sent. */
export interface MediaRefusal {
  readonly status: number
  readonly reason: string
  /** The `denial_code` of the record, where it ends the call. */
  readonly code: string
  /** The reason that the attempt has in the record. */
  readonly why: string
}

export const relayUnavailable: MediaRefusal = {
  status: 503,
  reason: 'Media Relay Unavailable',
  code: 'media_relay_unavailable',
  why: 'no media relay',
}

const notAcceptable = { status: 488, reason: 'Not Acceptable Here' } as const

/** RFC 3261 §21.4.26. */
export const unreadable: MediaRefusal = {
  ...notAcceptable,
  code: 'unreadable_description',
  why: 'an unreadable description',
}

/** RFC 6157 §4.2. */
export const noCommonVersion: MediaRefusal = {
  ...notAcceptable,
  code: 'no_common_ip_version',
  why: 'no common IP version',
}

/** RFC 3264 §6.1: the answer does not match the offer. */
export const mismatched: MediaRefusal = { ...unreadable, why: 'an answer that does not match' }

/** The SDP of a command. Undefined: it has no body, or a body of another type. */
export function descriptionIn(command: LegCommand): string | undefined {
  switch (command.type) {
    case 'accept':
    case 'acknowledge':
      return command.sdp || undefined
    case 'acknowledgeReinvite':
      return command.body || undefined
    case 'respond':
    case 'answerRequest':
    case 'request':
      return command.body !== undefined && isDescription(command.body) ? command.body : undefined
    default:
      return undefined
  }
}

export const isDescription = (body: string | undefined): body is string =>
  body !== undefined && /^v=0\r?\n/.test(body)

/** A body of another type, such as `multipart/mixed`, may contain an SDP. */
export const hasBody = (command: Describing): boolean =>
  Boolean('sdp' in command ? command.sdp : command.body)

export const isDescribing = (command: LegCommand): command is Describing =>
  'sdpOwner' in command && command.sdpOwner !== undefined

export const roleOf = (command: Describing, leg: MediaLeg): SdpRole => {
  switch (command.type) {
    case 'request':
      return 'offer'
    case 'accept':
    case 'respond':
      return leg.hasOffered ? 'answer' : 'offer'
    case 'answerRequest':
      return command.requestId === leg.lateOffer ? 'offer' : 'answer'
    case 'acknowledge':
    case 'acknowledgeReinvite':
    default:
      return 'answer'
  }
}

/** The command with another description. */
export function withDescription<C extends LegCommand>(command: C, sdp: string | undefined): C {
  return 'sdp' in command ? { ...command, sdp: sdp ?? '' } : { ...command, body: sdp }
}

/**
 * The command with an SDP without media, for the streams of `sdp`: the SDP of the peer cannot be
 * sent.
 */
export const silenced = (command: Describing, sdp: string): LegCommand => ({
  ...withDescription(command, sdp === '' ? undefined : silentAnswer(sdp)),
  sdpOwner: undefined,
})

/** `sdp` is the offer of `from`. */
export function offerOf(
  session: RelaySession,
  from: string,
  sdp: string,
  flags: NgDictionary,
): NgRequest {
  const to = otherLeg(session, from)
  const tags = { 'from-tag': from, 'to-tag': to }
  return { ...flags, command: 'offer', 'call-id': session.id, ...tags, sdp: tidied(sdp) }
}

/** The tags are those of the offer. */
export function answerOf(
  session: RelaySession,
  from: string,
  sdp: string,
  flags: NgDictionary,
): NgRequest {
  const to = otherLeg(session, from)
  const tags = { 'from-tag': to, 'to-tag': from }
  return { ...flags, command: 'answer', 'call-id': session.id, ...tags, sdp: tidied(sdp) }
}

/**
 * As rtpengine reads it: 10.5 refuses lines that are none and `c=in ip4`, and writes a wrong `m=`
 * where two blanks are together.
 */
function tidied(sdp: string): string {
  if (!isUntidy.test(sdp)) return sdp
  const lines = sdp.split(/\r?\n/).filter((line) => /^[a-z]=/.test(line))
  return [...lines.map(tidiedLine), ''].join('\r\n')
}

const isUntidy = /\n(?!(?:[a-z]=|\r?$))|\n[cm]=[^\n]*(?: {2}|\t)|[ \t]\r?\n|\nc=(?!IN IP[46] )/

function tidiedLine(line: string): string {
  const text = line.trimEnd()
  if (!/^[cm]=/.test(text)) return text
  const single = text.replace(/[ \t]+/g, ' ')
  return single.replace(/^c= ?in ip([46])\b/i, 'c=IN IP$1')
}

export const deleteOf = (id: string): NgRequest => ({
  command: 'delete',
  'call-id': id,
  'delete-delay': 0,
})

/**
 * The answer has the statistics: rtpengine returns them only for a tag. Both tags exist once both
 * sides have an answer.
 */
export const deleteWithStatistics = ({
  id,
  legs,
}: Pick<RelaySession, 'id' | 'legs'>): NgRequest => ({
  ...deleteOf(id),
  'from-tag': legs[0],
})

/** An SDP without streams counts as failed. */
export function rewrittenIn(answer: NgAnswer): RelayResult {
  // Another relay could not read it either.
  if (answer.kind === 'error' && /parse SDP/i.test(answer.reason)) return { kind: 'unreadable' }
  if (answer.kind !== 'ok') return { kind: 'failed' }
  const { sdp } = answer.values
  const hasStreams = typeof sdp === 'string' && isDescription(sdp) && /^m=/m.test(sdp)
  return hasStreams ? { kind: 'rewritten', sdp: withoutNames(sdp) } : { kind: 'failed' }
}

/**
 * Whoever is behind a relay is not named by its description: user name of o=, subject, information,
 * page, address and number of its session (RFC 4566 §5.2 to §5.6). rtpengine replaces addresses
 * alone.
 */
function withoutNames(sdp: string): string {
  const media = sdp.indexOf('\nm=')
  return sdp.slice(0, media).replace(named, unnamed) + sdp.slice(media)
}

const named = /^(?:o=\S+|s=.*|[iuep]=.*\r?\n)/gm

/** The lines o= and s= have to be there. */
const unnamed = (text: string): string => (/^[os]/.test(text) ? `${text.charAt(0)}=-` : '')
