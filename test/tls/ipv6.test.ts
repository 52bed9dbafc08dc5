/** Calls by IPv6 alone, over every transport: brackets where a host stands, none in `received`. */
import { readFileSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { expect, onTestFinished, test } from 'vitest'
import { paying, seedFor } from '../sipp/call-case.ts'
import { Authority, loopbackNames } from '../support/certificates.ts'
import { freePort } from '../support/free-port.ts'
import { sdp, SipPeer } from '../support/sip-peer.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientInstances } from '../support/waiting.ts'

const authority = new Authority(temporaryFolder())
const own = authority.sign('tollgate', ...loopbackNames)
const others = authority.sign('peer', ...loopbackNames)

const hasIpv6 = Object.values(networkInterfaces())
  .flat()
  .some((found) => found?.address === '::1')

async function peerOf(protocol: 'udp' | 'tcp' | 'tls', port: number): Promise<SipPeer> {
  const address = '::1'
  const listener = { protocol, address, port, advertisedHost: address, advertisedPort: port }
  const tls = {
    cert: readFileSync(others.certFile),
    key: readFileSync(others.keyFile),
    ca: readFileSync(authority.file),
  }
  const peer = await SipPeer.openPatient(listener, protocol === 'tls' ? { tls } : {})
  onTestFinished(() => peer.close())
  return peer
}

test.runIf(hasIpv6).each(['udp', 'tcp', 'tls'] as const)(
  'a call by %s over IPv6, from caller to node and back',
  async (transport) => {
    const port = await freePort()
    const node = await peerOf(transport, port)
    const caller = await peerOf(transport, port)
    const members = [{ host: '::1', internal_port: node.port, transport }]
    const tollgate = await TollgateProcess.start(
      {
        ...seedFor([]),
        dispatcher: [{ endpoint_name: 'pbx', set_id: 1, algorithm: 8, nodes: members }],
      },
      {
        SIP_LISTEN: `${transport}/[::1]:${port}`,
        ...patientInstances,
        SIP_TLS_CERT: own.certFile,
        SIP_TLS_KEY: own.keyFile,
        SIP_TLS_CA: authority.file,
      },
    )
    onTestFinished(() => tollgate.stop())
    node.reply(await node.next('OPTIONS'), 200, { tag: 'probe' })
    node.always('OPTIONS', 200, { tag: 'probe' })

    const param = transport === 'udp' ? '' : `;transport=${transport}`
    const leg = {
      ...caller.leg(`sip:18005551212@[::1]:${port}${param}`),
      from: `<sip:${paying}@[::1]:${caller.port}>;tag=caller`,
    }
    caller.request('INVITE', leg, { body: sdp('caller') })
    const invite = await node.next('INVITE')
    expect(invite.get('Via')).toContain(`SIP/2.0/${transport.toUpperCase()} [::1]:${port};`)
    expect(invite.get('Contact')).toContain(`@[::1]:${port}${param}>`)
    expect(invite.uri).toContain(`@[::1]:${node.port}`)
    node.reply(invite, 200, { tag: 'called', body: sdp('called') })
    const answer = await caller.next('200 INVITE')
    expect(answer.get('Via')).toMatch(/;received=::1$/)
    expect(answer.get('Contact')).toContain(`[::1]:${port}${param}>`)
    caller.learn(leg, answer)
    caller.request('ACK', leg)
    await node.next('ACK')
    node.request('BYE', node.calledLeg(invite, 'called'))
    caller.reply(await caller.next('BYE'), 200)
    await node.next('200 BYE')
    expect(await tollgate.waitForCalls(1)).toMatchObject([
      { disposition: 'ANSWERED', node: `sip:[::1]:${node.port};transport=${transport}` },
    ])
    expect(tollgate.faults).toEqual([])
  },
)
