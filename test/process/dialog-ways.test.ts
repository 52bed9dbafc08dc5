/**
 * A phone names other places in a call than its own: a carrier's gateway, a program on the machine
 * of Tollgate, a name that leads there. Whatever message names it, nothing goes there; the call
 * goes on with the phone where it is.
 */
import { createServer, type Server } from 'node:net'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { DigestPhone } from '../support/digest-phone.ts'
import { DnsServer } from '../support/dns-server.ts'
import { type Leg, type PeerMessage, sdp, SipPeer } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { patientInstances } from '../support/waiting.ts'

const domain = 'acme.example'
const premium = '19005551234'

let tollgate: TollgateProcess
let gateway: SipPeer
let dns: DnsServer
/** A program of the machine that waits for connections, such as a cache. */
let service: Server
let servicePort: number
/** The names that it has read. */
const read: string[] = []

beforeAll(async () => {
  const loopback = { protocol: 'udp', address: '127.0.0.1', port: 9 } as const
  const listener = { ...loopback, advertisedHost: '127.0.0.1', advertisedPort: 9 }
  gateway = await SipPeer.openPatient(listener)
  gateway.always('OPTIONS', 200, { tag: 'probed' })
  service = createServer((socket) => {
    read.push('a connection')
    socket.on('data', (data) => void read.push(data.toString()))
    socket.on('error', () => undefined)
  })
  await new Promise<void>((resolve) => {
    service.listen(0, '127.0.0.1', resolve)
  })
  servicePort = (service.address() as { readonly port: number }).port
  dns = await DnsServer.start()
  dns.serve({ type: 'A', name: 'alias.example', ttl: 60, data: '127.0.0.1' })
  const seed = {
    tenants: [{ slug: 'acme', domains: [domain] }],
    rate_plans: [{ name: 'retail', currency: 'USD' }],
    rates: [{ rate_plan: 'retail', prefix: '', rate_per_minute: '6.00' }],
    customers: [{ name: 'acme', rate_plan: 'retail', numbers: [], balance: '50.00' }],
    carriers: [{ name: 'north', gateways: [{ host: '127.0.0.1', port: gateway.port }] }],
    outbound_routes: [{ name: 'premium', prefix: '1900', carrier: 'north' }],
    extensions: ['101', '102'].map((extension) => ({
      tenant: 'acme',
      extension,
      password: `secret-${extension}`,
      display_name: extension,
    })),
  }
  tollgate = await TollgateProcess.start(seed, {
    SIP_DNS_SERVERS: dns.address,
    // Loopback represents the internet.
    TRUSTED_SOURCES: '192.0.2.0/24',
    ...patientInstances,
    DRAIN_SECONDS: '0',
  })
})
afterAll(async () => {
  gateway.close()
  service.close()
  await tollgate.stop()
  dns.close()
})

async function phone(user: string): Promise<DigestPhone> {
  const account = { user, domain, password: `secret-${user}` }
  const opened = await DigestPhone.open(tollgate.listener(), account)
  onTestFinished(() => opened.close())
  return opened
}

/** A phone that says in one message that it is at `place`, by the header of `as`. */
interface Trick {
  readonly place: string
  readonly as: 'Contact' | 'Record-Route'
}

function say({ peer }: DigestPhone, { place, as }: Trick): readonly string[] {
  if (as === 'Record-Route') return [`Record-Route: <${place};lr>`]
  peer.contact = place
  return []
}

const tell = (
  liar: DigestPhone,
  trick: Trick,
  send: (headers: readonly string[]) => void,
): void => {
  send(say(liar, trick))
  liar.peer.contact = undefined
}

interface Call {
  readonly caller: DigestPhone
  readonly callee: DigestPhone
  readonly leg: Leg
  readonly invite: PeerMessage
  readonly calledLeg: Leg
}

/** 101 calls 102, which has not answered. */
async function ringing(trick?: Trick): Promise<Call> {
  const [caller, callee] = [await phone('101'), await phone('102')]
  expect((await callee.signOn()).status).toBe(200)
  onTestFinished(async () => void (await callee.signOn(['Expires: 0'])))
  const leg = await caller.call('102', domain, trick && say(caller, trick))
  caller.peer.contact = undefined
  const invite = await callee.peer.next('INVITE')
  return { caller, callee, leg, invite, calledLeg: callee.peer.calledLeg(invite, 'c') }
}

/** The callee has answered, and the caller has acknowledged. */
async function talking(call: Call, trick?: Trick): Promise<void> {
  const { caller, callee, leg, invite } = call
  const answer = (headers: readonly string[]): void =>
    callee.peer.reply(invite, 200, { tag: 'c', body: sdp('answer'), headers })
  if (trick) tell(callee, trick, answer)
  else answer([])
  caller.peer.learn(leg, await caller.answerTo(leg))
  caller.peer.request('ACK', leg)
  await callee.peer.next('ACK')
}

