/** Nodes by name, and a DNS server that only Tollgate asks. */
import { expect, onTestFinished, test } from 'vitest'
import { DnsServer } from '../support/dns-server.ts'
import { callWith, SippNode } from '../support/sipp.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { expectPaid, paying, seedFor } from './call-case.ts'
import { eventually } from '../support/waiting.ts'

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
  const tollgate = await TollgateProcess.start(seed, { SIP_DNS_SERVERS: dns.address })
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
