import { expect, test } from 'vitest'
import type { Listener } from '../../../../engine/sip-server/flow.ts'
import { PeerFlows } from '../../../../engine/sip-server/transport/udp.ts'

const listener: Listener = {
  protocol: 'udp',
  address: '127.0.0.1',
  port: 5_060,
  advertisedHost: '127.0.0.1',
  advertisedPort: 5_060,
}

test('forged sources do not fill the memory', () => {
  const flows = new PeerFlows(listener, 3)
  const first = flows.of('192.0.2.1', 1)
  flows.of('192.0.2.2', 1)
  flows.of('192.0.2.2', 2)
  expect(flows.of('192.0.2.1', 1)).toBe(first)
  flows.of('192.0.2.3', 1)
  expect(flows.of('192.0.2.1', 1)).not.toBe(first)
  expect(flows.of('192.0.2.1', 1)).toEqual(first)
})
