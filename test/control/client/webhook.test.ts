/** What the API signs, the client believes, and nothing else. */
import { expect, test } from 'vitest'
import { newSecret, signatures } from '../../../control/webhooks/endpoint-store.ts'
import { verifyWebhook } from '../../../control/client/webhook.ts'

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
