/**
 * Whose Path is believed (RFC 3327 §5.3 leaves it to the registrar). It says where calls to a phone are
 * sent, with a Request-URI that the phone has chosen: a phone that named somebody else's address there
 * could send calls to a carrier in our name, and nobody would pay for them.
 */
import { isIPv6 } from 'node:net'
import { listItems } from './contact.ts'
import type { Source } from './bindings.ts'

const MAX_PATH = 8

export const pathOf = (header: string | undefined): readonly string[] =>
  header === undefined ? [] : [...listItems(header)].slice(0, MAX_PATH)

/** Whether the next proxy of a Path is the very host that has sent it; by address, names say nothing. */
export function leadsBack(
  [next]: readonly string[],
  { address }: Pick<Source, 'address'>,
): boolean {
  const match =
    /^<sips?:(?:[\w.!~*'()%+=-]*@)?(\[[\da-f:.]+\]|[\d.]+)(?::\d{1,5})?((?:;[\w.-]+(?:=[\w.:-]*)?)*)>$/i.exec(
      next ?? '',
    )
  const [, host = '', params = ''] = match ?? []
  const own = isIPv6(address) ? `[${address}]` : address
  // RFC 3261 §19.1.1: `maddr` stands in the place of the host.
  return host.toLowerCase() === own.toLowerCase() && !/;maddr(?:[;=]|$)/i.test(params)
}
