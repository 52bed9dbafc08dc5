/** Responses to calls whose identity does not hold (RFC 8224 §6.2.2). */
import type { VerificationStatus } from '../contracts/stir.ts'

export const verificationReasons: Readonly<Record<VerificationStatus, string>> = {
  403: 'Stale Date',
  428: 'Use Identity Header',
  436: 'Bad Identity Info',
  437: 'Unsupported Credential',
  438: 'Invalid Identity Header',
}
