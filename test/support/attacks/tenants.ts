/** Things that a tenant's key, or a client of the customer edge, may not reach. */
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Attack, repeatUntil, rich } from './world.ts'

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

/**
 * Everything that comes back on one connection before the answer to a last request; some texts take
 * it for a body.
 */
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

const batches: Attack = {
  name: 'batches of tools',
  guarantee: 'a batch of MCP counts as its members',
  async run({ api, adminKey, tollgate }, until) {
    const made = await api('POST', '/api/v1/application-keys', adminKey, {
      name: 'batches',
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

const lines = (count: number, line: (index: number) => string): string =>
  Array.from({ length: count }, (_, index) => line(index)).join('')

/** Tables of rates that are not valid, each as large as it may be. */
const hostileTables: Readonly<Record<string, () => string>> = {
  'a hundred thousand columns': () => `${lines(100_000, (index) => `column ${index},`)}x\n1\n`,
  'commas alone': () => ','.repeat(12_000_000),
  'empty lines': () => '\n'.repeat(16_000_000),
  'a quotation mark without an end': () => `prefix,rate_per_minute\n"${'x'.repeat(16_000_000)}`,
  'wrong lines': () => `prefix,rate_per_minute\n${'x,1\n'.repeat(3_000_000)}`,
  'a plan for each line': () =>
    `prefix,rate_per_minute,rate_plan\n${lines(200_000, (index) => `${index},1,plan ${index}\n`)}`,
  'prices of one prefix': () =>
    `prefix,rate_per_minute,effective_from\n${lines(100_000, (index) => `49,1,${new Date(index * 60_000).toISOString()}\n`)}`,
}

/** A caller would hang up. On a busy machine a call takes a tenth of it. */
const LATE_MS = 3_000

const tables: Attack = {
  name: 'tables of rates',
  guarantee: 'calls are set up and the API answers beside any table that a tenant imports',
  async run({ api, adminKey, tollgate, call, trusted }, until) {
    const made = await api('POST', '/api/v1/application-keys', adminKey, {
      name: `tables ${until}`,
      scopes: ['*'],
      tenant_scope: 'tenant',
      tenant_slug: 'acme',
    })
    const { token } = made.body.data as { readonly token: string }
    await api('POST', '/api/v1/rate-plans', token, { name: 'hostile', currency: 'USD' })
    const breaches: string[] = []
    let calls = 0
    const importing = async (table: string): Promise<number> => {
      const place = `http://127.0.0.1:${tollgate.apiPort}/api/v1/rates/import?rate_plan=hostile`
      const headers = { 'content-type': 'text/csv', authorization: `Bearer ${token}` }
      for (;;) {
        const answer = await fetch(place, { method: 'POST', headers, body: table })
          .then(async (response) => {
            await response.text()
            return response
          })
          // The connection may end before all of a refused table is sent.
          .catch(() => ({ status: 429 }))
        // The requests that the table before has used up come back with time.
        if (answer.status !== 429) return answer.status
        await sleep(1_000)
      }
    }
    await repeatUntil(until, async () => {
      for (const [name, table] of Object.entries(hostileTables)) {
        const answers: number[] = []
        const whole = table()
        const settled = importing(whole).then((status) => answers.push(status))
        do {
          const began = performance.now()
          const [status, health] = await Promise.all([
            call(trusted, '15551234567', rich),
            api('GET', '/api/v1/health', adminKey),
          ])
          calls += 1
          const tookMs = performance.now() - began
          if (status !== 200 || health.status !== 200)
            breaches.push(`${name}: a call got ${status}, the API answered ${health.status}`)
          if (tookMs > LATE_MS) breaches.push(`${name}: a call took ${Math.round(tookMs)} ms`)
        } while (answers.length === 0)
        await settled
        const [status] = answers
        if (status !== 400 && status !== 409) breaches.push(`${name}: answered with ${status}`)
      }
    })
    return { tried: `${calls} calls beside ${Object.keys(hostileTables).length} tables`, breaches }
  },
}

export const tenants: readonly Attack[] = [smuggling, batches, tables]
