/**
 * Which Path is trusted (RFC 3327 §5.3 leaves it to the registrar). It says where calls to a phone are
 * sent, with a Request-URI that the phone has chosen: a phone that named a carrier's address there could
 * send calls to that carrier in our name, without a payer.
 */
import { parseNameAddr, parseUri, splitList } from '../sip-server/message/index.ts'
import type { Source } from './bindings.ts'

const MAX_PATH = 8

export const pathOf = (header: string | undefined): readonly string[] =>
  header === undefined ? [] : splitList(header).slice(0, MAX_PATH)

/** Whether the next proxy of a Path is the very host that has sent it; by address, names say nothing. */
export function leadsBack(
  [next]: readonly string[],
  { address }: Pick<Source, 'address'>,
): boolean {
  // The address alone in its brackets, so that nothing around it is read differently elsewhere.
  if (next?.startsWith('<') !== true || !next.endsWith('>')) return false
  const uri = parseUri(parseNameAddr(next)?.uri ?? '')
  if (uri?.host.toLowerCase() !== address.toLowerCase() || uri.headers.length > 0) return false
  // RFC 3261 §19.1.1: `maddr` stands in the place of the host; an escaped name could be read as that.
  return [...uri.params.keys()].every((name) => name !== 'maddr' && /^[\w.-]+$/.test(name))
}
