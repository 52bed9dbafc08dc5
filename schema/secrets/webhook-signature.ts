/** Secrets and signatures of webhooks. */
import { createHmac } from 'node:crypto'

const prefix = 'whsec_'
const secretBytes = 32

export const newSecret = (randomBytes: (size: number) => Buffer): string =>
  prefix + randomBytes(secretBytes).toString('base64')

/** Whether a text is a secret of Standard Webhooks: `whsec_` and 24 to 64 bytes in base64. */
export const isSecret = (text: string): boolean => secretForm.test(text)

const secretForm =
  /^whsec_(?=[^=]{32,86}=*$)(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

/**
 * Signatures of the Standard Webhooks specification (standardwebhooks.com): HMAC-SHA256 over
 * `<id>.<unix seconds>.<body>` under the secret's bytes, in base64 behind `v1,`.
 * Returns the value of `webhook-signature`: one signature per valid secret, newest first.
 */
export function signatures(
  secrets: readonly string[],
  id: string,
  seconds: number,
  body: string,
): string {
  return secrets.map((secret) => `v1,${sign(secret, `${id}.${seconds}.${body}`)}`).join(' ')
}

const sign = (secret: string, text: string): string =>
  createHmac('sha256', Buffer.from(secret.slice(prefix.length), 'base64'))
    .update(text)
    .digest('base64')
