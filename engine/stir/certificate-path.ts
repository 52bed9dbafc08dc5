/** Leads a certificate to an authority that is trusted (RFC 5280 §6, as far as it is used here). */
import type { KeyObject, X509Certificate } from 'node:crypto'
import { isP256, MAX_CHAIN, subjectOf, validityOf } from '../../schema/stir/pem.ts'
import type { CertificateFacts } from './certificate-facts.ts'

export type FactsOf = (certificate: X509Certificate) => CertificateFacts | string

/** An authority, with its facts. */
export interface Authority {
  readonly certificate: X509Certificate
  readonly facts: CertificateFacts
}

export interface PathStep extends Authority {
  /** The certificate that has signed it. */
  readonly issuer: X509Certificate
}

/** From the signer up to, and without, the authority. A text says why there is no such path. */
export type CertificatePath =
  { readonly steps: readonly PathStep[]; readonly from: number; readonly until: number } | string

/** @param now milliseconds UTC. */
export function pathOf(
  chain: readonly X509Certificate[],
  authorities: readonly Authority[],
  factsOf: FactsOf,
  now: number,
): CertificatePath {
  const [signer] = chain
  if (signer === undefined) return 'there is no certificate'
  const unfit = unfitSigner(signer, factsOf)
  if (unfit !== undefined) return unfit
  const steps: PathStep[] = []
  let current = signer
  while (steps.length < MAX_CHAIN) {
    const problem = problemAt(current, steps.length, factsOf, now)
    if (typeof problem === 'string') return problem
    const trusted = authorities.find(({ certificate }) => isIssuedBy(current, certificate))
    const issuer = trusted?.certificate ?? chain.slice(1).find((each) => isIssuedBy(current, each))
    if (issuer === undefined) return `${subjectOf(current)} leads to no authority that is trusted`
    steps.push({ certificate: current, facts: problem, issuer })
    if (trusted !== undefined) {
      const above = problemAt(issuer, steps.length, factsOf, now)
      return typeof above === 'string' ? above : { steps, ...validity([...steps, trusted]) }
    }
    current = issuer
  }
  return 'the chain is too long'
}

/** The certificate that signs calls itself. */
function unfitSigner(signer: X509Certificate, factsOf: FactsOf): string | undefined {
  const facts = factsOf(signer)
  if (typeof facts === 'string') return facts
  if (!isP256(signer.publicKey)) return 'its key is not of the curve P-256'
  if (facts.isAuthority) return 'it is the certificate of an authority'
  return facts.maySignData ? undefined : 'its key may not sign data'
}

/** `below`: certificates below this one. A text says why it cannot stand there. */
function problemAt(
  certificate: X509Certificate,
  below: number,
  factsOf: FactsOf,
  now: number,
): CertificateFacts | string {
  const name = subjectOf(certificate)
  const { from, until } = validityOf(certificate)
  if (!(now >= from)) return `${name} is not valid yet`
  if (!(now <= until)) return `${name} has expired`
  if (!isBoundedKey(certificate.publicKey)) return `${name} has a key of an unusual kind`
  const facts = factsOf(certificate)
  if (typeof facts === 'string' || below === 0) return facts
  if (!facts.isAuthority || !facts.maySignCertificates) return `${name} is no authority`
  // Authorities below it: all certificates below but that of the signer.
  return (facts.pathLength ?? MAX_CHAIN) < below - 1 ? `${name} allows no such long chain` : facts
}

/** Keys with which a check takes well below a millisecond. */
function isBoundedKey({ asymmetricKeyType: type, asymmetricKeyDetails: details }: KeyObject) {
  return type === 'ec' || (type === 'rsa' && (details?.modulusLength ?? 0) <= 4_096)
}

function isIssuedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
  try {
    return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey)
  } catch {
    return false
  }
}

function validity(all: readonly Pick<Authority, 'certificate'>[]) {
  const each = all.map(({ certificate }) => validityOf(certificate))
  return {
    from: Math.max(...each.map(({ from }) => from)),
    until: Math.min(...each.map(({ until }) => until)),
  }
}
