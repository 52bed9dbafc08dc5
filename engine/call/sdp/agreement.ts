/** Session descriptions of parties that get another one to talk to (RFC 3264, RFC 3725). Pure. */

import { streamsOf } from './streams.ts'

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
