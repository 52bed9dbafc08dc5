/** Destinations that are this SBC itself, and those of tenants inside the platform. */
import { expect, test } from 'vitest'
import { innerCheck } from '../../../schema/rules/gateways.ts'
import { all } from '../../../schema/sql/query.ts'
import { openResources } from '../../support/resources.ts'

const ownPlaces = {
  networks: () => ['10.9.8.7/24', '198.18.0.5/15', '8.8.8.8/24', '203.0.113.77'],
  listeners: () => [
    {
      hosts: ['127.0.0.0/8', '10.9.8.7', 'sbc.example', '198.51.100.10'],
      port: 5060,
      isDatagram: true,
    },
    { hosts: ['10.9.8.7', 'sbc.example'], port: 5061, isDatagram: false },
    { hosts: ['10.9.8.8'], port: 5070, isDatagram: undefined },
  ],
  allowed: ['10.9.8.128/25'],
}

const inner = [
  '127.0.0.1',
  '127.8.9.1',
  '0.0.0.0',
  '169.254.169.254',
  '10.9.8.6',
  '198.18.3.4',
  '8.8.8.8',
  '203.0.113.77',
  '224.0.0.1',
  '255.255.255.255',
  '::',
  '::1',
  'fe80::1',
  'fe80::1%eth0',
  '::ffff:127.0.0.1',
  '::ffff:a09:806',
  '::127.0.0.1',
  '64:ff9b::7f00:1',
  '64:ff9b:1::a09:806',
  '::ffff:0:7f00:1',
  '2002:7f00:1::',
  '2001::1',
  'ff02::1',
  'no address',
]

test.each(inner)('%s is inside', (address) => {
  expect(innerCheck(ownPlaces)(address)).toBe(true)
})

test.each(['10.9.8.200', '10.9.9.1', '8.8.8.9', '192.0.2.1', '64:ff9b::808:809', '2606:4700::1'])(
  '%s is outside, or allowed',
  (address) => {
    expect(innerCheck(ownPlaces)(address)).toBe(false)
  },
)

const hosts = [
  '127.0.0.1',
  '[::1]',
  '[::ffff:127.0.0.1]',
  '[64:ff9b::7f00:1]',
  '10.9.8.6',
  'localhost',
  '169.254.169.254',
  'rebind.example',
]

async function opened() {
  const resources = await openResources({ ownPlaces })
  const { tenant, engine, call } = resources
  await tenant('acme')
  const answers: Record<string, string> = {
    'rebind.example': '127.0.0.1',
    'alias.example': '10.9.8.7',
  }
  Object.assign(engine, {
    lookUp: (uris: readonly string[]) =>
      Promise.resolve({
        gatewayLedTo: () => undefined,
        addressesOf: (uri: string) =>
          uris.includes(uri)
            ? Object.entries(answers).flatMap(([name, address]) =>
                uri.includes(name) ? [address] : [],
              )
            : [],
      }),
  })
  const node = (host: string, more = {}) => ({
    host: host.replaceAll(/[[\]]/g, ''),
    internal_port: 6379,
    ...more,
  })
  const set = (host: string, more = {}) => ({
    endpoint_name: 'p',
    algorithm: 8,
    nodes: [node(host)],
    ...more,
  })
  const outside = '192.0.2.7'
  return { ...resources, node, set, outside, answers, call }
}

test.each(hosts)('nothing that a tenant writes leads to %s', async (host) => {
  const { callAs, node, set, outside } = await opened()
  const agent = { name: 'a', extension: '800', sip_uri: `sip:x@${outside}` }
  const { id: agentId } = (await callAs('acme', 'POST', '/telephony/ai-agents', agent)).data<{
    id: number
  }>()
  const { id: setId } = (await callAs('acme', 'POST', '/dispatcher', set(outside))).data<{
    id: number
  }>()
  const uri = `sip:x@${host}:6379;transport=tcp`
  const gateways = [{ host: node(host).host, port: 6379, transport: 'tcp' }]
  const attempts: readonly (readonly [string, string, object])[] = [
    ['POST', '/telephony/ai-agents', { ...agent, name: 'b', extension: '801', sip_uri: uri }],
    ['PATCH', `/telephony/ai-agents/${agentId}`, { sip_uri: uri }],
    ['POST', '/dispatcher', { ...set(host), endpoint_name: 'q' }],
    ['POST', `/dispatcher/${setId}/nodes`, node(host)],
    ['PATCH', `/dispatcher/${setId}`, { voicemail_uri: uri }],
    ['PATCH', `/dispatcher/${setId}`, { spy_uri: `sip:{call_uuid}@${host}:6379` }],
    ['POST', '/routing/carriers', { name: 'c', direction: 'out', gateways }],
  ]
  for (const [method, path, body] of attempts) {
    const { status } = await callAs('acme', method, path, body)
    expect([method, path, status]).toEqual([method, path, 409])
  }
})

