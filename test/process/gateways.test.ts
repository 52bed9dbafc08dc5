/**
 * A carrier's gateway is reached by priced routes only. Everything else that can name a place to
 * call is pointed at one here, on raw sockets: no INVITE may arrive there that no wallet pays for.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Listener } from '../../engine/sip-server/index.ts'
import { DigestPhone } from '../support/digest-phone.ts'
import { DnsServer } from '../support/dns-server.ts'
import { sdp, SipPeer, type PeerMessage } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually, patientInstances } from '../support/waiting.ts'

const domain = 'acme.example'
const premium = '19005551234'
const anywhere: Listener = {
  protocol: 'udp',
  address: '127.0.0.1',
  port: 9,
  advertisedHost: '127.0.0.1',
  advertisedPort: 9,
}

let gateway: SipPeer
let pbx: SipPeer
let dns: DnsServer
let tollgate: TollgateProcess
let token: string
const phones: DigestPhone[] = []

beforeAll(async () => {
  gateway = await SipPeer.openPatient(anywhere)
  pbx = await SipPeer.openPatient(anywhere)
  for (const peer of [gateway, pbx]) peer.always('OPTIONS', 200, { tag: 'probed' })
  dns = await DnsServer.start()
  dns.serve(
    { type: 'A', name: 'alias.example', ttl: 60, data: '127.0.0.1' },
    {
      type: 'SRV',
      name: '_sip._udp.service.example',
      data: { priority: 1, weight: 1, port: gateway.port, target: 'alias.example' },
    },
    {
      type: 'SRV',
      name: '_sip._udp.friends.example',
      data: { priority: 1, weight: 1, port: pbx.port, target: 'alias.example' },
    },
  )
  const at = (host: string) => `sip:${premium}@${host}:${gateway.port}`
  const agents = {
    '801': at('127.0.0.1'),
    '802': at('ALIAS.Example.'),
    '803': `sip:${premium}@service.example`,
    '804': at('[::ffff:127.0.0.1]'),
  }
  const customer = { customer: 'acme' }
  const seed = {
    tenants: [{ slug: 'acme', domains: [domain], numbers: ['72'] }],
    rate_plans: [{ name: 'retail', currency: 'USD' }],
    rates: [{ rate_plan: 'retail', prefix: '', rate_per_minute: '6.00' }],
    customers: [{ name: 'acme', rate_plan: 'retail', numbers: [], balance: '50.00' }],
    extensions: ['103'].map((extension) => ({
      tenant: 'acme',
      extension,
      password: `secret-${extension}`,
      display_name: extension,
      ...customer,
    })),
    ai_agents: Object.entries(agents).map(([extension, sip_uri]) => ({
      name: `agent ${extension}`,
      tenant: 'acme',
      extension,
      sip_uri,
    })),
    dispatcher: [
      {
        endpoint_name: 'pbx',
        set_id: 1,
        algorithm: 8,
        tenant: 'acme',
        nodes: [
          { host: '127.0.0.1', internal_port: gateway.port, priority: 1 },
          { host: '127.0.0.1', internal_port: pbx.port, priority: 2 },
        ],
      },
      {
        endpoint_name: 'only',
        set_id: 2,
        algorithm: 8,
        tenant: 'acme',
        nodes: [{ host: 'alias.example', internal_port: gateway.port }],
      },
    ],
    inbound_routes: [{ name: 'to set', tenant: 'acme', prefix: '72', set: 'only' }],
  }
  tollgate = await TollgateProcess.start(seed, {
    SIP_DNS_SERVERS: dns.address,
    UNKNOWN_CALLER: 'allow',
    FOREIGN_DOMAINS: 'service.example,friends.example',
    ...patientInstances,
    DRAIN_SECONDS: '0',
  })
  token = await tollgate.createKey('--name', 'ops', '--scopes', '*')
  // The carrier comes after all that leads to it: what is refused when it is written was written
  // before.
  const carrier = {
    name: 'north',
    direction: 'out',
    gateways: [{ host: '127.0.0.1', port: gateway.port }],
  }
  await api('POST', '/routing/carriers', carrier, 201)
  const route = { name: 'premium', prefix: '1900', carrier: 'north' }
  await api('POST', '/outbound-routes', route, 201)
})
afterAll(async () => {
  for (const each of phones) each.close()
  gateway.close()
  pbx.close()
  await tollgate.stop()
  dns.close()
})

async function api(method: string, path: string, body?: object, status?: number) {
  const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  if (status !== undefined) expect([answer.status, text]).toEqual([status, expect.anything()])
  return {
    status: answer.status,
    body: JSON.parse(text) as unknown,
    data: (JSON.parse(text) as { data: Record<string, unknown> }).data,
  }
}

async function phone(user: string): Promise<DigestPhone> {
  const account = { user, domain, password: `secret-${user}` }
  const opened = await DigestPhone.open(tollgate.listener(), account)
  phones.push(opened)
  return opened
}

/** The messages of calls that the gateway has got; probes are no calls. */
const heard = (): readonly PeerMessage[] =>
  gateway.inbox.filter(({ method }) => method === 'INVITE' || method === 'REFER')

