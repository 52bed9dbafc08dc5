/**
 * The stored form of a SIP password: the secrets A1 of HTTP digest, one per hash (RFC 8760, RFC 7616
 * §3.4.2).
 */
import { createHash } from 'node:crypto'

export interface DigestSecrets {
  readonly md5: string
  readonly sha256: string
}

/** H(user:realm:password) in lower-case hexadecimal. The realm is the domain of the extension. */
export function digestSecrets(user: string, realm: string, password: string): DigestSecrets {
  const a1 = `${user}:${realm}:${password}`
  const hashed = (algorithm: string) => createHash(algorithm).update(a1, 'utf8').digest('hex')
  return { md5: hashed('md5'), sha256: hashed('sha256') }
}
