/** Keeps one o= line for a leg that gets descriptions of several parties (RFC 3264 §8; D77). Pure. */

const line = /^o=(\S+ \S+) (\d+) ([^\r\n]*)/m

/**
 * Returns `next` as the description after `last` in one dialog: with the origin of `last` and its next version, or the
 * same version where nothing else differs. A description without a readable o= line is left unchanged.
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
