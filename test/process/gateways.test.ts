/**
 * A carrier's gateway is reached by priced routes only. Everything else that can name a place to call is
 * pointed at one here, on raw sockets: no INVITE may arrive there that no wallet pays for.
 */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Listener } from '../../engine/sip-server/index.ts'
import { DigestPhone } from '../support/digest-phone.ts'
import { DnsServer } from '../support/dns-server.ts'
import { sdp, SipPeer, type PeerMessage } from '../support/sip-peer.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'
import { eventually, patientNodes } from '../support/waiting.ts'

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
    { type: 'A', name: 'moving.example', ttl: 1, data: '192.0.2.77' },
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
    tenants: [{ slug: 'acme', domains: [domain], numbers: ['7801', '72'] }],
    rate_plans: [{ name: 'retail', currency: 'USD' }],
    rates: [{ rate_plan: 'retail', prefix: '', rate_per_minute: '6.00' }],
    customers: [{ name: 'acme', rate_plan: 'retail', numbers: [], balance: '50.00' }],
    extensions: ['101', '102', '103', '104', '105', '106', '107'].map((extension) => ({
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
        voicemail_uri: at('alias.example'),
        spy_uri: `sip:{call_uuid}-${premium}@127.0.0.1:${gateway.port}`,
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
    inbound_routes: [
      { name: 'to agent', tenant: 'acme', prefix: '7801', agent: 'agent 801' },
      { name: 'to set', tenant: 'acme', prefix: '72', set: 'only' },
    ],
  }
  tollgate = await TollgateProcess.start(seed, {
    SIP_DNS_SERVERS: dns.address,
    UNKNOWN_CALLER: 'allow',
    FOREIGN_DOMAINS: 'service.example,friends.example',
    ...patientNodes,
    DRAIN_SECONDS: '0',
  })
  token = await tollgate.createKey('--name', 'ops', '--scopes', '*')
  // The carrier comes after all that leads to it: what is refused when it is written was written before.
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

/** What the gateway has heard of calls; probes are no calls. */
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
  const uris = [
    `sip:1@alias.example:${port}`,
    'sip:1@service.example',
    `sip:1@Alias.EXAMPLE.:${port}`,
  ]
  const agent = { name: 'by name', extension: '811', sip_uri: 'sip:1@192.0.2.9' }
  const set = {
    endpoint_name: 'by name',
    algorithm: 8,
    nodes: [{ host: '127.0.0.1', internal_port: 9 }],
  }
  const agents = '/telephony/ai-agents'
  const agentPath = `${agents}/${String((await api('POST', agents, agent, 201)).data['id'])}`
  const setPath = `/dispatcher/${String((await api('POST', '/dispatcher', set, 201)).data['id'])}`
  const next = { ...agent, name: 'next', extension: '812' }
  for (const uri of uris) {
    await refused('POST', agents, 'sip_uri', { ...next, sip_uri: uri })
    await refused('PATCH', agentPath, 'sip_uri', { sip_uri: uri })
    await refused('PATCH', setPath, 'voicemail_uri', { voicemail_uri: uri })
    await refused('PATCH', setPath, 'spy_uri', { spy_uri: uri.replace('1@', '{call_uuid}@') })
  }
  const node = { host: 'alias.example', internal_port: port }
  await refused('POST', '/dispatcher', 'nodes.0.host', {
    ...set,
    endpoint_name: 'b',
    nodes: [node],
  })
  await refused('PATCH', setPath, 'nodes.1.host', { nodes: [...set.nodes, node] })
  await refused('POST', `${setPath}/nodes`, 'host', node)
  const { data } = await api('GET', `${setPath}/nodes`)
  const [first] = data as unknown as { id: number }[]
  await refused('PATCH', `${setPath}/nodes/${first?.id ?? 0}`, 'host', node)
  // One that is switched off waits, and is asked about when it is switched on.
  const waiting = { ...next, sip_uri: uris[0], is_active: false }
  const { id } = (await api('POST', agents, waiting, 201)).data
  await refused('PATCH', `${agents}/${String(id)}`, 'sip_uri', { is_active: true })
})