type Party = 'caller' | 'callee'

const peerOf = (call: Call, party: Party): SipPeer => call[party].peer
const legOf = (call: Call, party: Party): Leg => (party === 'caller' ? call.leg : call.calledLeg)
const other = (party: Party): Party => (party === 'caller' ? 'callee' : 'caller')

/** A party asks for other media, and the other one agrees; each may lie. */
async function reinvite(call: Call, by: Party, lies: Partial<Record<Party, Trick>>) {
  const [from, to] = [peerOf(call, by), peerOf(call, other(by))]
  const leg = legOf(call, by)
  const offer = (headers: readonly string[]) =>
    void from.request('INVITE', leg, { headers, body: sdp(`again by ${by}`) })
  const own = lies[by]
  if (own) tell(call[by], own, offer)
  else offer([])
  const invite = await to.next('INVITE')
  const answer = (headers: readonly string[]) =>
    to.reply(invite, 200, { headers, body: sdp('agreed') })
  const its = lies[other(by)]
  if (its) tell(call[other(by)], its, answer)
  else answer([])
  expect((await from.next('200 INVITE')).status).toBe(200)
  from.request('ACK', leg)
  await to.next('ACK')
}

/** A party hangs up, and the other one hears it where it is. */
async function hangUp(call: Call, by: Party): Promise<void> {
  peerOf(call, by).request('BYE', legOf(call, by))
  const bye = await peerOf(call, other(by)).next('BYE')
  peerOf(call, other(by)).reply(bye, 200)
  await peerOf(call, by).next('200 BYE')
}

const strayed = (): readonly string[] => [
  ...gateway.inbox.splice(0).map(({ startLine }) => startLine),
  ...read.splice(0),
]

const places: Readonly<Record<string, () => string>> = {
  "a carrier's gateway": () => `sip:${premium}@127.0.0.1:${gateway.port}`,
  'a program of the machine': () => `sip:x@127.0.0.1:${servicePort};transport=tcp`,
  'a name that leads to a gateway': () => `sip:${premium}@alias.example:${gateway.port}`,
  'a name that leads to a program': () => `sip:x@alias.example:${servicePort};transport=tcp`,
  'another address by maddr': () => `sip:x@192.0.2.1:${gateway.port};maddr=127.0.0.1`,
  'the own machine by name': () => `sip:x@localhost:${servicePort};transport=tcp`,
}

/** The ways in which a phone uses the place, and who is asked for something then. */
const ways: Readonly<Record<string, (trick: Trick) => Promise<void>>> = {
  'its answer': async (trick) => {
    const call = await ringing()
    await talking(call, trick)
    await reinvite(call, 'caller', {})
    await hangUp(call, 'caller')
  },
  'its ringing, and then its answer': async (trick) => {
    const call = await ringing()
    const { callee, invite, caller } = call
    tell(callee, trick, (headers) => callee.peer.reply(invite, 180, { tag: 'c', headers }))
    await caller.peer.next(180)
    await talking(call, trick)
    await hangUp(call, 'caller')
  },
  'its INVITE': async (trick) => {
    const call = await ringing(trick)
    await talking(call)
    await reinvite(call, 'callee', {})
    await hangUp(call, 'callee')
  },
  'a re-INVITE of its own': async (trick) => {
    const call = await ringing()
    await talking(call)
    await reinvite(call, 'caller', { caller: trick })
    await reinvite(call, 'callee', {})
    await reinvite(call, 'callee', { callee: trick })
    await reinvite(call, 'caller', {})
    await hangUp(call, 'caller')
  },
  'its answer to a re-INVITE': async (trick) => {
    const call = await ringing()
    await talking(call)
    await reinvite(call, 'caller', { callee: trick })
    await hangUp(call, 'caller')
  },
  'an UPDATE': async (trick) => {
    const call = await ringing()
    await talking(call)
    const { caller, callee, leg } = call
    tell(caller, trick, (headers) => void caller.peer.request('UPDATE', leg, { headers }))
    const update = await callee.peer.next('UPDATE')
    tell(callee, trick, (headers) => callee.peer.reply(update, 200, { headers }))
    expect((await caller.peer.next('200 UPDATE')).status).toBe(200)
    await reinvite(call, 'callee', {})
    await hangUp(call, 'callee')
  },
}

const cases = Object.keys(places).flatMap((place) =>
  (['Contact', 'Record-Route'] as const).flatMap((as) =>
    Object.keys(ways).map((way) => [as, way, place] as const),
  ),
)

test.each(cases)('the %s of %s does not lead to %s', async (as, way, place) => {
  await ways[way]?.({ as, place: places[place]?.() ?? '' })
  expect(strayed()).toEqual([])
})
