/**
 * What a leg was told last, by its o= line and a digest of the rest: a relay's ports differ between sessions, so the
 * versions that a party sees have to be counted by what really goes out (RFC 3264 §8).
 */
import { hash } from 'node:crypto'
import type { MediaLeg, Told } from './media-leg.ts'

const line = /^o=(\S+ \S+) (\d+) ([^\r\n]*)/m

/** `sdp` as it is to go out to the peer of a leg. */
export function nextFor(leg: MediaLeg, sdp: string): string {
  const last = leg.isCounted ? lastOf(leg) : undefined
  const next = last === undefined ? { sdp, told: undefined } : toldAfter(last, sdp)
  leg.toldSdp = next.sdp
  leg.told = next.told
  return next.sdp
}

/** What is kept of what a leg was told last: made once, and only of descriptions that are saved or followed by another. */
export function lastOf(leg: MediaLeg): Told | undefined {
  if (leg.toldSdp !== '') leg.told ??= toldAfter(undefined, leg.toldSdp).told
  return leg.told
}

/** `sdp` as the description after `last` in one dialog, and what is to be kept of it. */
function toldAfter(
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
