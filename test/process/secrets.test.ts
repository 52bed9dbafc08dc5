/**
 * A full run of the program with secrets of every kind. Afterwards nothing that it said and nothing
 * that it stored holds one of them; only the answer that made a secret showed it, once.
 */
import { createHmac } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { expect, test } from 'vitest'
import { DigestPhone } from '../support/digest-phone.ts'
import { isOnPostgres } from '../support/on-sqlite.ts'
import { TollgateProcess } from '../support/tollgate-process.ts'

const domain = 'acme.example'
const extension = '2001'
const known = {
  admin: 'an administrator logs in',
  user: 'an operator logs in',
  newUser: 'and chose another password',
  customer: 'a customer logs in',
  phone: `secret-${extension}`,
  seededPhone: 'a phone out of a file',
  carrier: 'one carrier to another',
  seededCarrier: 'a carrier out of a file',
  payment: 'whsec_of_the_payment_provider',
  wrong: 'a guessed password',
}

const seed = {
  tenants: [{ slug: 'acme', domains: [domain] }],
  rate_plans: [{ name: 'retail', currency: 'USD' }],
  customers: [
    { name: 'Acme', email: 'pay@acme.example', password: known.customer, tenant: 'acme' },
  ],
  extensions: [
    { tenant: 'acme', extension: '2002', password: known.seededPhone, display_name: 'Seeded' },
  ],
  carriers: [
    {
      name: 'seeded',
      gateways: [{ host: '127.0.0.8' }],
      auth: { type: 'digest', username: 'us', password: known.seededCarrier },
    },
  ],
}

test('a full run leaves no token, password or signing secret in answers, logs or files', async () => {
  const tollgate = await TollgateProcess.start(seed, {
    LOG_LEVEL: 'debug',
    ADMIN_PASSWORD: known.admin,
    PAYMENT_WEBHOOK_SECRET: known.payment,
    WEBHOOK_PRIVATE_TARGETS: 'allow',
  })
  try {
    const run = await useEverything(tollgate)
    expect(run.statuses).toEqual(run.expected)
    const secrets = [...Object.values(known), ...run.revealed]
    expect(secrets).toHaveLength(17)
    const stored = (): Said[] => [...filesOf(tollgate), ...(isOnPostgres ? rowsOf(tollgate) : [])]
    // The log of SQLite is still beside the database while the process runs.
    expect(traces(secrets, [...run.said, ...stored()])).toEqual([])
    const names = stored().map(({ name }) => name)
    expect(names).toContain(isOnPostgres ? 'table application_key' : 'tollgate.db-wal')
    await tollgate.terminate()
    const log = { name: 'log', text: tollgate.log.join('\n') }
    expect(traces(secrets, [log, ...stored()])).toEqual([])
  } finally {
    await tollgate.stop()
  }
})

interface Said {
  readonly name: string
  readonly text: string
}

/** Which secret stands where; the first 12 characters of a token are its public prefix. */
function traces(secrets: readonly string[], places: readonly Said[]): string[] {
  return secrets.flatMap((secret) => {
    const part = secret.length > 60 ? secret.slice(12) : secret
    const forms = [part, Buffer.from(part).toString('base64'), encodeURIComponent(part)]
    return places
      .filter(({ text }) => forms.some((form) => text.includes(form)))
      .map(({ name }) => `${secret} in ${name}`)
  })
}

/** All but the file that provisioned it, and the key. */
const filesOf = ({ folder }: TollgateProcess): Said[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)))
    .filter((name) => name !== 'seed.json' && !name.endsWith('.key'))
    .map((name) => ({ name, text: readFileSync(join(folder, name), 'latin1') }))

/** The rows that the tables of a server hold. */
const rowsOf = (tollgate: TollgateProcess): Said[] =>
  tollgate
    .query<{ name: string }>(
      "SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'public'",
    )
    .map(({ name }) => ({
      name: `table ${name}`,
      text: tollgate
        .query<{ row: string }>(`SELECT t::text AS row FROM "${name}" t`)
        .map(({ row }) => withBytes(row))
        .join('\n'),
    }))

/** The server writes bytes as hexadecimal digits. */
const withBytes = (row: string): string =>
  row.replaceAll(/\\x([\da-f]+)/g, (_, digits: string) =>
    Buffer.from(digits, 'hex').toString('latin1'),
  )

