/** Session descriptions of third-party call control (RFC 3725 §4, RFC 3264). Pure. */

/** The answer to an offer that lets no media flow: every stream goes nowhere. */
export function silentAnswer(offer: string): string {
  return [...session, ...streamsOf(offer).flatMap(silenced), ''].join('\r\n')
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

/** A phone may give anything else as its media: without the Content-Type that it had, no request of ours can have that. */
export const canBeOffered = (media: string): boolean => media.startsWith('v=0')

/** A phone's answer to one party, as its offer to another. */
export const asOffer = (answer: string): string =>
  answer.replace(/^a=(inactive|recvonly|sendonly)(?=\r?$)/gm, 'a=sendrecv')

const session = ['v=0', 'o=- 1 1 IN IP4 0.0.0.0', 's=-', 'c=IN IP4 0.0.0.0', 't=0 0']

function streamsOf(sdp: string): string[][] {
  const streams: string[][] = []
  for (const line of sdp.split(/\r?\n/))
    if (line.startsWith('m=')) streams.push([line])
    else if (line !== '') streams.at(-1)?.push(line)
  return streams
}

/** Port 9 is the discard port: 0 would refuse the stream for good (RFC 3264 §6). */
function silenced([media = '', ...attributes]: readonly string[]): string[] {
  const codecs = attributes.filter((line) => /^a=(rtpmap|fmtp):/.test(line))
  return [media.replace(/^m=(\S+) \d+(\/\d+)?/, 'm=$1 9'), ...codecs, 'a=inactive']
}
