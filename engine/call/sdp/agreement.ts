/** Compares session descriptions in third-party call control (RFC 3264, RFC 3725). Pure. */

import { streamsOf } from './streams.ts'

/**
 * Whether two parties agree that got each other's descriptions one after the other: `offered` is the first
 * party's as sent to the second, `answered` the answer, and `final` the first party's reply to that. Where `final`
 * differs from `offered`, the second party needs another re-INVITE.
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
