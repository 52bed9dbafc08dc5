/** The client library against the API itself, and against one that fails. */
import { expect, test } from 'vitest'
import { Tollgate, TollgateError } from '../../../control/client/index.ts'
import { openControl } from '../../support/control.ts'
import { newSecret, signatures } from '../../../schema/secrets/webhook-signature.ts'
import { verifyWebhook } from '../../../control/client/webhook.ts'

const url = 'http://gate.example/behind/a/proxy/'

async function openClient() {
  const control = await openControl()
  const asked: string[] = []
  const tollgate = new Tollgate({
    url,
    key: await control.key(),
    fetch: (address, init) => {
      const path = address.replace('http://gate.example/behind/a/proxy', '')
      asked.push(`${init.method} ${path}`)
      return control.app.request(path, init)
    },
  })
  return { tollgate, control, asked }
}

test('customers are created, topped up, changed, listed page by page, and deleted', async () => {
  const { tollgate, asked } = await openClient()
  const { customers } = tollgate
  await tollgate.ratePlans.create({ name: 'retail', currency: 'USD' })
  const acme = await customers.create(
    { name: 'acme', rate_plan: 'retail' },
    { reason: 'signed up' },
  )
  expect(acme).toMatchObject({ name: 'acme', rate_plan: 'retail', balance: '0.00' })
  const moved = await customers.topUp(acme.id, { amount: '10.00', reason: 'first payment' })
  expect(moved).toMatchObject({ kind: 'topup', balance: '10.00' })
  expect(await customers.update(acme.id, { max_cps: 7 })).toMatchObject({ id: acme.id, max_cps: 7 })
  expect((await customers.wallet(acme.id)).balance).toBe('10.00')
  for (const name of ['b', 'c', 'd', 'e']) await customers.create({ name })
  asked.length = 0
  const names: string[] = []
  for await (const { name } of customers.list({ limit: 2 })) names.push(name)
  expect(names.toSorted()).toEqual(['acme', 'b', 'c', 'd', 'e'])
  expect(asked).toEqual([1, 2, 3].map((page) => `GET /api/v1/customers?limit=2&page=${page}`))
  expect(await customers.page({ search: 'acme' })).toMatchObject({
    items: [{ name: 'acme' }],
    page: 1,
    limit: 50,
    total: 1,
    truncated: false,
  })
  const entries = []
  for await (const { kind } of customers.ledger(acme.id)) entries.push(kind)
  expect(entries).toEqual(['topup'])
  await customers.delete((await customers.create({ name: 'gone' })).id)
})

test('a refusal says what is wrong with which field, and names the request', async () => {
  const { tollgate } = await openClient()
  const error = await tollgate.customers.create({ name: '' }).catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(TollgateError)
  expect(error).toMatchObject({
    status: 400,
    code: 'validation_failed',
    details: [{ path: 'name' }],
    message: expect.stringMatching(/^The body is not valid\. name: /) as string,
    correlationId: expect.any(String) as string,
  })
})

/** Answers in order; a text is JSON of the API, `undefined` a connection that breaks. */
function scripted(...answers: readonly (readonly [number, Record<string, string>?] | undefined)[]) {
  const keys: (string | null)[] = []
  const tollgate = new Tollgate({
    url: 'http://x',
    key: 'k',
    timeoutMs: 1_000,
    fetch: (_address, init) => {
      keys.push(new Headers(init.headers).get('idempotency-key'))
      const answer = answers[keys.length - 1]
      if (answer === undefined) return Promise.reject(new TypeError('fetch failed'))
      const [status, headers = {}] = answer
      const body =
        status === 200
          ? { success: true, data: { done: true } }
          : { success: false, error: 'No', code: 'refused', statusCode: status }
      return Promise.resolve(Response.json(body, { status, headers }))
    },
  })
  return { tollgate, keys }
}

const soon = { 'Retry-After': '0' }

test('a read is tried again when there was no answer or the API was away, twice at most', async () => {
  const passing = scripted(undefined, [503], [200])
  expect(await passing.tollgate.customers.get(1)).toEqual({ done: true })
  const failing = scripted(undefined, undefined, undefined, [200])
  await expect(failing.tollgate.customers.get(1)).rejects.toMatchObject({
    status: 0,
    code: 'unreachable',
  })
  expect([passing.keys.length, failing.keys.length]).toEqual([3, 3])
})

test('money is moved once: a repetition has the same key, and what has none is not repeated', async () => {
  const repeated = scripted(undefined, [200])
  await repeated.tollgate.customers.topUp(1, { amount: '1.00', reason: 'gift' })
  expect(repeated.keys).toEqual([repeated.keys[0], repeated.keys[0]])
  expect(repeated.keys[0]).toMatch(/^[0-9a-f]{32}$/)
  const own = scripted([200])
  const options = { idempotencyKey: 'mine' }
  await own.tollgate.customers.topUp(1, { amount: '1.00', reason: 'gift' }, options)
  expect(own.keys).toEqual(['mine'])
  const once = scripted(undefined, [200])
  const given = { from: '1', to: '2' }
  const asked = once.tollgate.request('simulateCall', { body: given })
  await expect(asked).rejects.toMatchObject({ status: 0 })
  expect(once.keys).toEqual([null])
})

