/** What a tenant's key, or a client of the customer edge, may not reach. */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Attack, nameFor, repeatUntil } from './world.ts'

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
            ...{ ...own, direction: 'in', customer_id: victimId },
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

/** Everything that comes back on one connection within a moment. */
async function exchange(port: number, text: string): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let received = ''
  socket.on('error', () => undefined)
  socket.on('data', (chunk: Buffer) => (received += chunk.toString('latin1')))
  socket.write(text)
  await sleep(200)
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

export const tenants: readonly Attack[] = [walls, smuggling]
