/**
 * Media rules of carriers, sets, extensions, tenants and agents, at the door and in the database.
 */
import { afterEach, expect, test, beforeEach } from 'vitest'
import { openResources, type TestResources } from '../../support/resources.ts'

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

beforeEach(async () => {
  control = await openResources({ hasMediaRelay: true })
})

afterEach(() => control.close())

async function created(path: string, body: object): Promise<Record<string, unknown>> {
  const answer = await control.call('POST', `/api/v1${path}`, body)
  expect(answer.status).toBe(201)
  return (answer.body as { data: Record<string, unknown> }).data
}

test.each([
  ['ai-openai', ['opus', 'PCMU', 'PCMA']],
  ['ai-livekit', ['G722', 'PCMU', 'PCMA']],
  ['ai-generic', ['opus', 'G722', 'PCMU', 'PCMA']],
])('%s fills in what the service wants', async (preset, codecs) => {
  const carrier = await created('/routing/carriers', {
    name: 'ai',
    preset,
    gateways: [{ host: 'sip.example' }],
  })
  const common = { media_profile: 'srtp', dtmf: 'rfc4733', codecs }
  expect(carrier).toMatchObject({ ...common, gateways: [{ transport: 'tls' }] })
  expect(carrier['strip_headers']).toContain('P-Charging-Vector')
  expect(carrier['preset']).toBeUndefined()
  const agent = await created('/telephony/ai-agents', {
    name: 'bot',
    preset,
    extension: '700',
    sip_uri: 'sip:proj_1@agents.example',
  })
  expect(agent).toMatchObject({ ...common, sip_uri: 'sip:proj_1@agents.example;transport=tls' })
})

test('what the body says itself counts, and all of it can be changed', async () => {
  const { id, ...agent } = await created('/telephony/ai-agents', {
    name: 'bot',
    preset: 'ai-openai',
    extension: '700',
    sip_uri: 'sip:bot@192.0.2.8;transport=tcp',
    codecs: ['opus'],
    strip_headers: ['Subject'],
  })
  expect(agent).toMatchObject({
    sip_uri: 'sip:bot@192.0.2.8;transport=tcp',
    codecs: ['opus'],
    strip_headers: ['Subject'],
    media_profile: 'srtp',
  })
  const patch = { media_profile: 'auto', codecs: null, strip_headers: [] }
  const path = `/api/v1/telephony/ai-agents/${String(id)}`
  expect((await control.call('PATCH', path, patch)).body).toMatchObject({ data: patch })
  expect((await control.call('PATCH', path, { preset: 'ai-generic' })).status).toBe(400)
})
