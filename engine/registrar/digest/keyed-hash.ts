import { hash } from 'node:crypto'

/**
 * A SHA-256 that only the holder of `secret` (hexadecimal) can compute, in hexadecimal. Nested like
 * HMAC (RFC 2104), so that nothing can be appended to `text`; a tenth of the time of `createHmac`.
 */
export const keyedHash = (secret: string, text: string): string =>
  hash('sha256', secret + hash('sha256', secret + text, 'hex'), 'hex')
