/** The media streams of a session description (RFC 4566 §5). Pure. */

export interface Stream {
  /** `audio`, `video`, … */
  readonly kind: string
  /** As in its `c=` line, or that of the session. */
  readonly address: string
  /** Begins with 0: there is no such stream (RFC 3264 §6). */
  readonly port: string
  readonly direction: string
  readonly formats: readonly string[]
}

export function streamsOf(sdp: string): readonly Stream[] {
  const streams: Stream[] = []
  let [sessionAddress, sessionDirection] = ['', 'sendrecv']
  for (const line of sdp.split(/\r?\n/)) {
    const last = streams.at(-1)
    const address = line.startsWith('c=') ? line.slice(2) : undefined
    const direction = /^a=(sendrecv|sendonly|recvonly|inactive)$/.exec(line)?.[1]
    if (line.startsWith('m=')) {
      const [kind = '', port = '', , ...formats] = line.slice(2).split(' ')
      const defaults = { address: sessionAddress, direction: sessionDirection }
      streams.push({ kind, port, formats, ...defaults })
    } else if (last) {
      const changed = { ...last, ...(address && { address }), ...(direction && { direction }) }
      streams[streams.length - 1] = changed
    } else {
      sessionAddress = address ?? sessionAddress
      sessionDirection = direction ?? sessionDirection
    }
  }
  return streams
}

/**
 * RFC 3264 §8.4, and the older way of a null address. Audio counts before video; refused streams do not count.
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
