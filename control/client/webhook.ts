/** Judges whether a webhook was sent by Tollgate: Standard Webhooks, by `crypto.subtle` alone. */

export interface WebhookEvent {
  /** Such as `call.ended`. */
  readonly type: string
  readonly timestamp: string
  readonly data: Readonly<Record<string, unknown>>
}

export interface ReceivedWebhook {
  /** The text as it arrived: JSON that was parsed and written again is another text. */
  readonly body: string | Uint8Array
  /** The headers of the request, as `fetch` or Node.js has them. */
  readonly headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>
  /** The secret of the endpoint, `whsec_…`. */
  readonly secret: string
  /** How old it may be, and how far in the future; 300 if absent. */
  readonly toleranceSeconds?: number | undefined
  /** Milliseconds UTC; the clock if absent. */
  readonly now?: number | undefined
}

/** A webhook that must not be believed. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError'
  readonly code: 'header_missing' | 'too_old' | 'too_new' | 'wrong_signature'

  constructor(code: WebhookError['code'], message: string) {
    super(message)
    this.code = code
  }
}

const defaultToleranceSeconds = 300
const shortestSecretBytes = 24

/**
 * Returns the event of a webhook that is signed with `secret`. @throws {WebhookError} for any
 * other, {TypeError} for a secret that is none
 */
export async function verifyWebhook(received: ReceivedWebhook): Promise<WebhookEvent> {
  const { headers, secret, toleranceSeconds = defaultToleranceSeconds } = received
  const { now = Date.now() } = received
  const id = headerOf(headers, 'webhook-id')
  const sentAt = headerOf(headers, 'webhook-timestamp')
  const signatures = headerOf(headers, 'webhook-signature')
  const ageSeconds = /^\d{1,12}$/.test(sentAt) ? Math.floor(now / 1_000) - Number(sentAt) : Infinity
  if (ageSeconds > toleranceSeconds)
    throw new WebhookError('too_old', 'The webhook was not sent just now')
  if (ageSeconds < -toleranceSeconds)
    throw new WebhookError('too_new', 'The webhook was sent in the future')

  const encoder = new TextEncoder()
  const body = typeof received.body === 'string' ? encoder.encode(received.body) : received.body
  const signed = new Uint8Array([...encoder.encode(`${id}.${sentAt}.`), ...body])
  const secretBytes = fromBase64(secret.replace(/^whsec_/, ''))
  if (secretBytes.length < shortestSecretBytes)
    throw new TypeError('This is not the secret of a webhook endpoint')
  const key = await crypto.subtle.importKey(
    'raw',
    secretBytes,
    { name: 'HMAC', hash: 'SHA-256' },
    false,
    ['verify'],
  )
  // Several while the secret is replaced. `verify` takes the same time wherever a signature
  // differs.
  for (const signature of signatures.split(' ').filter((each) => each.startsWith('v1,')))
    if (await crypto.subtle.verify('HMAC', key, fromBase64(signature.slice(3)), signed))
      return JSON.parse(new TextDecoder().decode(body)) as WebhookEvent
  throw new WebhookError('wrong_signature', 'The webhook is not signed with this secret')
}

function headerOf(headers: ReceivedWebhook['headers'], name: string): string {
  const value = headers instanceof Headers ? headers.get(name) : headers[name]
  if (typeof value === 'string') return value
  throw new WebhookError('header_missing', `The header ${name} is missing`)
}

/** Empty, which is the signature of nothing, for what is not base64. */
function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
  } catch {
    return new Uint8Array()
  }
}
