/** Media rules of carriers, sets, extensions, tenants and agents, at the door and in the database. */
import { nowhere } from '../../../schema/rules/gateways.ts'
import { afterEach, expect, test } from 'vitest'
import { SeedRefused } from '../../../control/resources/seed.ts'
import { seedFile } from '../../../engine/commands/seed.ts'
import { loadSets } from '../../../engine/dispatcher/set-store.ts'
import { ExtensionDirectory } from '../../../engine/registrar/extension-directory.ts'
import { loadRouting } from '../../../engine/routing/routing-store.ts'
import { openResources, type TestResources } from '../../support/resources.ts'
import { emptyStore } from '../../support/empty-store.ts'
import { runSql } from '../../support/stored.ts'

let control: TestResources
afterEach(() => control.close())

const bodies = {
  '/tenants': { slug: 'other' },
  '/routing/carriers': { name: 'c', gateways: [{ host: '192.0.2.1' }] },
  '/dispatcher': { endpoint_name: 'pbx', algorithm: 8, nodes: [{ host: '192.0.2.9' }] },
  '/telephony/ai-agents': { name: 'bot', extension: '700', sip_uri: 'sip:bot@192.0.2.8' },
  '/pbx/extensions': {
    extension: '101',
    password: 'correct horse',
    display_name: 'Ann',
    tenant: 'acme',
  },
} as const
const paths = Object.keys(bodies) as (keyof typeof bodies)[]

async function open(hasMediaRelay: boolean): Promise<void> {
  control = await openResources({ hasMediaRelay })
  await control.tenant('acme', ['acme.example'])
}

const create = (path: keyof typeof bodies, fields: object) =>
  control.call('POST', `/api/v1${path}`, { ...bodies[path], ...fields })

const idOf = (answer: { readonly body: unknown }): number => {
  const body = answer.body as { id?: number; data?: { id: number } }
  return body.id ?? body.data?.id ?? 0
}
/** As the API shows the resource. */
async function shown(path: string, id: number): Promise<Record<string, unknown>> {
  const suffix = path === '/pbx/extensions' ? '/details' : ''
  const { body } = await control.call('GET', `/api/v1${path}/${id}${suffix}`)
  return (body as { data: Record<string, unknown> }).data
}

const rules = { media: 'prefer', media_profile: 'srtp', codecs: ['OPUS', 'pcma'], dtmf: 'info' }

test.each(paths)('%s: rules are stored, shown, changed and cleared', async (path) => {
  await open(true)
  const created = await create(path, rules)
  expect(created.status).toBe(201)
  const id = idOf(created)
  expect(await shown(path, id)).toMatchObject({ ...rules, codecs: ['opus', 'PCMA'] })
  const changed = await control.call('PATCH', `/api/v1${path}/${id}`, {
    codecs: ['G722'],
    dtmf: 'rfc4733',
  })
  expect(changed.status).toBe(200)
  expect(await shown(path, id)).toMatchObject({ ...rules, codecs: ['G722'], dtmf: 'rfc4733' })
  const none = { media: null, media_profile: null, codecs: null, dtmf: null }
  await control.call('PATCH', `/api/v1${path}/${id}`, none)
  const media = path === '/routing/carriers' ? 'bypass' : null
  expect(await shown(path, id)).toMatchObject({
    media,
    media_profile: 'auto',
    codecs: null,
    dtmf: 'auto',
  })
})

test('the call path finds them in memory', async () => {
  await open(true)
  for (const path of paths) await create(path, rules)
  const expected = { policy: 'prefer', profile: 'srtp', codecs: ['opus', 'PCMA'], dtmf: 'info' }
  const { carriers, agents } = await loadRouting(control.store)
  expect([carriers[0]?.media, agents[0]?.media]).toEqual([expected, expected])
  expect((await loadSets(control.store))[0]?.media).toEqual(expected)
  const extensions = new ExtensionDirectory(control.store)
  await extensions.load()
  expect(extensions.find('acme.example', '101')?.media).toEqual(expected)
})

