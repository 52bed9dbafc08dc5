/**
 * What a leg was told last, by its o= line and a digest of the rest: a relay's ports differ between sessions, so the
 * versions that a party sees have to be counted by what really goes out (RFC 3264 §8). Pure.
 */
import { hash } from 'node:crypto'

export interface Told {
  /** `<username> <session>`, version and address of the o= line. */
  readonly origin: readonly [string, string, string]
  readonly rest: string
}

const line = /^o=(\S+ \S+) (\d+) ([^\r\n]*)/m

/** `sdp` as the description after `last` in one dialog, and what is to be kept of it. */
export function toldAfter(
  last: Told | undefined,
  sdp: string,
): { readonly sdp: string; readonly told: Told | undefined } {
  const found = line.exec(sdp)
  if (found === null) return { sdp, told: last }
  const [own, session = '', version = '0', address = ''] = found
  const [before, after] = [sdp.slice(0, found.index), sdp.slice(found.index + own.length)]
  const rest = hash('sha1', before + after, 'base64')
  if (last === undefined) return { sdp, told: { origin: [session, version, address], rest } }
  const [name, number, place] = last.origin
  const next = rest === last.rest ? number : String(BigInt(number) + 1n)
  return {
    sdp: `${before}o=${name} ${next} ${place}${after}`,
    told: { origin: [name, next, place], rest },
  }
}