test('a name is accepted that leads elsewhere, to another port of loopback, or nowhere yet', async () => {
  const accepted = ['moving.example', `alias.example:${pbx.port}`, 'nowhere.example']
  for (const [index, host] of accepted.entries()) {
    const agent = { name: host, extension: `82${index}`, sip_uri: `sip:1@${host}` }
    await api('POST', '/telephony/ai-agents', agent, 201)
  }
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

test('voicemail at a gateway records nothing: the caller gets the failure of the callee', async () => {
  const callee = await phone('107')
  expect((await callee.signOn()).status).toBe(200)
  const caller = await phone('103')
  const leg = await caller.call('107')
  callee.peer.reply(await callee.peer.next('INVITE'), 486, { tag: 'busy' })
  expect((await caller.answerTo(leg)).status).toBe(486)
  expect(heard()).toEqual([])
})

test.each([
  ['102', 'maddr in its Contact', []],
  ['104', 'a Path', ['Path: <sip:127.0.0.1:GATEWAY;lr>']],
  ['105', 'a Path by name', ['Path: <sip:alias.example:GATEWAY;lr>']],
  ['106', 'a Path with maddr', ['Path: <sip:192.0.2.5:GATEWAY;lr;maddr=127.0.0.1>']],
] as const)('phone %s with %s does not lead calls to a gateway', async (user, _, headers) => {
  const callee = await phone(user)
  if (user === '102') callee.peer.contact = `${callee.peer.uri};maddr=alias.example`
  const lines = headers.map((line) => line.replace('GATEWAY', String(gateway.port)))
  expect((await callee.signOn(lines)).status).toBe(200)
  const caller = await phone('103')
  const leg = await caller.call(user)
  // With `maddr` the phone is called where its REGISTER came from.
  if (user === '102') callee.peer.reply(await callee.peer.next('INVITE'), 486, { tag: 'b' })
  expect((await caller.answerTo(leg)).status).toBe(user === '102' ? 486 : 480)
  expect(heard()).toEqual([])
})

test('a phone that forwards to an agent or a user at a gateway gets nothing there', async () => {
  const callee = await phone('101')
  expect((await callee.signOn()).status).toBe(200)
  const caller = await phone('103')
  for (const target of [`sip:801@${domain}`, `sip:102@127.0.0.1:${gateway.port}`]) {
    const leg = await caller.call('101')
    const invite = await callee.peer.next('INVITE')
    callee.peer.contact = target
    callee.peer.reply(invite, 302, { tag: 'f' })
    callee.peer.contact = undefined
    expect((await caller.answerTo(leg)).status).toBeGreaterThanOrEqual(400)
  }
  expect(heard()).toEqual([])
})

test('a phone that transfers to an agent at a gateway is told 403', async () => {
  const callee = await phone('101')
  expect((await callee.signOn()).status).toBe(200)
  const caller = await phone('103')
  const leg = await caller.call('101')
  const invite = await callee.peer.next('INVITE')
  callee.peer.reply(invite, 200, { tag: 'c', body: sdp('answer') })
  caller.peer.learn(leg, await caller.answerTo(leg))
  caller.peer.request('ACK', leg)
  await callee.peer.next('ACK')
  const calleeLeg = callee.peer.calledLeg(invite, 'c')
  callee.peer.request('REFER', calleeLeg, { headers: [`Refer-To: <sip:801@${domain}>`] })
  await callee.peer.next('202 REFER')
  for (let news = ''; !news.includes('SIP/2.0 403');) {
    const notify = await callee.peer.next('NOTIFY')
    callee.peer.reply(notify, 200)
    news = notify.body
  }
  caller.peer.request('BYE', leg)
  callee.peer.reply(await callee.peer.next('BYE'), 200)
  expect(heard()).toEqual([])
})

test('click-to-call connects to no agent at a gateway', async () => {
  const callee = await phone('101')
  expect((await callee.signOn()).status).toBe(200)
  const source = { source_extension: '101', destination_number: '801', domain }
  await api('POST', '/pbx/calls/originate', source, 201)
  const invite = await callee.peer.next('INVITE')
  callee.peer.reply(invite, 200, { tag: 'o', body: sdp('offer') })
  await callee.peer.next('ACK')
  callee.peer.reply(await callee.peer.next('BYE'), 200)
  expect(heard()).toEqual([])
})

test('a supervisor is not connected to a spy_uri at a gateway', async () => {
  const supervisor = await phone('101')
  expect((await supervisor.signOn()).status).toBe(200)
  const caller = await phone('103')
  const leg = await caller.call('5550100')
  const invite = await pbx.next('INVITE')
  pbx.reply(invite, 200, { tag: 'p', body: sdp('answer') })
  caller.peer.learn(leg, await caller.answerTo(leg))
  caller.peer.request('ACK', leg)
  await pbx.next('ACK')
  const spy = { supervisor_extension: '101', mode: 'listen', domain }
  const body = { ...spy, call_uuid: invite.get('X-Call-UUID') }
  // 409 until the caller's ACK is here as well.
  await expect.poll(async () => (await api('POST', '/telephony/spy', body)).status).toBe(201)
  const ringing = await supervisor.peer.next('INVITE')
  supervisor.peer.reply(ringing, 200, { tag: 's', body: sdp('offer') })
  await supervisor.peer.next('ACK')
  supervisor.peer.reply(await supervisor.peer.next('BYE'), 200)
  expect(pbx.inbox.filter(({ method }) => method === 'INVITE')).toEqual([])
  expect(heard()).toEqual([])
  caller.peer.request('BYE', leg)
  pbx.reply(await pbx.next('BYE'), 200)
})

test('Route headers and an inbound route lead no call to a gateway', async () => {
  const trunk = await SipPeer.openPatient(tollgate.listener())
  const leg = trunk.leg(`sip:7801@127.0.0.1:${tollgate.sipPort}`)
  const headers = [`Route: <sip:127.0.0.1:${gateway.port};lr>`]
  trunk.request('INVITE', leg, { headers, body: sdp('offer') })
  expect((await trunk.next((message) => message.status >= 200)).status).toBe(403)
  const other = trunk.leg(`sip:720@127.0.0.1:${tollgate.sipPort}`)
  trunk.request('INVITE', other, { body: sdp('offer') })
  expect((await trunk.next((message) => message.status >= 200)).status).toBe(403)
  expect(heard()).toEqual([])
  trunk.close()
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
  await new Promise((resolve) => setTimeout(resolve, 1_100))
  caller.peer.request('BYE', leg)
  gateway.reply(await gateway.next('BYE'), 200)
  await eventually(() =>
    expect(tollgate.calls().at(-1)).toMatchObject({ carrier: 'north', disposition: 'ANSWERED' }),
  )
  expect(tollgate.calls().at(-1)?.cost_micros).toBeGreaterThan(0)
})
