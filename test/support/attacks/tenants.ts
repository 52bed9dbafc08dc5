/** What a tenant's key, or a client of the customer edge, may not reach. */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Attack, nameFor, repeatUntil } from './world.ts'

const guardedMoney: Attack = {
  name: 'guards of the platform',
  guarantee: "a tenant's key changes nothing of what a cap of the platform counts, nor removes it",
  async run({ api, adminKey, tenantKey }, until) {
    const breaches: string[] = []
    let tries = 0
    const plan = async (name: string, price: string): Promise<void> => {
      await api('POST', '/api/v1/rate-plans', adminKey, { name, tenant: 'acme' })
      await api('POST', '/api/v1/rates', adminKey, {
        rate_plan: name,
        prefix: '',
        rate_per_minute: price,
      })
    }
    const suffix = nameFor(`${until}`)
    await plan(`paid ${suffix}`, '1')
    await plan(`free ${suffix}`, '0')
    const made = await api('POST', '/api/v1/customers', adminKey, {
      name: `guarded ${suffix}`,
      tenant: 'acme',
      rate_plan: `paid ${suffix}`,
    })
    const { id } = made.body.data as { readonly id: number }
    const set = await api('POST', '/api/v1/spend-guards', adminKey, {
      customer: id,
      prefix: '1',
      action: 'cap',
      amount: '1',
      reason: 'an attack',
    })
    const { guard } = set.body.data as { readonly guard: { readonly guard_id: string } }
    await repeatUntil(until, async () => {
      const rate = { prefix: '1', rate_per_minute: '0', rate_plan: `paid ${suffix}` }
      const attempts: readonly (readonly [string, string, object?])[] = [
        ['PATCH', `/api/v1/customers/${id}`, { rate_plan: `free ${suffix}` }],
        ['POST', '/api/v1/rates', rate],
        ['DELETE', `/api/v1/spend-guards/${guard.guard_id}`],
      ]
      for (const [method, path, body] of attempts) {
        tries += 1
        const { status } = await api(method, path, tenantKey, body)
        if (status < 300) breaches.push(`${method} ${path}: ${status}`)
      }
    })
    await api('DELETE', `/api/v1/spend-guards/${guard.guard_id}`, adminKey)
    return { tried: `${tries} changes of what a cap counts`, breaches }
  },
}

const walls: Attack = {
  name: 'tenant walls',
  guarantee: "a tenant's key writes nothing that takes calls, addresses or money of others",
  async run({ api, tenantKey, adminKey, tollgate, gateway }, until) {
    const [{ id: victimId } = { id: 0 }] = tollgate.query<{ id: number }>(
      "SELECT id FROM customer WHERE name = 'victim'",
    )
    const [host = '', port = ''] = gateway.split(':')
    const breaches: string[] = []
    let tries = 0
    await repeatUntil(until, async () => {
      const name = nameFor(`${tries}`)
      const own = { name, is_active: true }
      const attempts: readonly (readonly [string, object])[] = [
        [
          '/api/v1/routing/carriers',
          {
            ...own,
            direction: 'in',
            customer_id: victimId,
            gateways: [{ host: '198.51.100.1', port: 5060 }],
          },
        ],
        [
          '/api/v1/routing/carriers',
          { ...own, direction: 'both', gateways: [{ host, port: Number(port), netmask: 8 }] },
        ],
        [
          '/api/v1/dispatcher',
          {
            endpoint_name: name,
            algorithm: 8,
            set_id: 900,
            nodes: [{ host, internal_port: Number(port) }],
          },
        ],
        ['/api/v1/routing/inbound', { ...own, prefix: '', set_id: 1 }],
        ['/api/v1/application-keys', { name, scopes: ['*'], tenant_scope: 'global' }],
        ['/api/v1/tenants', { slug: name, name }],
        ['/api/v1/guard/bans', { address: '203.0.113.77' }],
        [`/api/v1/customers/${victimId}/topup`, { amount: '1' }],
      ]
      for (const [path, body] of attempts) {
        tries += 1
        const { status } = await api('POST', path, tenantKey, body)
        if (status < 300) breaches.push(`${path} ${JSON.stringify(body)}: ${status}`)
      }
      const seen = await api('GET', `/api/v1/customers/${victimId}`, tenantKey)
      if (seen.status < 300) breaches.push(`a customer of the platform is shown: ${seen.status}`)
    })
    // What was written after all must not stay for the next attack.
    const { body } = await api('GET', '/api/v1/dispatcher', adminKey)
    const sets = (body.data ?? []) as { id: number; set_id: number }[]
    for (const { id, set_id } of sets)
      if (set_id === 900) await api('DELETE', `/api/v1/dispatcher/${id}`, adminKey)
    return { tried: `${tries} writes with a tenant's key`, breaches }
  },
}

