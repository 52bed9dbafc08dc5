/** Nodes and gateways over TLS: probed, called, and trusted only with a certificate. */
import { expect, onTestFinished, test } from 'vitest'
import { paying, seedFor } from '../sipp/call-case.ts'
import { Authority, loopbackNames } from '../support/certificates.ts'
import { placeFor, secureNode, type SecureNode } from '../support/secure-node.ts'
import { sdp, SipPeer, type PeerMessage } from '../support/sip-peer.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientInstances } from '../support/waiting.ts'

const folder = temporaryFolder()
const authority = new Authority(folder)
const own = authority.sign('tollgate', ...loopbackNames)
const trusted = authority.sign('node', ...loopbackNames)
const forged = new Authority(folder, 'another-authority').sign('forged', ...loopbackNames)

async function start(seed: object, environment: Record<string, string> = {}) {
  const tollgate = await TollgateProcess.start(seed, {
    ...patientInstances,
    SIP_TLS_CERT: own.certFile,
    SIP_TLS_KEY: own.keyFile,
    SIP_TLS_CA: authority.file,
    ...environment,
  })
  onTestFinished(() => tollgate.stop())
  return tollgate
}

const withNode = (port: number) => ({
  ...seedFor([]),
  dispatcher: [
    {
      endpoint_name: 'pbx',
      set_id: 1,
      algorithm: 8,
      nodes: [{ host: '127.0.0.1', internal_port: port, transport: 'tls' }],
    },
  ],
})

/** A caller by UDP, from a trusted source. */
async function caller(tollgate: TollgateProcess): Promise<SipPeer> {
  const peer = await SipPeer.openPatient(tollgate.listener())
  onTestFinished(() => peer.close())
  return peer
}

const legOf = (peer: SipPeer, tollgate: TollgateProcess) => ({
  ...peer.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`),
  from: `<sip:${paying}@127.0.0.1:${peer.port}>;tag=caller`,
})

/** `from` calls, `to` answers by TLS and hangs up on a connection of its own. */
async function talk(
  tollgate: TollgateProcess,
  from: SipPeer,
  to: SecureNode,
): Promise<PeerMessage> {
  to.place.port = tollgate.tlsPort
  const leg = legOf(from, tollgate)
  from.request('INVITE', leg, { body: sdp('caller') })
  const invite = await to.peer.next('INVITE')
  to.peer.reply(invite, 200, { tag: 'called', body: sdp('called') })
  from.learn(leg, await from.next('200 INVITE'))
  from.request('ACK', leg)
  await to.peer.next('ACK')
  to.peer.request('BYE', to.peer.calledLeg(invite, 'called'))
  from.reply(await from.next('BYE'), 200)
  await to.peer.next('200 BYE')
  return invite
}

test('a node by TLS is probed and called, and hangs up on a connection of its own', async () => {
  const node = await secureNode(trusted, authority)
  const tollgate = await start(withNode(node.peer.port))
  await expect.poll(() => node.probes()).toBeGreaterThan(1)
  const invite = await talk(tollgate, await caller(tollgate), node)
  expect(invite.get('Via')).toMatch(
    new RegExp(`^SIP/2.0/TLS 127.0.0.1:${tollgate.tlsPort};alias;branch=z9hG4bK`),
  )
  expect(invite.get('Contact')).toContain(`:${tollgate.tlsPort};transport=tls>`)
  expect(await tollgate.waitForCalls(1)).toMatchObject([
    { disposition: 'ANSWERED', node: `sip:127.0.0.1:${node.peer.port};transport=tls` },
  ])
  expect(tollgate.faults).toEqual([])
})

test('a node with a forged certificate gets neither probe nor call, and the log says why', async () => {
  const node = await secureNode(forged, authority)
  const tollgate = await start(withNode(node.peer.port), { PROBE_FAILURES: '3' })
  const isTold = () => tollgate.log.some((line) => line.includes('UNABLE_TO_VERIFY_LEAF_SIGNATURE'))
  await expect.poll(isTold).toBe(true)
  await expect.poll(() => tollgate.log.some((line) => line.includes('node is probing'))).toBe(true)
  const peer = await caller(tollgate)
  peer.request('INVITE', legOf(peer, tollgate), { body: sdp('caller') })
  await peer.next('503 INVITE')
  expect(node.probes()).toBe(0)
})

test("a carrier's gateway is called by TLS under its name", async () => {
  const gateway = await secureNode(trusted, authority)
  const place = placeFor('udp')
  const node = await SipPeer.openPatient(place)
  onTestFinished(() => node.close())
  const tollgate = await start({
    ...seedFor([]),
    dispatcher: [
      {
        endpoint_name: 'pbx',
        set_id: 1,
        algorithm: 8,
        nodes: [{ host: '127.0.0.1', internal_port: node.port }],
      },
    ],
    carriers: [
      {
        name: 'north',
        direction: 'out',
        gateways: [{ host: 'localhost', port: gateway.peer.port, transport: 'tls' }],
      },
    ],
    outbound_routes: [{ name: 'out', prefix: '', carrier: 'north' }],
  })
  await expect.poll(() => gateway.probes()).toBeGreaterThan(0)
  place.port = tollgate.sipPort
  await talk(tollgate, node, gateway)
  expect(await tollgate.waitForCalls(1)).toMatchObject([
    { disposition: 'ANSWERED', direction: 'outbound', carrier: 'north' },
  ])
})
