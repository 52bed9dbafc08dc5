import { expect, test } from 'vitest'
import { HostAddresses } from '../../../engine/dispatcher/host-addresses.ts'
import { sipTarget } from '../../../schema/net/sip-target.ts'
import { sampleNode, sampleSet } from './samples.ts'
import { VirtualClock } from './virtual-clock.ts'
import { NodeDirectory } from '../../../engine/dispatcher/node-directory.ts'

function directory(addresses: () => readonly string[] = () => []) {
  const clock = new VirtualClock()
  const resolve = async () => ({ addresses: addresses(), ttlMs: 30_000 })
  return { clock, nodes: new NodeDirectory(new HostAddresses(resolve, clock.schedule)) }
}

test('a node is recognized by its address with its internal or external port', () => {
  const { nodes } = directory()
  nodes.replace([sampleSet([sampleNode(1)], { setId: 4 })])
  expect(nodes.nodeAt('192.0.2.1', 5060)).toMatchObject({ nodeId: 1, setId: 4 })
  expect(nodes.nodeAt('192.0.2.1', 5080)).toMatchObject({ nodeId: 1, setId: 4 })
  expect(nodes.nodeAt('::ffff:192.0.2.1', 5060)).toMatchObject({ nodeId: 1, setId: 4 })
  expect(nodes.nodeAt('192.0.2.1', 40_000)).toBeUndefined()
  expect(nodes.nodeAt('192.0.2.2', 5060)).toBeUndefined()
})

test('a program calls a node by its name or address, of the platform or its own tenant alone', async () => {
  const { nodes, clock } = directory(() => ['198.51.100.7'])
  nodes.replace([
    sampleSet([sampleNode(1)], { setId: 4, tenantId: 8 }),
    sampleSet([sampleNode(2, { host: 'pbx.example', port: 5061, transport: 'tls' })], { setId: 5 }),
    sampleSet([sampleNode(3, { host: '192.0.2.1' })], { setId: 6, tenantId: 9 }),
  ])
  await clock.advance(0)
  const called = (uri: string, tenantId: number | null) => {
    const target = sipTarget(uri)
    return target && nodes.nodeCalled(target, tenantId)?.nodeId
  }
  expect(called('sip:1@192.0.2.1', 8)).toBe(1)
  expect(called('sip:1@192.0.2.1:5080;transport=udp', 9)).toBe(3)
  expect(called('sip:1@192.0.2.1', 7)).toBeUndefined()
  expect(called('sip:1@192.0.2.1:5090', 8)).toBeUndefined()
  expect(called('sip:1@192.0.2.1;transport=tcp', 8)).toBeUndefined()
  expect(called('sips:1@PBX.example.', 7)).toBe(2)
  expect(called('sip:1@198.51.100.7:5061', null)).toBe(2)
})

test('a node on TCP is recognized from any port, but not on loopback', () => {
  const { nodes } = directory()
  nodes.replace([
    sampleSet([
      sampleNode(1, { transport: 'tcp' }),
      sampleNode(2, { transport: 'tcp', host: '127.0.0.1', port: 5071 }),
    ]),
  ])
  expect(nodes.nodeAt('192.0.2.1', 40_000)?.nodeId).toBe(1)
  expect(nodes.nodeAt('127.0.0.1', 40_000)).toBeUndefined()
  expect(nodes.nodeAt('127.0.0.1', 5071)?.nodeId).toBe(2)
})

test('a node in several sets is that of the lowest set id', () => {
  const { nodes } = directory()
  nodes.replace([
    sampleSet([sampleNode(1)], { setId: 9 }),
    sampleSet([sampleNode(2, { host: '192.0.2.1' })], { setId: 3 }),
  ])
  expect(nodes.nodeAt('192.0.2.1', 5060)).toMatchObject({ nodeId: 2, setId: 3 })
})

test('a node with a host name is recognized by each address it resolves to, old ones forgotten', async () => {
  let addresses = ['198.51.100.1', '2001:db8:0:0::1']
  const { clock, nodes } = directory(() => addresses)
  nodes.replace([sampleSet([sampleNode(1, { host: 'pbx.example.com' })])])
  await clock.advance(0)
  expect(nodes.nodeAt('198.51.100.1', 5060)?.nodeId).toBe(1)
  expect(nodes.nodeAt('2001:DB8::1', 5060)?.nodeId).toBe(1)
  addresses = ['198.51.100.2']
  await clock.advance(30_000)
  expect(nodes.nodeAt('198.51.100.2', 5060)?.nodeId).toBe(1)
  expect(nodes.nodeAt('198.51.100.1', 5060)).toBeUndefined()
})
