/** Whether a private key and a certificate may sign calls together. Pure. */
import { createPublicKey, type KeyObject, type X509Certificate } from 'node:crypto'
import { isP256 } from './pem.ts'

/** A problem of the certificate; undefined: there is none. */
export function keyProblem(key: KeyObject, certificate: X509Certificate): string | undefined {
  if (!isP256(certificate.publicKey)) return 'has a key that is not of the curve P-256'
  if (!createPublicKey(key).equals(certificate.publicKey)) return 'is of another key'
  return certificate.ca ? 'is the certificate of an authority' : undefined
}
