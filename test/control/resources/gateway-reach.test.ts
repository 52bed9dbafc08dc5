import { expect, test } from 'vitest'
import { seedFile } from '../../../engine/commands/seed.ts'
import { openResources } from '../../support/resources.ts'

const carrier = {
  name: 'north',
  gateways: [
    { host: '203.0.113.0', netmask: 24, port: 5060 },
    { host: 'carrier.example' },
    { host: '2001:db8::5' },
  ],
}
const set = { endpoint_name: 'pbx', algorithm: 8, nodes: [{ host: '192.0.2.1' }] }
const agent = { name: 'bot', extension: '800', sip_uri: 'sip:bot@192.0.2.9' }

const gateways = [
  '203.0.113.0',
  '203.0.113.77',
  '203.0.113.0:5099',
  '203.0.113.0;transport=tcp',
  'carrier.example',
  'CARRIER.Example.:5080',
  '[2001:DB8::5]',
  '[::ffff:203.0.113.1]',
]

test.each(gateways)(
  'a destination at the gateway %s is refused wherever it is written',
  async (at) => {
    const { call } = await openResources()
    expect((await call('POST', '/routing/carriers', carrier)).status).toBe(201)
    const uri = `sip:1900@${at}`
    const refused = (path: string) => ({
      statusCode: 409,
      code: 'carrier_gateway',
      details: [{ path, message: expect.stringContaining('"north"') as string }],
    })
    const agents = '/telephony/ai-agents'
    expect((await call('POST', agents, { ...agent, sip_uri: uri })).body).toMatchObject(
      refused('sip_uri'),
    )
    const kept = (await call('POST', agents, agent)).data<{ id: number }>()
    expect((await call('PATCH', `${agents}/${kept.id}`, { sip_uri: uri })).body).toMatchObject(
      refused('sip_uri'),
    )
    const spy_uri = `sip:{call_uuid}@${at}`
    for (const [path, body] of [
      ['voicemail_uri', { voicemail_uri: uri }],
      ['spy_uri', { spy_uri }],
    ] as const)
      expect((await call('POST', '/dispatcher', { ...set, ...body })).body).toMatchObject(
        refused(path),
      )
    const { id } = (await call('POST', '/dispatcher', set)).data<{ id: number }>()
    expect((await call('PATCH', `/dispatcher/${id}`, { voicemail_uri: uri })).status).toBe(409)
    const host = at.replace(/(?<!:.*):\d+$|;.*$/, '').replace(/^\[|\]$/g, '')
    const nodes = [{ host: '192.0.2.1' }, { host }]
    expect((await call('PATCH', `/dispatcher/${id}`, { nodes })).body).toMatchObject(
      refused('nodes.1.host'),
    )
    expect((await call('POST', `/dispatcher/${id}/nodes`, { host })).body).toMatchObject(
      refused('host'),
    )
    const [node] = (await call('GET', `/dispatcher/${id}/nodes`)).data<{ id: number }[]>()
    const path = `/dispatcher/${id}/nodes/${node?.id ?? 0}`
    expect((await call('PATCH', path, { host })).body).toMatchObject(refused('host'))
  },
)

test('a carrier that is switched off is one all the same; a destination that is switched off waits', async () => {
  const { call } = await openResources()
  await call('POST', '/routing/carriers', { ...carrier, is_active: false })
  const uri = 'sip:1900@203.0.113.7'
  const agents = '/telephony/ai-agents'
  const waiting = await call('POST', agents, { ...agent, sip_uri: uri, is_active: false })
  expect(waiting.status).toBe(201)
  const { id } = waiting.data<{ id: number }>()
  expect((await call('PATCH', `${agents}/${id}`, { is_active: true })).status).toBe(409)
})

