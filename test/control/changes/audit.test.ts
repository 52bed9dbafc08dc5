import { expect, test, describe } from 'vitest'
import { openControl, startOfTime } from '../../support/control.ts'
import { failing, runSql, readRows } from '../../support/stored.ts'
import { auditedActor, type AuditEntry, AuditLog } from '../../../control/changes/audit.ts'
import type { Store } from '../../../schema/storage/store.ts'
import { DatabaseUnavailable } from '../../../schema/sql/failure.ts'
import { all } from '../../../schema/sql/query.ts'
import { aroundStatements } from '../../support/around-statements.ts'
import { eachDatabase } from '../../support/shared-database.ts'
import { connectClient, eras } from '../../support/mcp-client.ts'

const KEYS = '/api/v1/application-keys'

interface Entry {
  readonly actor: string
  readonly action: string
  readonly target: string
  readonly outcome: string
  readonly status: number
  readonly code: string | null
  readonly before_digest: string | null
  readonly after_digest: string | null
  readonly effect: string | null
}

async function opened() {
  const control = await openControl()
  const token = await control.key({ name: 'auditor' })
  const trail = async (query = '') =>
    (await control.request(`/api/v1/audit?${query}`, { token })).data<Entry[]>()
  const create = (name: string, headers = {}) =>
    control.request(KEYS, { token, body: { name }, headers })
  return { ...control, token, trail, create }
}

test('every mutating request leaves who, what, digests, outcome and correlation id', async () => {
  const { create, trail, request, token } = await opened()
  const self = await request(`${KEYS}/self`, { token })
  const made = await create('ci', { 'X-Correlation-ID': 'deploy-7' })
  expect(await trail()).toEqual([
    {
      id: 1,
      at: new Date(startOfTime).toISOString(),
      actor: `key:${self.data<{ uuid: string }>().uuid}`,
      actor_name: 'auditor',
      actor_key_prefix: token.slice(0, 12),
      tenant_id: null,
      address: '192.0.2.1',
      action: `POST ${KEYS}`,
      target: KEYS,
      target_name: null,
      outcome: 'success',
      status: 201,
      code: null,
      before_digest: null,
      after_digest: expect.stringMatching(/^[\w-]{43}$/),
      correlation_id: 'deploy-7',
      change_id: made.headers.get('x-change-id'),
      reason: null,
      is_agent: false,
      effect: 'The key "ci" is created.',
    },
  ])
})

test('a change is traced from digest to digest', async () => {
  const { access, create, trail, request, token, tick } = await opened()
  const { uuid, token: made } = (await create('ci')).data<{ uuid: string; token: string }>()
  // A use between two changes is none.
  tick(1_000)
  await request('/api/v1/health', { token: made })
  await access.tick()
  await request(`${KEYS}/${uuid}`, { token, method: 'PATCH', body: { description: 'x' } })
  await request(`${KEYS}/${uuid}`, { token, method: 'DELETE' })
  const [removed, changed, first] = await trail()
  expect(changed?.before_digest).toBe(first?.after_digest)
  expect(removed?.before_digest).toBe(changed?.after_digest)
  expect(changed?.action).toBe(`PATCH ${KEYS}/:uuid`)
  expect(changed?.target).toBe(`${KEYS}/${uuid}`)
})

test('an entry names its object as it is called now, to those who may see it', async () => {
  const { create, trail, request, token, key, tenant } = await opened()
  await tenant('acme')
  const ours = await key({ name: 'ours', tenant_scope: 'tenant', tenant_slug: 'acme' })
  const { uuid } = (await create('ci')).data<{ uuid: string }>()
  const rename = (as: string) =>
    request(`${KEYS}/${uuid}`, { token: as, method: 'PATCH', body: { name: 'build' } })
  await rename(token)
  // The tenant learns no name of a key that it cannot see.
  expect((await rename(ours)).status).toBe(404)
  const named = async (as: string) =>
    (await request('/api/v1/audit?action=PATCH', { token: as }))
      .data<{ target_name: string | null }[]>()
      .map(({ target_name: name }) => name)
  expect(await named(ours)).toEqual([null])
  expect(await named(token)).toEqual(['build', 'build'])
  expect(await trail('action=POST')).toMatchObject([{ target: KEYS, target_name: null }])
})

test('what a webhook became is told without its address, which may hold a secret', async () => {
  const { trail, request, token } = await opened()
  const path = '/api/v1/webhooks'
  const body = { url: 'https://hooks.example/T0/secret-1', events: ['call.ended'] }
  const { id } = (await request(path, { token, body })).data<{ id: number }>()
  for (const url of ['https://hooks.example/T0/secret-2', 'https://other.example/?key=secret-3'])
    await request(`${path}/${id}`, { token, method: 'PATCH', body: { url } })
  await request(`${path}/${id}`, { token, method: 'DELETE' })
  expect((await trail()).map(({ effect }) => effect)).toEqual([
    'The webhook "other.example" is removed.',
    'The webhook "hooks.example" is changed: address "other.example", was "hooks.example".',
    'The webhook "hooks.example" is changed: address (another one at "hooks.example").',
    'The webhook "hooks.example" is created.',
  ])
})

