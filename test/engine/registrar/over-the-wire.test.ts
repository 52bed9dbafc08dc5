/** A registrar behind the embedded server and the SIP library: raw phones by UDP and TCP, real time. */
import { hash } from 'node:crypto'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startCallRig, type CallRig } from '../../support/call-rig.ts'
import { SipPeer, type Leg, type PeerMessage } from '../../support/sip-peer.ts'
import type { Registrar } from '../../../engine/registrar/registrar.ts'
import { loaded, readsSeveral, startRegistrar } from './phone.ts'

let rig: CallRig
let registrar: Registrar

beforeEach(async () => {
  const { deps } = await startRegistrar()
  registrar = await loaded({
    ...deps,
    now: Date.now,
    schedule: (work, delayMs) => {
      const timer = setTimeout(work, delayMs)
      return () => clearTimeout(timer)
    },
  })
  rig = await startCallRig({ withTcp: true, registrar })
})
afterEach(async () => {
  await registrar.stop()
  await rig.stop()
})

const peerOf = async (protocol: 'udp' | 'tcp'): Promise<SipPeer> => {
  const listener = rig.server.listeners.find((candidate) => candidate.protocol === protocol)
  if (!listener) throw new Error(`no ${protocol} listener`)
  const peer = await SipPeer.open(listener)
  rig.peers.push(peer)
  return peer
}

/** Gets all challenges at once. */
const knownPhone = `User-Agent: ${readsSeveral}`

/** The leg of a phone that registers: From and To are its own number. */
const legOf = (peer: SipPeer, user = '101'): Leg => ({
  ...peer.leg('sip:acme.example'),
  from: `<sip:${user}@acme.example>;tag=${user}`,
  to: `<sip:${user}@acme.example>`,
})

function credentials(challenge: PeerMessage, method: string, user = '101'): string {
  const value = challenge.all('WWW-Authenticate').concat(challenge.all('Proxy-Authenticate'))
  const nonce = /nonce="([^"]+)"/.exec(value.find((each) => each.includes('SHA-256')) ?? '')?.[1]
  const digest = (text: string): string => hash('sha256', text, 'hex')
  const ha1 = digest(`${user}:acme.example:secret-${user}`)
  const ha2 = digest(`${method}:sip:acme.example`)
  const response = digest(`${ha1}:${nonce ?? ''}:00000001:c:auth:${ha2}`)
  return (
    `Digest username="${user}", realm="acme.example", nonce="${nonce ?? ''}", ` +
    `uri="sip:acme.example", response="${response}", algorithm=SHA-256, cnonce="c", qop=auth, nc=00000001`
  )
}

async function register(peer: SipPeer, leg: Leg): Promise<PeerMessage> {
  peer.request('REGISTER', leg, { headers: [knownPhone] })
  const challenge = await peer.next('401 REGISTER')
  const authorization = `Authorization: ${credentials(challenge, 'REGISTER')}`
  peer.request('REGISTER', leg, { headers: [authorization, 'Expires: 600', knownPhone] })
  return peer.next('200 REGISTER')
}

test.each(['udp', 'tcp'] as const)(
  'a phone registers by %s: one challenge to a line, then 200 with its Contact',
  async (protocol) => {
    const peer = await peerOf(protocol)
    const leg = legOf(peer)
    peer.request('REGISTER', leg, { headers: [knownPhone] })
    const challenges = (await peer.next('401 REGISTER')).all('WWW-Authenticate')
    expect(challenges.map((value) => /algorithm=([\w-]+)/.exec(value)?.[1])).toEqual([
      'SHA-256',
      'MD5',
    ])
    const answer = await register(peer, legOf(peer))
    expect(answer.get('Contact')).toBe(`<${peer.uri}>;expires=600`)
    expect(registrar.contactsOf('acme.example', '101')).toMatchObject([
      { source: { protocol, address: '127.0.0.1' } },
    ])
  },
)

test('a phone that registered by TCP is called over its connection', async () => {
  const peer = await peerOf('tcp')
  await register(peer, legOf(peer))
  const [target] = registrar.contactsOf('acme.example', '101')
  if (!target) throw new Error('not registered')
  // The Contact names a port where the phone listens; what comes there instead would be seen below.
  const connections = rig.server.stats()['connections']
  rig.client.sendOptions(target.uri, () => undefined, target.nextHop)
  peer.reply(await peer.next('OPTIONS'), 200)
  expect(rig.server.stats()['connections']).toBe(connections)
  peer.hangUp()
  await rig.until(() => rig.server.stats()['registrationFlows'] === 0)
  // Its port is not tried: behind NAT there would be no answer for seconds.
  const outcome = await new Promise((resolve) =>
    rig.client.sendOptions(target.uri, resolve, target.nextHop),
  )
  expect(outcome).toEqual({ reason: 'the connection of the registration is closed' })
})