test('DNS is asked before a write, about what calls go to, and a change meanwhile is kept', async () => {
  const { call, engine } = await openResources()
  await call('POST', '/routing/carriers', carrier)
  const north = {
    carrier: 'north',
    tenantId: null,
    host: 'carrier.example',
    port: 0,
    transport: 'udp' as const,
    netmask: 32,
  }
  const asked: (readonly string[])[] = []
  const release: (() => void)[] = []
  Object.assign(engine, {
    lookUp: async (uris: readonly string[]) => {
      asked.push(uris)
      if (uris.includes('sip:slow@192.0.2.9'))
        await new Promise<void>((resolve) => release.push(resolve))
      return {
        gatewayLedTo: (uri: string) => (uri.includes('alias.example') ? north : undefined),
        addressesOf: () => [],
      }
    },
  })
  const agents = '/telephony/ai-agents'
  const led = { ...agent, sip_uri: 'sip:1@alias.example' }
  expect((await call('POST', agents, led)).code).toBe('carrier_gateway')
  expect((await call('POST', agents, { ...led, is_active: false })).status).toBe(201)
  expect(asked).toEqual([['sip:1@alias.example']])
  const { id } = (await call('POST', agents, { ...agent, name: 'b', extension: '801' })).data<{
    id: number
  }>()
  const slow = call('PATCH', `${agents}/${id}`, { sip_uri: 'sip:slow@192.0.2.9' })
  await expect.poll(() => release.length).toBe(1)
  expect((await call('PATCH', `${agents}/${id}`, { max_calls: 7 })).status).toBe(200)
  for (const each of release) each()
  expect((await slow).data()).toMatchObject({ sip_uri: 'sip:slow@192.0.2.9', max_calls: 7 })
})

test('a seed file is refused as a whole', async () => {
  const { store } = await openResources()
  await seedFile(store, JSON.stringify({ carriers: [carrier] }), 0)
  const dispatcher = [{ ...set, nodes: [{ host: 'carrier.example' }] }]
  await expect(seedFile(store, JSON.stringify({ dispatcher }), 0)).rejects.toThrow(
    /dispatcher\[0\]\.nodes\[0\]\.host.*gateway/,
  )
  const ai_agents = [{ ...agent, sip_uri: 'sip:1900@203.0.113.7' }]
  await expect(seedFile(store, JSON.stringify({ ai_agents }), 0)).rejects.toThrow(
    /ai_agents\[0\]\.sip_uri.*gateway/,
  )
})

test('a carrier is refused where its owner has calls go without a price, in the same seed file too', async () => {
  const { call, callAs, tenant, store } = await openResources()
  await tenant('acme')
  const here = { ...set, nodes: [{ host: '203.0.113.5' }] }
  expect((await call('POST', '/dispatcher', here)).status).toBe(201)
  expect((await call('POST', '/routing/carriers', carrier)).body).toMatchObject({
    statusCode: 409,
    code: 'carrier_gateway',
    details: [{ path: 'gateways.0.host', message: 'is a destination of the dispatcher set "pbx"' }],
  })
  const other = { name: 'south', gateways: [{ host: '198.51.100.1' }] }
  const { id } = (await call('POST', '/routing/carriers', other)).data<{ id: number }>()
  expect(
    (await call('PATCH', `/routing/carriers/${id}`, { gateways: carrier.gateways })).status,
  ).toBe(409)
  // A tenant's own agent is no reason to refuse the platform's carrier: calls do not go there any
  // more.
  const squatter = { ...agent, sip_uri: 'sip:1@192.0.2.200' }
  expect((await callAs('acme', 'POST', '/telephony/ai-agents', squatter)).status).toBe(201)
  const squatted = { name: 'east', gateways: [{ host: '192.0.2.200' }] }
  expect((await call('POST', '/routing/carriers', squatted)).status).toBe(201)
  const file = {
    dispatcher: [{ ...set, endpoint_name: 'west pbx', nodes: [{ host: 'west.example' }] }],
    carriers: [{ name: 'west', gateways: [{ host: 'west.example' }] }],
  }
  await expect(seedFile(store, JSON.stringify(file), 0)).rejects.toThrow(
    /carriers\[0\]\.gateways\[0\]\.host/,
  )
})

test.each(['127.0.0.1', 'localhost'])(
  'on %s the port tells a node from a gateway',
  async (host) => {
    const { call } = await openResources()
    const here = { name: 'here', gateways: [{ host, port: 5070 }] }
    expect((await call('POST', '/routing/carriers', here)).status).toBe(201)
    const at = (internal_port: number) => ({ ...set, nodes: [{ host, internal_port }] })
    expect((await call('POST', '/dispatcher', at(5080))).status).toBe(201)
    const twin = { ...here, name: 'twin', gateways: [{ host, port: 5090 }] }
    expect((await call('POST', '/routing/carriers', twin)).status).toBe(201)
    if (host !== 'localhost') {
      const refused = await call('POST', '/dispatcher', { ...at(5070), endpoint_name: 'b' })
      expect(refused.code).toBe('carrier_gateway')
    }
  },
)