test('refused and failed requests are traced with their code', async () => {
  const { create, trail, store, request, key } = await opened()
  await create('')
  await request(KEYS, { token: await key({ scopes: [] }), body: { name: 'x' } })
  await runSql(store, 'DROP INDEX application_key_name')
  await failing(store, 'INSERT', 'application_key')
  await create('z')
  expect((await trail()).map(({ outcome, status, code }) => [outcome, status, code])).toEqual([
    ['failed', 500, 'internal_error'],
    ['refused', 403, 'insufficient_scope'],
    ['refused', 400, 'validation_failed'],
  ])
})

test('what is refused before its route is traced: tenant, address, size, an unknown path', async () => {
  const { trail, request, token, key, tenant } = await opened()
  await tenant('acme')
  await tenant('other')
  const ours = await key({ tenant_scope: 'tenant', tenant_slug: 'acme' })
  const elsewhere = await key({ name: 'elsewhere', allowed_ips: ['10.0.0.0/8'] })
  const post = (path: string, as: string, headers = {}) =>
    request(path, { token: as, body: { name: 'x' }, headers })
  await post(KEYS, ours, { 'X-Tenant-Slug': 'other' })
  await post(KEYS, elsewhere)
  await post(KEYS, token, { 'Content-Length': '2000000' })
  await post('/api/v1/nowhere', token)
  const entries = await trail()
  expect(entries.map(({ status, code }) => [status, code])).toEqual([
    [404, 'not_found'],
    [413, 'body_too_large'],
    [403, 'address_not_allowed'],
    [403, 'wrong_tenant'],
  ])
  for (const { actor } of entries) expect(actor).toMatch(/^key:/)
})

test('who asks too often fills no disk', async () => {
  const { trail, request, key } = await opened()
  const token = await key({ name: 'eager', rate_limit_rpm: 1 })
  for (let i = 0; i < 3; i += 1) await request(KEYS, { token, body: { name: 'x' } })
  expect(await trail()).toHaveLength(1)
})

test('logins are traced, other requests without a credential are not', async () => {
  const { trail, request, user } = await opened()
  await user('ada', 'auditor')
  const login = (password: string) =>
    request('/auth/login', { body: { username: 'ada', password } })
  await login('wrong')
  await login('correct horse')
  await request(KEYS, { body: { name: 'x' } })
  expect((await trail()).map(({ actor, outcome }) => [actor, outcome])).toEqual([
    ['user:ada', 'success'],
    ['anonymous', 'refused'],
  ])
})

test('the trail is filtered by actor, action, outcome and period, newest first', async () => {
  const { create, trail, tick } = await opened()
  await create('a')
  tick(1_000)
  await create('a')
  tick(1_000)
  await create('b')
  const at = (ms: number) => encodeURIComponent(new Date(startOfTime + ms).toISOString())
  expect(await trail('outcome=refused')).toMatchObject([{ code: 'name_taken' }])
  expect(await trail(`start_date=${at(1_000)}&end_date=${at(2_000)}`)).toHaveLength(1)
  expect(await trail('action=POST')).toHaveLength(3)
  expect(await trail('action=DELETE')).toEqual([])
  expect(await trail('actor=unknown')).toEqual([])
  expect(await trail('page=2&limit=2')).toHaveLength(1)
})

test('a tenant reads the trail of its own credentials only', async () => {
  const { create, request, key, tenant } = await opened()
  await tenant('acme')
  await create('global')
  const token = await key({ tenant_scope: 'tenant', tenant_slug: 'acme' })
  await request(KEYS, { token, body: { name: 'own' } })
  const trail = await request('/api/v1/audit', { token })
  expect(trail.body).toMatchObject({ data: [{ actor: expect.any(String) }], meta: { total: 1 } })
})

test('failed logins from everywhere fill no disk: sixty entries a minute, the rest is counted', async () => {
  const { trail, request, telemetry, tick, user } = await opened()
  await user('ada', 'admin')
  const login = (address: number, password = 'wrong') =>
    request('/auth/login', {
      body: { username: 'ada', password },
      from: `10.0.${address >> 8}.${address & 255}`,
    })
  // Malformed ones cost no password check, and are as refused.
  for (let address = 0; address < 300; address += 1) await login(address, '')
  expect(await trail('limit=200')).toHaveLength(60)
  expect(telemetry.refused.auditEntries).toBe(240)
  expect((await login(400, 'correct horse')).status).toBe(200)
  expect((await trail('limit=1'))[0]?.actor).toBe('user:ada')
  tick(60_000)
  await login(401, '')
  expect((await trail('limit=200')).length).toBe(62)
})