const inner = 'GET /api/v1/users HTTP/1.1\r\nHost: x\r\nX-Inner: 1\r\n'

const smuggled = (key: string): readonly string[] => {
  const hidden = `${inner}Authorization: Bearer ${key}\r\n\r\n`
  const chunk = `${hidden.length.toString(16)}\r\n${hidden}\r\n0\r\n\r\n`
  const post =
    'POST /api/client/auth/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
  return [
    `${post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`,
    `${post}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n${chunk}`,
    `${post}Transfer-Encoding: xchunked\r\nContent-Length: 0\r\n\r\n${hidden}`,
    `${post}Transfer-Encoding : chunked\r\nContent-Length: 0\r\n\r\n${hidden}`,
    `${post}Content-Length: 0\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`,
    `${post}Content-Length: +0\r\n\r\n${hidden}`,
    `${post}Content-Length: 0\r\n\r\n${hidden}`,
    `GET /api/client/../v1/users HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`,
    `GET /api/client/%2e%2e/v1/users HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`,
    `GET /api/client//..//v1/users HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`,
    `GET http://x/api/v1/users HTTP/1.1\r\nHost: x\r\nX-Original-URL: /health\r\nAuthorization: Bearer ${key}\r\n\r\n`,
    `GET /health HTTP/1.1\r\nHost: x\r\nX-Original-URL: /api/v1/users\r\nX-Rewrite-URL: /api/v1/users\r\nAuthorization: Bearer ${key}\r\n\r\n`,
  ]
}

const FENCE = 'GET /health HTTP/1.1\r\nHost: x\r\nX-Correlation-Id: the-fence\r\n\r\n'

/** Everything that comes back on one connection before the answer to a last request; some texts take it for a body. */
async function exchange(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let received = ''
  socket.on('error', () => undefined)
  const answered = new Promise<void>((resolve) => {
    socket.on('close', () => resolve())
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString('latin1')
      if (received.includes('the-fence')) resolve()
    })
  })
  socket.write(text + FENCE)
  await Promise.race([answered, sleep(500)])
  socket.destroy()
  return received
}

const smuggling: Attack = {
  name: 'smuggling and headers',
  guarantee: 'no request passes the customer edge to what is behind it, hidden in another or not',
  async run({ tollgate, adminKey }, until) {
    const breaches: string[] = []
    let tries = 0
    await repeatUntil(until, async () => {
      for (const text of smuggled(adminKey)) {
        tries += 1
        const received = await exchange(tollgate.edgePort, text)
        if (received.includes('"username"')) breaches.push(JSON.stringify(text.slice(0, 120)))
      }
    })
    return { tried: `${tries} requests`, breaches }
  },
}

/** What is proposed of a name: where the named ones are, how they are made, and how the change shows in one. */
const proposable = [
  {
    tool: 'set_customer_limits',
    field: 'customer',
    path: '/customers',
    given: { credit_limit: '10000' },
    body: (name: string) => ({ name, rate_plan: 'retail' }),
    isChanged: (row: object) => 'credit_limit' in row && Number(row.credit_limit) === 10_000,
  },
  {
    tool: 'set_trunk_state',
    field: 'carrier',
    path: '/routing/carriers',
    given: { state: 'inactive' },
    body: (name: string) => ({
      name,
      gateways: [{ host: `198.51.100.${(parseInt(name.slice(0, 6), 16) % 250) + 2}` }],
      direction: 'out',
    }),
    isChanged: (row: object) => 'is_active' in row && row.is_active === false,
  },
  {
    tool: 'suspend_api_key',
    field: 'identifier',
    path: '/application-keys',
    given: {},
    body: (name: string) => ({ name, scopes: ['calls:read'] }),
    isChanged: (row: object) => 'suspended_at' in row && row.suspended_at !== null,
  },
] as const

