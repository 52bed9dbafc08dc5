/** Findings in the certificates of the listeners: expired, or about to expire. */
import { DAY_MS } from '../../../schema/clock.ts'
import type { CertificateStatus } from '../../../schema/contracts/certificates.ts'
import { timeToText } from '../../../schema/columns.ts'
import { plural } from '../../http/clean-text.ts'
import type { AnomalyDeps, Finding } from './finding.ts'

/**
 * Renewal runs 30 days before the end in most places: one that is so near has failed for two weeks.
 */
const SOON_DAYS = 14
const URGENT_DAYS = 3

const listeners = {
  api: 'the API and the console',
  edge: 'the customer edge',
  sip: 'SIP by TLS',
  stir: 'signed calls',
} as const satisfies Record<CertificateStatus['use'], string>

/** Only people of the platform renew certificates. */
export function findCertificates({
  certificates,
  tenantId,
  now,
}: Pick<AnomalyDeps, 'certificates' | 'tenantId' | 'now'>): readonly Finding[] {
  if (tenantId !== null || certificates === undefined) return []
  const at = now()
  return certificates().flatMap((certificate) => {
    const restMs = certificate.notAfter - at
    return restMs > SOON_DAYS * DAY_MS ? [] : [findingOf(certificate, restMs, at)]
  })
}

function findingOf(
  { use, file, notAfter }: CertificateStatus,
  restMs: number,
  at: number,
): Finding {
  const days = Math.floor(Math.max(0, restMs) / DAY_MS)
  const isExpired = restMs <= 0
  return {
    kind: 'certificate',
    severity: isExpired ? 'critical' : days < URGENT_DAYS ? 'high' : 'medium',
    subject: `certificate ${use}`,
    what: isExpired
      ? `the certificate of ${listeners[use]} expired at ${timeToText(notAfter)}: peers refuse it.`
      : `the certificate of ${listeners[use]} expires at ${timeToText(notAfter)}, in ` +
        `${plural(days, 'day')}.`,
    firstAt: Math.min(at, notAfter),
    lastAt: at,
    figures: { days_left: days, expired: Number(isExpired) },
    evidence: [file],
    advice:
      use === 'stir'
        ? `Add a key with a newer certificate beside the ${file}: the newest one signs.`
        : `Renew ${file}. A new file is read within seconds, without a restart.`,
    next: { tool: 'get_telemetry', arguments: {} },
    firstStep: null,
  }
}
