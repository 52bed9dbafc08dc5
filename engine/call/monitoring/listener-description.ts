/**
 * Session descriptions of what a supervisor hears: G.711 (RFC 3264). Pure. What its phone sends is taken, and not used:
 * a phone behind NAT has to send, so that media reaches it, and one that may not shows a call on hold.
 */
import { type Stream, streamsOf } from '../sdp.ts'

export interface Endpoint {
  readonly address: string
  readonly port: number
}

/** Where a supervisor hears, and in which codec. */
export interface AudioTarget {
  readonly to: Endpoint
  /** PCMU or PCMA (RFC 3551). */
  readonly payloadType: 0 | 8
}

/** RFC 3264 §6.1, by the direction of the offer. */
const answers: Readonly<Record<string, string>> = {
  sendrecv: 'sendrecv',
  sendonly: 'recvonly',
  recvonly: 'sendonly',
  inactive: 'inactive',
}

const names = { 0: 'PCMU', 8: 'PCMA' } as const

/** Undefined: the offer has no audio that can be sent. */
export function answerListener(
  offer: string,
  from: Endpoint,
): { readonly sdp: string; readonly hearing: AudioTarget | undefined } | undefined {
  const streams = streamsOf(offer)
  const audio = streams.find((stream) => payloadTypeOf(stream) !== undefined)
  const payloadType = audio && payloadTypeOf(audio)
  if (audio === undefined || payloadType === undefined) return undefined
  const hearing = targetOf(audio, payloadType)
  const protocols = [...offer.matchAll(/^m=\S+ \S+ (\S+)/gm)].map(([, protocol = '']) => protocol)
  const media = streams.flatMap((stream, at) =>
    stream === audio
      ? audioStream(from.port, [payloadType], answers[stream.direction] ?? 'sendrecv')
      : [`m=${stream.kind} 0 ${protocols[at]} ${stream.formats.join(' ')}`],
  )
  return { sdp: written(from, media), hearing }
}

/** To a re-INVITE without an offer. */
export const offerToListener = (from: Endpoint): string =>
  written(from, audioStream(from.port, [0, 8], 'sendrecv'))

/** What a supervisor's answer says. */
export function targetInAnswer(answer: string): AudioTarget | undefined {
  const [audio] = streamsOf(answer)
  const payloadType = audio && payloadTypeOf(audio)
  return audio && payloadType !== undefined ? targetOf(audio, payloadType) : undefined
}

function payloadTypeOf({ kind, port, formats }: Stream): 0 | 8 | undefined {
  if (kind !== 'audio' || port.startsWith('0')) return undefined
  const format = formats.find((format) => format === '0' || format === '8')
  return format === undefined ? undefined : format === '0' ? 0 : 8
}

function targetOf({ address, port, direction }: Stream, payloadType: 0 | 8): AudioTarget | undefined {
  const [, , host = ''] = address.split(' ')
  const isHeard = direction === 'sendrecv' || direction === 'recvonly'
  if (!isHeard || host === '' || host === '0.0.0.0' || host === '::') return undefined
  return { to: { address: host, port: Number.parseInt(port, 10) }, payloadType }
}

const audioStream = (
  port: number,
  payloadTypes: readonly (0 | 8)[],
  direction: string,
): readonly string[] => [
  `m=audio ${port} RTP/AVP ${payloadTypes.join(' ')}`,
  ...payloadTypes.map((payloadType) => `a=rtpmap:${payloadType} ${names[payloadType]}/8000`),
  'a=ptime:20',
  `a=${direction}`,
]

function written({ address }: Endpoint, media: readonly string[]): string {
  const origin = `IN ${address.includes(':') ? 'IP6' : 'IP4'} ${address}`
  const session = ['v=0', `o=- 1 1 ${origin}`, 's=-', `c=${origin}`, 't=0 0']
  return [...session, ...media, ''].join('\r\n')
}