test('what agents did is marked: calls of tools, and of keys that name a scope of MCP', async () => {
  const { key, request, trail, token, create } = await opened()
  const agent = await key({ name: 'night agent', scopes: ['mcp:read', 'mcp:write', 'keys:read'] })
  await create('ci')
  await request('/api/v1/mcp/tools/revoke_api_key', { token, body: { uuid: 'none' } })
  await request('/api/v1/application-keys', { token: agent, body: { name: 'more' } })
  const shown = async (query: string) =>
    (await request(`/api/v1/audit?${query}`, { token }))
      .data<{ action: string; is_agent: boolean }[]>()
      .map(({ action, is_agent }) => [action, is_agent])
  expect(await shown('agents=true')).toEqual([
    ['POST /api/v1/application-keys', true],
    ['tool revoke_api_key', true],
  ])
  expect(await shown('agents=false')).toEqual([['POST /api/v1/application-keys', false]])
  expect(await trail('actor=night%20agent')).toHaveLength(1)
})

const entry = (target: string, outcome: AuditEntry['outcome'] = 'success'): AuditEntry => ({
  at: 0,
  ...auditedActor(undefined),
  address: '192.0.2.1',
  action: 'POST /x',
  target,
  outcome,
  status: 200,
  code: null,
  correlation_id: 'x',
  before_digest: null,
  after_digest: null,
  change_id: null,
  effect: null,
  reason: null,
})

const targets = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `/${index}`)

const stored = async (store: Store): Promise<readonly string[]> =>
  (await all(store, store.db.selectFrom('audit_entry').select('target').orderBy('id'))).map(
    ({ target }) => target,
  )

/** A store whose statements fail while `isAway`. */
function awayStore(store: Store) {
  const state = { isAway: false }
  const around = <T>(work: () => Promise<T>) =>
    state.isAway ? Promise.reject<T>(new DatabaseUnavailable('away')) : work()
  return { state, store: aroundStatements(store, around) }
}

describe.each(eachDatabase)('the audit log on $database', ({ open }) => {
  test('an entry that can never be stored is told, and holds up no other', async () => {
    const store = await open()
    const lost: string[] = []
    const log = new AuditLog(store, ({ target }) => lost.push(target))
    const wrong = 'unheard of' as AuditEntry['outcome']
    await Promise.all([
      log.record(entry('/a')),
      log.record(entry('/wrong', wrong)),
      log.record(entry('/b')),
    ])
    expect(await stored(store)).toEqual(['/a', '/b'])
    expect(lost).toEqual(['/wrong'])
  })

  test('while the database is away entries wait, and those beyond the bound are told', async () => {
    const { state, store } = awayStore(await open())
    const lost: string[] = []
    const log = new AuditLog(store, ({ target }) => lost.push(target))
    state.isAway = true
    for (const target of targets(10_002)) await log.record(entry(target))
    expect(lost).toEqual(['/0', '/1'])
    state.isAway = false
    expect(await log.flush()).toBe(true)
    expect(await stored(store)).toEqual(targets(10_002).slice(2))
  })
})

test.each(eras)(
  'whatever is read or tried by MCP leaves one entry that names the key: %s',
  async (era) => {
    const control = await openControl()
    const token = await control.key({ name: 'watcher', scopes: ['*:read'] })
    const client = await connectClient(control.app, token, era)
    const query = 'SELECT action, code, actor_name, actor_key_prefix FROM audit_entry ORDER BY id'
    const seen: unknown[] = []
    const expectOne = async (work: Promise<unknown>, action: string, code: string | null) => {
      await work.catch(() => undefined)
      const key = { actor_name: 'watcher', actor_key_prefix: token.slice(0, 12) }
      seen.push({ action: `tool ${action}`, code, ...key })
      expect(await readRows(control.store, query)).toEqual(seen)
    }
    await client.listTools()
    await client.listResources()
    await expectOne(
      client.callTool({ name: 'get_telemetry', arguments: {} }),
      'get_telemetry',
      null,
    )
    await expectOne(client.readResource({ uri: 'tollgate://telemetry' }), 'get_telemetry', null)
    const refused = { name: 'revoke_sbc_api_key', arguments: { identifier: 'x' } }
    await expectOne(client.callTool(refused), 'revoke_sbc_api_key', 'insufficient_scope')
    await expectOne(
      client.callTool({ name: 'format_disk', arguments: {} }),
      'format_disk',
      'unknown_tool',
    )
    await client.close()
  },
)

test('an entry keeps the name that its key had then; one of an older version shows the name of now', async () => {
  const control = await openControl()
  const token = await control.key({ name: 'before' })
  const self = await control.request('/api/v1/application-keys/self', { token })
  const { uuid } = self.data<{ uuid: string }>()
  const rename = { token, method: 'PATCH', body: { name: 'after' } }
  await control.request(`/api/v1/application-keys/${uuid}`, rename)
  await runSql(
    control.store,
    `
    INSERT INTO audit_entry (at, actor, address, action, target, outcome, status, correlation_id)
    VALUES (0, 'key:${uuid}', '', 'DELETE /x', '/x', 'success', 200, '')`,
  )
  const { body } = await control.request('/api/v1/audit', { token })
  expect(body).toMatchObject({
    data: [
      { actor: `key:${uuid}`, actor_name: 'before', actor_key_prefix: token.slice(0, 12) },
      { actor: `key:${uuid}`, actor_name: 'after', actor_key_prefix: token.slice(0, 12) },
    ],
  })
})
