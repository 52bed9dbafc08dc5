import { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import { expect, test } from 'vitest'
import type { SourceStatus } from '../../../../engine/sip-server/options.ts'
import {
  defaultStreamLimits,
  networkOf,
  Sources,
} from '../../../../engine/sip-server/transport/sources.ts'
import { udp } from '../../../support/sip-core.ts'

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '::ffff:192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
  ['2001:db8::1', '2001:db8:0:0::/64'],
  ['2001:db8::5:6:7:8:9', '2001:db8:0:5::/64'],
  ['::1', '0:0:0:0::/64'],
])('%s is counted as %s', (address, network) => {
  expect(networkOf(address)).toBe(network)
})

/**
 * A listener with twenty places, four of them for one address, eight for one that speaks for many.
 */
function listening(sourceStatusOf: (address: string) => SourceStatus = () => 'proven') {
  const counts = { refused: 0 }
  const limits = {
    ...defaultStreamLimits,
    maxConnections: 20,
    maxPerSource: 4,
    maxPerKnownSource: 8,
  }
  const sources = new Sources({
    listener: udp,
    limits,
    opened: () => 0,
    accepts: () => true,
    sourceStatus: ({ address }) => sourceStatusOf(address),
    refused: () => void (counts.refused += 1),
  })
  const connect = (address: string, count: number): Socket[] =>
    Array.from({ length: count }, (_, port) => {
      const events: unknown = Object.assign(new EventEmitter(), {
        remoteAddress: address,
        remotePort: port,
        destroyed: false,
        destroy(this: { destroyed: boolean; emit: (name: string) => void }) {
          this.destroyed = true
          this.emit('close')
        },
      })
      // Only what stands above is used of it.
      const socket = events as Socket
      sources.admit(socket)
      return socket
    })
  const open = (sockets: readonly Socket[]): number =>
    sockets.filter(({ destroyed }) => !destroyed).length
  return { sources, connect, open, counts }
}

test('one address gets so many connections, as does an IPv6 network of 64 bits, and what it closes again', () => {
  const { connect, open, counts, sources } = listening()
  const own = connect('192.0.2.1', 10)
  expect([open(own), counts.refused]).toEqual([4, 6])
  const hosts = [1, 2, 3, 4, 5, 6].flatMap((host) => connect(`2001:db8:1:2::${host}`, 1))
  expect(open(hosts)).toBe(4)
  own[0]?.destroy()
  expect(open(connect('192.0.2.1', 2))).toBe(1)
  expect(sources.size).toBe(8)
})

test('a peer that speaks for many gets more, but not all', () => {
  const { connect, open } = listening(() => 'known')
  expect(open(connect('192.0.2.1', 30))).toBe(8)
})

test('strangers, however many addresses they have, leave a quarter of the places to others', () => {
  const { connect, open } = listening((address) =>
    address.startsWith('10.') ? 'stranger' : 'proven',
  )
  const strangers = Array.from({ length: 10 }, (_, host) => connect(`10.0.0.${host}`, 4)).flat()
  expect(open(strangers)).toBe(15)
  expect(open(connect('192.0.2.1', 4))).toBe(4)
})
