import { isIPv6 } from 'node:net'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { canonicalAddress, sourceIn } from '../../../schema/net/ip-address.ts'

test.each([
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['::FFFF:c000:201', '192.0.2.1'],
  ['2001:0DB8:0000::0001', '2001:db8::1'],
  ['fe80::1%eth0', 'fe80::1'],
  ['192.0.2.1', '192.0.2.1'],
  ['not:an:address', 'not:an:address'],
  ['', ''],
])('%s is spelled %s', (address, canonical) => expect(canonicalAddress(address)).toBe(canonical))

/** Zeros more often than chance has them: they are what spellings differ in. */
const group = fc.oneof(fc.constant(0), fc.integer({ min: 0, max: 0xffff }))
const groups = (length: number) => fc.array(group, { minLength: length, maxLength: length })

/**
 * One of the spellings of RFC 4291 §2.2: case, leading zeros, `::` for one run of zeros or none,
 * IPv4 at the end.
 */
function spelled(
  address: readonly number[],
  {
    isPadded,
    isUpper,
    hasIPv4,
    run,
  }: Record<'isPadded' | 'isUpper' | 'hasIPv4', boolean> & {
    readonly run: number
  },
): string {
  const texts = address.map((each) => each.toString(16).padStart(isPadded ? 4 : 1, '0'))
  const [high = 0, low = 0] = address.slice(6)
  const quad = [high >> 8, high & 255, low >> 8, low & 255].join('.')
  const parts = hasIPv4 ? [...texts.slice(0, 6), quad] : texts
  const isZero = (index: number): boolean => address[index] === 0 && index < texts.length
  const end = hasIPv4 ? 6 : 8
  let length = 0
  while (run + length < end && isZero(run + length)) length += 1
  const [before, behind] = [parts.slice(0, run), parts.slice(run + length)]
  const text = length === 0 ? parts.join(':') : `${before.join(':')}::${behind.join(':')}`
  return isUpper ? text.toUpperCase() : text
}

const spelling = fc.record({
  isPadded: fc.boolean(),
  isUpper: fc.boolean(),
  hasIPv4: fc.boolean(),
  run: fc.integer({ min: 0, max: 7 }),
})

test('the addresses of one /64 are one source in every spelling, and those of two are two', () => {
  const two = fc.tuple(groups(4), groups(4), groups(4), groups(4), spelling, spelling)
  fc.assert(
    fc.property(two, ([network, host, otherHost, otherNetwork, one, other]) => {
      const first = spelled([...network, ...host], one)
      const second = spelled([...network, ...otherHost], other)
      const third = spelled([...otherNetwork, ...host], other)
      // Those that mean IPv4 are no addresses of a /64.
      fc.pre([first, second, third].every((each) => canonicalAddress(each).includes(':')))
      expect([first, second, third].map(isIPv6)).toEqual([true, true, true])
      expect([first, sourceIn(first)]).toEqual([first, sourceIn(second)])
      // A source that is listed is itself.
      expect(sourceIn(sourceIn(first))).toBe(sourceIn(first))
      expect(sourceIn(first) === sourceIn(third)).toBe(String(network) === String(otherNetwork))
    }),
    { numRuns: 1_000 },
  )
})
