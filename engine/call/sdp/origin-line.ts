/** The o= line of a leg that is told of several parties one after the other (RFC 3264 §8). Pure. */

const line = /^o=(\S+ \S+) (\d+) ([^\r\n]*)/m

/**
 * `next` as it follows on `last` in one dialog: with the origin of `last`, and the version after its
 * own, or the same one where both say the same. Whatever has no readable o= line is left as it is.
 */
export function continued(last: string, next: string): string {
  const [before, after] = [line.exec(last), line.exec(next)]
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
