/** Certificates and keys as text: what an operator uploads, and what a URL answers. */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto'

/** The certificate, and those between it and an authority. */
export const MAX_CHAIN = 5
/** A chain of five has about 6 kB. */
export const MAX_CHAIN_LENGTH = 32_768

/** Files of certificates often have the key as well, which nobody may store or show as one. */
export const hasPrivateKey = (pem: string): boolean => /PRIVATE KEY-----/i.test(pem)

/** The first is that of the signer. A text instead says what is wrong. */
export function readCertificates(
  text: string,
  most = MAX_CHAIN,
): readonly X509Certificate[] | string {
  const pems = pemBlocks(text, 'CERTIFICATE', most + 1)
  if (pems.length === 0) return 'has no certificate in PEM'
  if (pems.length > most) return `has more than ${most} certificates`
  try {
    return pems.map((pem) => new X509Certificate(withLines(pem)))
  } catch {
    return 'has a certificate that cannot be read'
  }
}

export const pemOf = (certificates: readonly X509Certificate[]): string =>
  certificates.map((each) => each.toString()).join('')

/** ES256 takes no other curve. A text instead says what is wrong. */
export function readPrivateKey(pem: string): KeyObject | string {
  try {
    const key = createPrivateKey({ key: withLines(pem), format: 'pem' })
    return isP256(key) ? key : 'is not a key of the curve P-256'
  } catch {
    return 'is not an unencrypted private key in PEM'
  }
}

/**
 * The first blocks of a kind, in one walk: strangers choose what a URL answers, and an expression
 * that looks for the end behind every begin takes the square of its length.
 */
export function pemBlocks(text: string, kind: string, most: number): readonly string[] {
  const [begin, end] = [`-----BEGIN ${kind}-----`, `-----END ${kind}-----`]
  const found: string[] = []
  let at = text.indexOf(begin)
  while (at !== -1 && found.length < most) {
    const last = text.indexOf(end, at + begin.length)
    if (last === -1) break
    found.push(text.slice(at, last + end.length))
    at = text.indexOf(begin, last + end.length)
  }
  return found
}

/** A form of one line takes the line breaks out. */
const withLines = (pem: string): string =>
  pem
    .split(/(-----(?:BEGIN|END) [A-Z0-9 ]{1,40}-----)/)
    .map((part) => part.trim())
    .filter((part) => part !== '')
    .join('\n')

export const isP256 = (key: KeyObject): boolean =>
  key.asymmetricKeyType === 'ec' && key.asymmetricKeyDetails?.namedCurve === 'prime256v1'

/** The name of a certificate for people: its common name, else all of its subject. */
export const subjectOf = ({ subject }: Pick<X509Certificate, 'subject'>): string =>
  (/^CN=(?<name>.+)$/m.exec(subject ?? '')?.groups?.['name'] ?? subject ?? '')
    .replaceAll(/\s+/g, ' ')
    .slice(0, MAX_SUBJECT)

const MAX_SUBJECT = 200

/** Milliseconds UTC. */
export const validityOf = ({ validFrom, validTo }: X509Certificate) => ({
  from: Date.parse(validFrom),
  until: Date.parse(validTo),
})
