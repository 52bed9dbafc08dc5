/** PASSporTs in compact form (RFC 8225 §7): what they leave out is in the INVITE. */
import type { CallToVerify } from '../../schema/contracts/stir.ts'
import { canonicalNumber } from '../../schema/stir/canonical-number.ts'
import type { IdentityHeader } from '../../schema/stir/identity-header.ts'

/** Undefined: the INVITE does not say all of it. */
export function expandCompact(
  identity: IdentityHeader,
  { orig, dest, date }: CallToVerify,
): IdentityHeader | undefined {
  const from = canonicalNumber(orig)
  const to = canonicalNumber(dest)
  // `attest`, `origid` and `div` are nowhere else.
  if (identity.ppt !== undefined || date === undefined) return undefined
  if (from === undefined || to === undefined) return undefined
  const header = JSON.stringify({ alg: 'ES256', typ: 'passport', x5u: identity.info })
  const payload = JSON.stringify({ dest: { tn: [to] }, iat: date, orig: { tn: from } })
  return { ...identity, header: inBase64Url(header), payload: inBase64Url(payload) }
}

const inBase64Url = (text: string): string => Buffer.from(text).toString('base64url')
