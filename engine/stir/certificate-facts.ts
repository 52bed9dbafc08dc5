/** The parts of a certificate that Node does not show: its extensions (RFC 5280 §4.2, RFC 8226). */
import 'reflect-metadata'
import type { X509Certificate as NodeCertificate } from 'node:crypto'
import {
  BasicConstraintsExtension,
  CRLDistributionPointsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  X509Certificate,
} from '@peculiar/x509'
import { readTnAuthList, TN_AUTH_LIST, type TnAuthList } from '../../schema/stir/tn-auth-list.ts'

export interface CertificateFacts {
  readonly isAuthority: boolean
  /** Authorities that may stand below it; undefined: any number. */
  readonly pathLength: number | undefined
  readonly maySignCertificates: boolean
  readonly maySignData: boolean
  readonly tnAuthList: TnAuthList | undefined
  /** URLs of its revocation list, in order. */
  readonly listUrls: readonly string[]
  /** DER of its issuer's name. */
  readonly issuer: Buffer
  /** DER of its own name. */
  readonly subject: Buffer
}

/** A text instead says why it cannot be used. */
export function factsOf(certificate: NodeCertificate): CertificateFacts | string {
  try {
    return readFacts(new X509Certificate(certificate.raw))
  } catch {
    return 'its extensions cannot be read'
  }
}

function readFacts(certificate: X509Certificate): CertificateFacts | string {
  const strange = certificate.extensions.find(
    ({ critical, type }) => critical && !understood.has(type),
  )
  if (strange !== undefined) return `it has the critical extension ${strange.type}`
  const constraints = certificate.getExtension(BasicConstraintsExtension)
  const usages = certificate.getExtension(KeyUsagesExtension)?.usages
  const may = (flag: KeyUsageFlags) => usages === undefined || (usages & flag) !== 0
  const listed = certificate.getExtension(TN_AUTH_LIST)
  const tnAuthList = listed && readTnAuthList(Buffer.from(listed.value))
  if (listed !== null && tnAuthList === undefined) return 'its TNAuthList is malformed'
  return {
    isAuthority: constraints?.ca ?? false,
    pathLength: constraints?.pathLength,
    maySignCertificates: may(KeyUsageFlags.keyCertSign),
    maySignData: may(KeyUsageFlags.digitalSignature),
    tnAuthList: tnAuthList ?? undefined,
    listUrls: listUrlsOf(certificate),
    issuer: Buffer.from(certificate.issuerName.toArrayBuffer()),
    subject: Buffer.from(certificate.subjectName.toArrayBuffer()),
  }
}

/** Basic constraints, key usage, extended key usage, policies, names, identifiers, TNAuthList. */
const understood: ReadonlySet<string> = new Set([
  ...['2.5.29.19', '2.5.29.15', '2.5.29.37', '2.5.29.32', '2.5.29.17', '2.5.29.14', '2.5.29.35'],
  ...['2.5.29.31', '1.3.6.1.5.5.7.1.1', TN_AUTH_LIST],
])

function listUrlsOf(certificate: X509Certificate): readonly string[] {
  const points = certificate.getExtension(CRLDistributionPointsExtension)?.distributionPoints ?? []
  return points.flatMap(({ distributionPoint }) =>
    (distributionPoint?.fullName ?? []).flatMap(({ uniformResourceIdentifier: url }) =>
      url === undefined ? [] : [url],
    ),
  )
}