async function useEverything(tollgate: TollgateProcess) {
  const said: Said[] = []
  const revealed: string[] = []
  const statuses: number[] = []
  const expected: number[] = []
  const ask = async (
    status: number,
    words: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<string> => {
    const [method = '', path = ''] = words.split(' ')
    const answer = await fetch(`http://127.0.0.1:${tollgate.apiPort}${path}`, {
      method,
      headers: { authorization: `Bearer ${admin}`, 'content-type': 'application/json', ...headers },
      ...(body === undefined
        ? {}
        : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = `${[...answer.headers].join('\n')}\n\n${await answer.text()}`
    statuses.push(answer.status)
    expected.push(status)
    said.push({ name: `answer to ${words}`, text })
    return text
  }
  /** The one answer that may show what it made. */
  const reveal = async (...request: Parameters<typeof ask>): Promise<string> => {
    const secret = /"(?:token|secret)":"([^"]+)"/.exec(await ask(...request))?.[1] ?? ''
    said.pop()
    if (!revealed.includes(secret)) revealed.push(secret)
    return secret
  }

  const admin = await tollgate.createKey('--name', 'root', '--scopes', '*')
  revealed.push(admin)

  const once = { 'idempotency-key': 'said-by-its-caller' }
  const keys = '/api/v1/application-keys'
  const token = await reveal(201, `POST ${keys}`, { name: 'ci' }, once)
  await ask(201, `POST ${keys}`, { name: 'ci' }, once)
  const self = await ask(200, `GET ${keys}/self`, undefined, { authorization: `Bearer ${token}` })
  const uuid = /"uuid":"([^"]+)"/.exec(self)?.[1] ?? ''
  await reveal(201, `POST ${keys}/${uuid}/rotate`, { grace_seconds: 60 })
  await ask(200, `DELETE ${keys}/${uuid}`)
  await ask(401, 'GET /api/v1/health', undefined, { authorization: `Bearer ${token}` })

  const login = { username: 'admin', password: known.admin }
  const session = await reveal(200, 'POST /auth/login', login)
  await ask(200, 'GET /auth/me', undefined, { authorization: `Bearer ${session}` })
  await ask(401, 'POST /auth/login', { ...login, password: known.wrong })
  await ask(400, 'POST /auth/login', { username: known.wrong, password: 1 })
  await ask(201, 'POST /api/v1/users', { username: 'op', password: known.user, role: 'operator' })
  await ask(200, 'PATCH /api/v1/users/2', { password: known.newUser })
  const client = { email: 'pay@acme.example', password: known.customer }
  const customer = await reveal(200, 'POST /api/client/auth/login', client)
  await ask(200, 'GET /api/client/auth/me', undefined, { authorization: `Bearer ${customer}` })

  const carrier = { type: 'register', username: 'us', password: known.carrier, expires: 60 }
  const gateways = [{ host: '127.0.0.9', port: 9 }]
  await ask(201, 'POST /api/v1/routing/carriers', { name: 'transit', gateways, auth: carrier })
  await ask(200, 'PATCH /api/v1/routing/carriers/2', { max_calls: 3 })
  const phone = { extension, password: known.phone, display_name: 'Desk', tenant: 'acme' }
  await ask(201, 'POST /api/v1/pbx/extensions', phone)
  const hook = { url: `http://127.0.0.1:${tollgate.apiPort}/no-receiver` }
  await reveal(201, 'POST /api/v1/webhooks', hook)
  await reveal(200, 'POST /api/v1/webhooks/1/rotate', { overlap_seconds: 60 })
  await ask(202, 'POST /api/v1/webhooks/1/test')

  const account = { user: extension, domain, password: known.phone }
  const device = await DigestPhone.open(tollgate.listener(), account)
  expect((await device.signOn()).status).toBe(200)
  device.close()

  const paid = { payment_status: 'paid', amount_total: 1_000, currency: 'usd' }
  const object = { id: 'cs_1', customer_email: 'pay@acme.example', ...paid }
  const event = JSON.stringify({
    id: 'evt_1',
    type: 'checkout.session.completed',
    data: { object },
  })
  const time = Math.floor(Date.now() / 1_000)
  const signature = createHmac('sha256', known.payment).update(`${time}.${event}`).digest('hex')
  const signed = { 'stripe-signature': `t=${time},v1=${signature}` }
  await ask(200, 'POST /api/client/payments/webhook', event, signed)
  await ask(400, 'POST /api/client/payments/webhook', event, {
    'stripe-signature': `t=${time},v1=${known.wrong}`,
  })

  for (const path of ['application-keys', 'users', 'routing/carriers', 'pbx/extensions'])
    await ask(200, `GET /api/v1/${path}`)
  for (const path of [
    'webhooks',
    'webhooks/1/deliveries',
    'customers',
    'audit',
    'metrics/telemetry',
  ])
    await ask(200, `GET /api/v1/${path}`)
  for (const path of ['/metrics', '/openapi.json', '/health']) await ask(200, `GET ${path}`)
  await ask(200, 'POST /auth/logout', undefined, { authorization: `Bearer ${session}` })
  await ask(404, `GET /api/v1/nothing/${encodeURIComponent('a?token=x')}`)
  said.push({ name: 'log', text: tollgate.log.join('\n') })
  return { said, revealed, statuses, expected }
}