const swappedNames: Attack = {
  name: 'swapped names',
  guarantee:
    'an approved proposal is made to what was shown, or to nothing, whoever has its name by then',
  async run({ api, adminKey, session, random }, until) {
    const breaches: string[] = []
    const write = async (method: string, path: string, token: string, body: object) => {
      const { status, body: answer } = await api(method, `/api/v1${path}`, token, body)
      return { status, code: answer.code, data: (answer.data ?? {}) as Record<string, unknown> }
    }
    const mark = nameFor(`${random()}`)
    const agentBody = { name: `agent ${mark}`, scopes: ['*:read', 'mcp:propose'] }
    const agent = await write('POST', '/application-keys', adminKey, agentBody)
    let tries = 0
    await repeatUntil(until, async () => {
      for (const { tool, field, path, given, body, isChanged } of proposable) {
        tries += 1
        const [name, other] = [nameFor(`${mark} ${tries}`), nameFor(`${mark} ${tries} other`)]
        const idOf = async (made: string): Promise<string> => {
          const { data } = await write('POST', path, adminKey, body(made))
          return String(data['uuid'] ?? data['id'])
        }
        const [shown, beside] = [await idOf(name), await idOf(other)]
        const { data } = await write(
          'POST',
          '/mcp/tools/propose_change',
          String(agent.data['token']),
          { tool, arguments: { [field]: name, ...given }, reason: 'as its name says' },
        )
        for (const [id, becomes] of [
          [shown, `${name} before`],
          [beside, name],
          [shown, other],
        ])
          await write('PATCH', `${path}/${id}`, adminKey, { name: becomes })
        const proposal = `/proposals/${String(data['proposal_id'])}/approve`
        const approved = await write('POST', proposal, session, { revision: 1 })
        const { body: now } = await api('GET', `/api/v1${path}/${beside}`, adminKey)
        if (isChanged(now.data as object))
          breaches.push(`${tool} of ${shown} was made to ${beside}: ${approved.status}`)
        else if (approved.status !== 409)
          breaches.push(`${tool}: ${approved.status} ${approved.code ?? ''}`)
        for (const id of [shown, beside]) await api('DELETE', `/api/v1${path}/${id}`, adminKey)
      }
    })
    return { tried: `${tries} proposals`, breaches }
  },
}

/** Spellings of places that only the machine itself may reach. */
const innerHosts = [
  '127.0.0.1',
  '127.1.2.3',
  '0.0.0.0',
  '169.254.169.254',
  'localhost',
  '2130706433',
  '0x7f000001',
  '0177.0.0.1',
  '[::1]',
  '[::]',
  '[::ffff:127.0.0.1]',
  '[64:ff9b::7f00:1]',
  '[fe80::1]',
  '[2002:7f00:1::]',
]

const inward: Attack = {
  name: 'inward destinations',
  guarantee: 'nothing that a tenant writes leads to loopback or link-local, in any spelling',
  async run({ api, tenantKey }, until) {
    const breaches: string[] = []
    let tries = 0
    await repeatUntil(until, async () => {
      for (const host of innerHosts) {
        tries += 1
        const name = nameFor(`inward ${tries}`)
        const uri = `sip:x@${host}:6379;transport=tcp`
        const plain = host.replaceAll(/[[\]]/g, '')
        const nodes = [{ host: '192.0.2.9', internal_port: 5060 }]
        const set = { endpoint_name: name, algorithm: 8 }
        const attempts: readonly (readonly [string, object])[] = [
          ['/api/v1/telephony/ai-agents', { name, extension: `8${tries}`, sip_uri: uri }],
          ['/api/v1/dispatcher', { ...set, nodes: [{ host: plain, internal_port: 6379 }] }],
          ['/api/v1/dispatcher', { ...set, nodes, voicemail_uri: uri }],
          ['/api/v1/dispatcher', { ...set, nodes, spy_uri: `sip:{call_uuid}@${host}:6379` }],
          ['/api/v1/routing/carriers', { name, gateways: [{ host: plain, port: 6379 }] }],
        ]
        for (const [path, body] of attempts) {
          const { status } = await api('POST', path, tenantKey, body)
          if (status < 300) breaches.push(`${path} ${JSON.stringify(body)}: ${status}`)
        }
      }
    })
    return { tried: `${tries} hosts, each at five places`, breaches }
  },
}

const batches: Attack = {
  name: 'batches of tools',
  guarantee: 'a batch of MCP counts as its members',
  async run({ api, adminKey, tollgate }, until) {
    const made = await api('POST', '/api/v1/application-keys', adminKey, {
      name: nameFor('batches'),
      scopes: ['mcp:read'],
      rate_limit_rpm: 60,
    })
    const { token } = made.body.data as { readonly token: string }
    const member = { jsonrpc: '2.0', method: 'tools/list', params: {} }
    const body = JSON.stringify(Array.from({ length: 40 }, (_, id) => ({ ...member, id })))
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${token}`,
    }
    const ends = performance.now() + 60_000
    let served = 0
    await repeatUntil(Math.min(until, ends), async () => {
      const place = `http://127.0.0.1:${tollgate.apiPort}/mcp`
      for (let count = 0; count < 3; count += 1) {
        const answer = await fetch(place, { method: 'POST', headers, body })
        await answer.text()
        if (answer.status !== 429) served += 1
      }
    })
    const breaches = served > 1 ? [`${served} batches of 40 with 60 requests a minute`] : []
    return { tried: `batches of 40: ${served} served`, breaches }
  },
}

export const tenants: readonly Attack[] = [
  guardedMoney,
  walls,
  smuggling,
  swappedNames,
  inward,
  batches,
]