test('the platform may write them, and a tenant may change the rest of such a row', async () => {
  const { call, callAs, set, store } = await opened()
  const agent = { name: 'a', extension: '800', sip_uri: 'sip:x@127.0.0.1:6379', tenant: 'acme' }
  const made = await call('POST', '/telephony/ai-agents', agent)
  expect(made.status).toBe(201)
  const { id } = made.data<{ id: number }>()
  const changed = await callAs('acme', 'PATCH', `/telephony/ai-agents/${id}`, { max_calls: 3 })
  expect(changed.status).toBe(200)
  const flag = store.db.selectFrom('ai_agent').select('is_by_tenant')
  expect(await all(store, flag)).toEqual([{ is_by_tenant: 0 }])
  expect((await call('POST', '/dispatcher', set('127.0.0.1'))).status).toBe(201)
})

test('a node or gateway that is the SBC itself is refused, by each of its names and addresses', async () => {
  const { call, set, node } = await opened()
  const own: readonly (readonly [string, number, string])[] = [
    ...(
      [
        '127.0.0.1',
        '127.5.5.5',
        '10.9.8.7',
        'sbc.example',
        '198.51.100.10',
        'alias.example',
        'localhost',
        '::ffff:10.9.8.7',
      ] as const
    ).map((host) => [host, 5060, 'udp'] as const),
    ...(['10.9.8.7', 'sbc.example', 'alias.example'] as const).map(
      (host) => [host, 5061, 'tls'] as const,
    ),
    ['10.9.8.8', 5070, 'tcp'],
    ['10.9.8.8', 5070, 'udp'],
  ]
  for (const [host, port, transport] of own) {
    const member = node(host, { internal_port: port, transport })
    const made = await call('POST', '/dispatcher', { ...set(host), nodes: [member] })
    expect([host, port, transport, made.code]).toEqual([host, port, transport, 'own_address'])
    const ports = port === 5070 ? [port] : [port, 0]
    for (const each of ports) {
      const gateways = [{ host, port: each, transport }]
      const carrier = await call('POST', '/routing/carriers', { name: 'c', gateways })
      expect([host, each, transport, carrier.code]).toEqual([host, each, transport, 'own_address'])
    }
  }
  const beside = set('127.0.0.1', { nodes: [node('127.0.0.1', { internal_port: 5062 })] })
  const made = await call('POST', '/dispatcher', beside)
  expect(made.status).toBe(201)
  const { id } = made.data<{ id: number }>()
  const added = await call(
    'POST',
    `/dispatcher/${id}/nodes`,
    node('sbc.example', { internal_port: 5060 }),
  )
  expect(added.code).toBe('own_address')
})

test.each(['224.0.0.1', '255.255.255.255', '0.0.0.0', '[::]', '[ff02::1]', '[::ffff:239.1.2.3]'])(
  'nobody may write %s as a place to call: it is no single host',
  async (written) => {
    const { call, node, set } = await opened()
    const host = written.replace(/[[\]]/g, '')
    const answers = [
      await call('POST', '/routing/carriers', { name: 'c', gateways: [{ host }] }),
      await call('POST', '/dispatcher', { ...set('a'), nodes: [node(host)] }),
      await call('POST', '/dispatcher', {
        ...set('b'),
        nodes: [node('198.51.100.77')],
        voicemail_uri: `sip:vm@${written}`,
      }),
      await call('POST', '/telephony/ai-agents', {
        name: 'a',
        extension: '801',
        sip_uri: `sip:1@192.0.2.1;maddr=${written}`,
      }),
    ]
    for (const { status, code } of answers)
      expect([
        [400, 'validation_failed'],
        [409, 'no_single_host'],
      ]).toContainEqual([status, code])
  },
)
