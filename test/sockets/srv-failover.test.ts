import { expect, onTestFinished, test } from 'vitest'
import { acknowledge, hangUp } from '../engine/call/steps.ts'
import { startCallRig } from '../support/call-rig.ts'
import { DnsServer } from '../support/dns-server.ts'
import { gateway } from '../support/gateway.ts'
import { sdp } from '../support/sip-peer.ts'

test('of a gateway with SRV records the next server has the call when the first one is silent', async () => {
  const dns = await DnsServer.start()
  onTestFinished(() => dns.close())
  const rig = await startCallRig({ app: 'tcp', withSipTimers: true, dnsServers: [dns.address] })
  onTestFinished(() => rig.stop())
  const [caller, silent, second] = [await rig.caller(), await rig.caller(), await rig.caller()]
  const [name, target] = ['_sip._udp.carrier.example', 'host.carrier.example']
  const srv = (port: number, priority: number) =>
    ({ type: 'SRV', name, ttl: 60, data: { target, port, priority, weight: 0 } }) as const
  const address = { type: 'A', name: target, ttl: 60, data: '127.0.0.1' } as const
  dns.serve(srv(silent.port, 1), srv(second.port, 2), address)
  const uri = 'sip:carrier.example;transport=udp'
  rig.answers.origin = { kind: 'node', nodeId: 1, setId: 1 }
  rig.answers.outbound = { kind: 'gateways', isEmergency: false, gateways: [gateway({ uri })] }
  const leg = caller.leg(rig.uri('1555'))
  caller.request('INVITE', leg, { body: sdp('offer') })
  second.reply(await second.next('INVITE'), 200, { tag: 'b', body: sdp('answer') })
  await acknowledge(caller, leg, second)
  expect(silent.inbox.map(({ method }) => method)).toContain('INVITE')
  await hangUp(caller, leg, second)
  expect(await rig.record()).toMatchObject({
    disposition: 'ANSWERED',
    carrier: 'north',
    attempts: [{ status: 200 }],
  })
})