test.each<[string, object, string]>([
  ['an unknown codec', { codecs: ['mp3'] }, 'must be a codec: PCMA, PCMU'],
  ['no codec', { codecs: [] }, 'Too small'],
  ['a codec twice', { codecs: ['pcma', 'PCMA'] }, 'contains a duplicate codec'],
  ['too many codecs', { codecs: Array.from({ length: 17 }, () => 'PCMA') }, 'Too big'],
  ['an unknown policy', { media: 'always' }, 'Invalid option'],
  ['an unknown profile', { media_profile: 'zrtp' }, 'Invalid option'],
  ['an unknown kind of digits', { dtmf: 'inband' }, 'Invalid option'],
])('%s is refused', async (_, fields, message) => {
  await open(true)
  for (const path of paths) {
    const { status, body } = await create(path, fields)
    expect(status).toBe(400)
    expect(JSON.stringify(body)).toContain(message)
  }
})

test.each(paths)('%s: what needs a relay is refused where there is none', async (path) => {
  await open(false)
  for (const [field, value] of Object.entries({ ...rules, codecs: ['PCMA'] })) {
    const { status, body } = await create(path, { [field]: value })
    expect(status).toBe(400)
    expect(body).toMatchObject({ code: 'not_supported', details: [{ path: field }] })
    expect(JSON.stringify(body)).toContain('needs a media relay: set RTPENGINE')
  }
  expect(
    (await create(path, { media: 'bypass', media_profile: 'auto', dtmf: 'auto' })).status,
  ).toBe(201)
})

test('a rule that was stored with a relay stands in no way without one', async () => {
  await open(false)
  const id = idOf(await create('/routing/carriers', {}))
  await runSql(control.store, "UPDATE carrier SET media = 'anchor'")
  const path = `/api/v1/routing/carriers/${id}`
  expect((await control.call('PATCH', path, { max_calls: 5 })).status).toBe(200)
  expect((await control.call('PATCH', path, { media: 'prefer' })).status).toBe(400)
  expect((await control.call('PATCH', path, { media: 'bypass' })).status).toBe(200)
})

test('a tenant sets the rules of what is its own, and of nothing else', async () => {
  await open(true)
  const own = await control.callAs('acme', 'POST', '/api/v1/telephony/ai-agents', {
    ...bodies['/telephony/ai-agents'],
    ...rules,
  })
  expect(own.status).toBe(201)
  const common = idOf(await create('/routing/carriers', {}))
  const patch = (path: string) => control.callAs('acme', 'PATCH', path, { media: 'anchor' })
  expect((await patch(`/api/v1/routing/carriers/${common}`)).status).toBe(404)
  expect((await patch('/api/v1/tenants/1')).status).toBe(403)
})

test('a seed file has the same fields', async () => {
  await open(true)
  const file = {
    tenants: [{ slug: 'a', domains: ['a.example'], media: 'anchor' }],
    carriers: [{ ...bodies['/routing/carriers'], ...rules, strip_headers: ['Diversion'] }],
    dispatcher: [{ ...bodies['/dispatcher'], ...rules }],
    extensions: [{ ...bodies['/pbx/extensions'], ...rules, tenant: 'a' }],
    ai_agents: [{ ...bodies['/telephony/ai-agents'], preset: 'ai-openai' }],
  }
  const store = emptyStore()
  await expect(seedFile(store, JSON.stringify(file), 0)).rejects.toThrow(SeedRefused)
  const around = { hasMediaRelay: true, ownPlaces: nowhere }
  await seedFile(store, JSON.stringify(file), 0, around)
  const again = await seedFile(store, JSON.stringify(file), 1, around)
  expect(Object.values(again).map(({ created, updated }) => created + updated)).toEqual(
    Object.values(again).map(() => 0),
  )
})
