/** Nodes by name, and a DNS server that only Tollgate asks. */
import { expect, onTestFinished, test } from 'vitest'
import { DnsServer } from '../support/dns-server.ts'
import { freePort } from '../support/free-port.ts'
import { callWith, SippNode } from '../support/sipp.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { expectPaid, paying, seedFor } from './call-case.ts'
import { eventually, patientNodes, watchedNodes } from '../support/waiting.ts'

test('a node is called by the name that SIP_DNS_SERVERS knows, wherever it moves', async () => {
  const dns = await DnsServer.start()
  onTestFinished(() => dns.close())
  const name = 'node.pbx.example'
  dns.serve({ type: 'A', name, ttl: 1, data: '127.0.0.1' })
  const node = await SippNode.start('nodes/answers.xml')
  onTestFinished(async () => void (await node.stop()))
  const seed = {
    ...seedFor([]),
    dispatcher: [
      {
        endpoint_name: 'pbx',
        set_id: 1,
        algorithm: 8,
        nodes: [{ host: name, internal_port: node.port }],
      },
    ],
  }
  const tollgate = await TollgateProcess.start(seed, {
    ...watchedNodes,
    SIP_DNS_SERVERS: dns.address,
  })
  onTestFinished(() => tollgate.stop())

  const call = await callWith('inbound/answered.xml', tollgate.sipPort, {
    keys: { caller: paying },
  })
  expect(call).toEqual({ exitCode: 0, errors: '' })
  const [record] = await tollgate.waitForCalls(1)
  expectPaid(record, 1)
  expect(record?.node).toContain(name)

  // The name means nothing any more: its time to live is obeyed, and the node is taken out.
  dns.serve()
  await eventually(() => expect(tollgate.log.join('\n')).toMatch(/node.*(probing|silent|down)/i))
})

test('a gateway with SRV records has two servers: when one falls silent, no call is refused for it', async () => {
  const dns = await DnsServer.start()
  onTestFinished(() => dns.close())
  const servers = [
    await SippNode.start('nodes/answers.xml'),
    await SippNode.start('nodes/answers.xml'),
  ] as const
  onTestFinished(async () => void (await Promise.all(servers.map((server) => server.stop()))))
  const name = 'sbc.carrier.example'
  const target = 'host.carrier.example'
  const place = servers.map(({ port }, index) => ({ target, port, priority: index, weight: 0 }))
  dns.serve(
    ...place.map((data) => ({ type: 'SRV', name: `_sip._udp.${name}`, ttl: 60, data }) as const),
    { type: 'A', name: target, ttl: 60, data: '127.0.0.1' },
  )
  const callers = [await freePort(), await freePort()] as const
  // Known by the ports they call from; the ports that are probed are others.
  const [one, two] = [await freePort(), await freePort()]
  const nodes = [
    { host: '127.0.0.1', internal_port: one, external_port: callers[0] },
    { host: '127.0.0.1', internal_port: two, external_port: callers[1] },
  ]
  const tollgate = await TollgateProcess.start(
    {
      ...seedFor([]),
      dispatcher: [{ endpoint_name: 'pbx', set_id: 1, algorithm: 8, nodes }],
      carriers: [{ name: 'carrier', direction: 'out', gateways: [{ host: name, port: 0 }] }],
      outbound_routes: [{ name: 'world', prefix: '', carrier: 'carrier' }],
    },
    // A server that is silent for half of the time of its gateway is passed over.
    { ...patientNodes, NODE_TIMEOUT_MS: '8000', SIP_DNS_SERVERS: dns.address },
  )
  onTestFinished(() => tollgate.stop())
  const call = (port: number) =>
    callWith('inbound/answered.xml', tollgate.sipPort, { keys: { caller: paying }, port })

  expect(await call(callers[0])).toEqual({ exitCode: 0, errors: '' })
  servers[0].freeze()
  expect(await call(callers[1])).toEqual({ exitCode: 0, errors: '' })
  const calls = await tollgate.waitForCalls(2)
  expect(calls.map(({ carrier, disposition }) => [carrier, disposition])).toEqual(
    calls.map(() => ['carrier', 'ANSWERED']),
  )
})