test('what is over the rate limit is sent again after Retry-After, unless that is long', async () => {
  const short = scripted([429, soon], [200])
  await short.tollgate.customers.create({ name: 'a' })
  expect(short.keys).toHaveLength(2)
  const long = scripted([429, { 'Retry-After': '60' }], [200])
  await expect(long.tollgate.customers.create({ name: 'a' })).rejects.toMatchObject({
    status: 429,
    retryAfterSeconds: 60,
  })
  expect(long.keys).toHaveLength(1)
})

test('an attempt ends in time, a signal ends the request at once, and what is not of Tollgate says so', async () => {
  const silent = (_address: string, init: RequestInit): Promise<Response> =>
    new Promise((_resolve, reject) => {
      init.signal?.addEventListener('abort', () => reject(new Error('aborted')))
    })
  const options = { url: 'http://x', key: 'k', retries: 0 }
  const slow = new Tollgate({ ...options, timeoutMs: 20, fetch: silent })
  await expect(slow.calls.live()).rejects.toMatchObject({ status: 0, code: 'timeout' })
  const stop = new AbortController()
  const stopped = slow.calls.live({}, { signal: stop.signal, timeoutMs: 60_000 })
  stop.abort(new Error('enough'))
  await expect(stopped).rejects.toThrow('enough')
  const page = () => Promise.resolve(new Response('<html>', { status: 502 }))
  const proxied = new Tollgate({ ...options, fetch: page })
  await expect(proxied.calls.live()).rejects.toMatchObject({
    status: 502,
    code: 'unexpected_answer',
  })
})

const id = 'msg_1'

const seconds = 1_767_225_600

const now = seconds * 1_000

const event = { type: 'call.ended', timestamp: '2026-01-01T00:00:00.000Z', data: { cost: '0.01' } }

const body = JSON.stringify(event)

const [secret, other] = [1, 2].map((seed) => newSecret((size) => Buffer.alloc(size, seed)))

const headersOf = (signature: string) => ({
  'webhook-id': id,
  'webhook-timestamp': String(seconds),
  'webhook-signature': signature,
})

const headers = headersOf(signatures([secret ?? ''], id, seconds, body))

const received = { body, headers, secret: secret ?? '', now }

test('the event of a webhook, as text or bytes, with the headers of fetch or of Node.js', async () => {
  expect(await verifyWebhook(received)).toEqual(event)
  expect(await verifyWebhook({ ...received, body: new TextEncoder().encode(body) })).toEqual(event)
  expect(await verifyWebhook({ ...received, headers: new Headers(headers) })).toEqual(event)
})

test('while the secret is replaced either of them will do', async () => {
  const both = headersOf(signatures([other ?? '', secret ?? ''], id, seconds, body))
  for (const each of [secret, other])
    expect(await verifyWebhook({ ...received, headers: both, secret: each ?? '' })).toEqual(event)
})

test.each([
  ['another body', { body: body.replace('0.01', '9.99') }, 'wrong_signature'],
  ['another secret', { secret: other }, 'wrong_signature'],
  ['another id', { headers: { ...headers, 'webhook-id': 'msg_2' } }, 'wrong_signature'],
  ['no signature of this kind', { headers: headersOf('v1a,AAAA v2,AAAA') }, 'wrong_signature'],
  ['a signature that is no base64', { headers: headersOf('v1,%%%') }, 'wrong_signature'],
  ['no header', { headers: {} }, 'header_missing'],
  ['a time that is none', { headers: { ...headers, 'webhook-timestamp': 'now' } }, 'too_old'],
  ['more than five minutes ago', { now: now + 301_000 }, 'too_old'],
  ['more than five minutes ahead', { now: now - 301_000 }, 'too_new'],
  ['more than the tolerance ago', { now: now + 11_000, toleranceSeconds: 10 }, 'too_old'],
])('%s: a WebhookError', async (_what, change, code) => {
  const given = { ...received, ...change }
  await expect(verifyWebhook({ ...given, secret: given.secret ?? '' })).rejects.toMatchObject({
    name: 'WebhookError',
    code,
  })
})

test.each(['', 'whsec_', 'whsec_%%%', 'whsec_AAAA'])(
  'with the secret "%s" nothing is believed',
  async (none) => {
    await expect(verifyWebhook({ ...received, secret: none })).rejects.toThrow(
      new TypeError('This is not the secret of a webhook endpoint'),
    )
  },
)

test('a change of the version that was seen is made, and one of an earlier version shows the present', async () => {
  const { tollgate } = await openClient()
  const { id } = await tollgate.ratePlans.create({ name: 'retail', currency: 'EUR' })
  let ifMatch: string | undefined
  const onAnswer = ({ headers }: { readonly headers: Headers }) =>
    void (ifMatch = headers.get('ETag') ?? undefined)
  await tollgate.ratePlans.get(id, { onAnswer })
  const changed = await tollgate.ratePlans.update(id, { decimals: 3 }, { ifMatch })
  expect(changed.decimals).toBe(3)
  const late = { decimals: 5 }
  const error = await tollgate.ratePlans
    .update(id, late, { ifMatch })
    .catch((reason: unknown) => reason)
  expect(error).toBeInstanceOf(TollgateError)
  expect(error).toMatchObject({
    status: 412,
    code: 'precondition_failed',
    current: { id, decimals: 3 },
  })
  await tollgate.ratePlans.update(id, late, { ifMatch: (error as TollgateError).etag })
  expect((await tollgate.ratePlans.get(id)).decimals).toBe(5)
})
