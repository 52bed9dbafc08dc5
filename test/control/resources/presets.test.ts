import { readFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { openResources, type TestResources } from '../../support/resources.ts'

let control: TestResources
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

test.each([
  ['From', 'names a header that every call needs'],
  ['content-type', 'names a header that every call needs'],
  ['P Asserted', 'must be the name of a header'],
  ['', 'must be the name of a header'],
])('the header %s is not stripped', async (header, message) => {
  const { status, body } = await control.call('POST', '/api/v1/routing/carriers', {
    name: 'c',
    gateways: [{ host: '192.0.2.1' }],
    strip_headers: [header],
  })
  expect(status).toBe(400)
  expect(JSON.stringify(body)).toContain(message)
})

test('the examples of the guide work as they stand', async () => {
  const guide = readFileSync('GUIDE.md', 'utf8')
  const chapter = guide.slice(
    guide.indexOf('### AI voice services'),
    guide.indexOf('\n### Recording'),
  )
  const examples = [...chapter.matchAll(/^post (\S+) '(\{[^']*\})'/gm)]
  expect(examples.map(([, path]) => path)).toEqual(['/telephony/ai-agents', '/routing/carriers'])
  for (const [, path = '', body = ''] of examples) {
    const made = await created(path, JSON.parse(body) as object)
    expect(made).toMatchObject({ media_profile: 'srtp', dtmf: 'rfc4733' })
    expect(JSON.stringify(made)).toMatch(/transport=tls|"transport":"tls"/)
  }
})
