import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { networkKey, parseAddress, parseNetwork } from '../../../schema/net/ip-address.ts'
import { NetworkTable } from '../../../engine/routing/recognition.ts'

function tableOf(networks: readonly string[]) {
  return new NetworkTable(
    networks.flatMap((text) => {
      const network = parseNetwork(text)
      return network ? [[network, text] as const] : []
    }),
  )
}

test('what the table finds is what comparing with every network finds', () => {
  const octet = fc.constantFrom(0, 1, 127, 128, 255)
  const address = fc.tuple(octet, octet, octet, octet).map((octets) => octets.join('.'))
  const network = fc.tuple(address, fc.nat(32)).map(([base, length]) => `${base}/${length}`)
  fc.assert(
    fc.property(fc.array(network, { maxLength: 30 }), address, (networks, source) => {
      const parsed = parseAddress(source)
      const around = networks.filter((text) => {
        const each = parseNetwork(text)
        if (!each || !parsed) return false
        return networkKey(each.address, each.prefixLength) === networkKey(parsed, each.prefixLength)
      })
      expect([...tableOf(networks).lookup(source)].toSorted()).toEqual(around.toSorted())
    }),
    { seed: 1 },
  )
})
