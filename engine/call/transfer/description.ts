/** Session descriptions of parties that get another one to talk to (RFC 3264, RFC 3725). Pure. */

interface Stream {
  readonly address: string
  readonly port: string
  readonly direction: string
  readonly formats: readonly string[]
}

/**
 * Whether two who were told about each other one after the other agree: `offered` is what the second
 * party was told of the first, `answered` its answer, and `final` what the first said to that. Where
 * it says something else than before, the second has to hear it.
 */
export function agrees(offered: string, answered: string, final: string): boolean {
  const [told, taken, said] = [streamsOf(offered), streamsOf(answered), streamsOf(final)]
  return said.every(({ address, port, direction, formats }, index) => {
    const [before, chosen] = [told[index], taken[index]]
    return (
      address === before?.address &&
      port === before.port &&
      direction === before.direction &&
      chosen?.formats.every((format) => formats.includes(format)) === true
    )
  })
}

function streamsOf(sdp: string): readonly Stream[] {
  const streams: Stream[] = []
  let [sessionAddress, sessionDirection] = ['', 'sendrecv']
  for (const line of sdp.split(/\r?\n/)) {
    const last = streams.at(-1)
    const address = line.startsWith('c=') ? line.slice(2) : undefined
    const direction = /^a=(sendrecv|sendonly|recvonly|inactive)$/.exec(line)?.[1]
    if (line.startsWith('m=')) {
      const [, port = '', , ...formats] = line.split(' ')
      streams.push({ address: sessionAddress, direction: sessionDirection, port, formats })
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