async function dial(number: string): Promise<PeerMessage> {
  const caller = await phone('103')
  return caller.answerTo(await caller.call(number))
}

test('a destination that leads to a gateway by DNS is refused when it is written', async () => {
  const refused = async (method: string, path: string, at: string, body: object) => {
    const message = expect.stringContaining('"north"') as string
    const error = { statusCode: 409, code: 'carrier_gateway', details: [{ path: at, message }] }
    expect((await api(method, path, body)).body).toMatchObject(error)
  }
  const { port } = gateway
  const agents = '/telephony/ai-agents'
  const agent = { name: 'next', extension: '812' }
  for (const host of [`alias.example:${port}`, 'service.example', `Alias.EXAMPLE.:${port}`])
    await refused('POST', agents, 'sip_uri', { ...agent, sip_uri: `sip:1@${host}` })
  const node = { host: 'alias.example', internal_port: port }
  const set = { endpoint_name: 'b', algorithm: 8, nodes: [node] }
  await refused('POST', '/dispatcher', 'nodes.0.host', set)
  // One that is switched off waits, and is asked about when it is switched on.
  const waiting = { ...agent, sip_uri: `sip:1@alias.example:${port}`, is_active: false }
  const { id } = (await api('POST', agents, waiting, 201)).data
  await refused('PATCH', `${agents}/${String(id)}`, 'sip_uri', { is_active: true })
})

test.each(['801', '802', '803', '804'])(
  'an agent that leads to a gateway is not called: %s gets 403',
  async (number) => {
    expect((await dial(number)).status).toBe(403)
    expect(heard()).toEqual([])
  },
)

test('the record says why, the log names the carrier, and the refusals are counted', async () => {
  expect((await dial('801')).status).toBe(403)
  await eventually(() =>
    expect(tollgate.calls().at(-1)).toMatchObject({
      disposition: 'FAILED',
      sip_code: 403,
      denial_code: 'unpriced_gateway',
    }),
  )
  expect(tollgate.calls().at(-1)?.attempts).toContain("leads to a carrier's gateway")
  await expect.poll(() => tollgate.log.join()).toContain('"carrier":"north"')
  const { data } = await api('GET', '/metrics/telemetry')
  expect(JSON.stringify(data)).toMatch(/unpriced_gateway_refusals_total":[1-9]/)
})

test('a node that is a gateway is left out: the next one gets the call, if there is one', async () => {
  const caller = await phone('103')
  const leg = await caller.call('5550100')
  const invite = await pbx.next('INVITE')
  pbx.reply(invite, 486, { tag: 'n' })
  expect((await caller.answerTo(leg)).status).toBe(486)
  expect((await dial('725')).status).toBe(403)
  expect(heard()).toEqual([])
})

test('a foreign domain is called where the operator allows it, at a price, and never at a gateway', async () => {
  const caller = await phone('103')
  const answerAt = async (at: string) => caller.answerTo(await caller.call('19005550199', at))
  expect((await answerAt('elsewhere.example')).status).toBe(404)
  expect((await answerAt('service.example')).status).toBe(403)
  const leg = await caller.call('19005550199', 'friends.example')
  const invite = await pbx.next('INVITE')
  expect(invite.uri).toBe('sip:19005550199@friends.example')
  pbx.reply(invite, 200, { tag: 'f', body: sdp('answer') })
  caller.peer.learn(leg, await caller.answerTo(leg))
  caller.peer.request('ACK', leg)
  await pbx.next('ACK')
  caller.peer.request('BYE', leg)
  pbx.reply(await pbx.next('BYE'), 200)
  await eventually(() =>
    expect(tollgate.calls().at(-1)).toMatchObject({
      disposition: 'ANSWERED',
      direction: 'outbound',
    }),
  )
  expect(tollgate.calls().at(-1)?.cost_micros).toBeGreaterThan(0)
  expect(heard()).toEqual([])
})

test('the priced route leads there, and the wallet pays', async () => {
  const caller = await phone('103')
  const leg = await caller.call(premium)
  const invite = await gateway.next('INVITE')
  expect(invite.uri).toContain(premium)
  gateway.reply(invite, 200, { tag: 'g', body: sdp('answer') })
  caller.peer.learn(leg, await caller.answerTo(leg))
  caller.peer.request('ACK', leg)
  await gateway.next('ACK')
  caller.peer.request('BYE', leg)
  gateway.reply(await gateway.next('BYE'), 200)
  await eventually(() =>
    expect(tollgate.calls().at(-1)).toMatchObject({ carrier: 'north', disposition: 'ANSWERED' }),
  )
  expect(tollgate.calls().at(-1)?.cost_micros).toBeGreaterThan(0)
})
