/** What a REFER asks (RFC 3515, RFC 4488). Pure. */
import {
  parseReplaces,
  readSoleUri,
  readUri,
  type Replaces,
  unescapeText,
} from '../../sip-server/message/index.ts'
import { answerToIrregular, calledOf, domainOf } from '../sip-headers.ts'
import type { Headers } from '../signalling.ts'

/** The transfer target (RFC 5589). */
export interface Target {
  /** In the normal form, unless a call is named that the target replaces. */
  readonly number: string
  /** User part, still escaped. */
  readonly user: string
  /** Without port. */
  readonly domain: string
  /** By `sips:`. */
  readonly isSecure?: boolean
}

export type ReferRequest =
  | {
      readonly kind: 'refer'
      readonly target: Target
      /** The call whose other party is meant: an attended transfer. */
      readonly replaces: Replaces | undefined
      /** RFC 4488: the transferor asks for no NOTIFY. */
      readonly isSilent: boolean
      /** Number of the REFER, which names its subscription (RFC 3515 §2.4.6). */
      readonly id: string
    }
  | { readonly kind: 'refused'; readonly status: number; readonly reason: string }

const refused = (status: number, reason: string): ReferRequest => ({
  kind: 'refused',
  status,
  reason,
})
const badReferTo = refused(400, 'Bad Refer-To')

export function readRefer(headers: Headers): ReferRequest {
  const uri = readSoleUri(headers['refer-to'] ?? '')
  if (uri === undefined) return badReferTo
  const { scheme, params, headers: embedded } = readUri(uri)
  if (scheme === '') return badReferTo
  if (!schemes.has(scheme)) return refused(416, 'Unsupported URI Scheme')
  // RFC 3515 §2.1 lets a REFER ask for any method; we place calls.
  const method = /;method=([^;]*)/i.exec(params)?.[1] ?? 'INVITE'
  if (method.toUpperCase() !== 'INVITE') return refused(603, 'Decline')
  const embeddedText = embeddedReplaces(embedded)
  const replaces = embeddedText === undefined ? undefined : parseReplaces(embeddedText)
  if (embeddedText !== undefined && replaces === undefined) return badReferTo
  const { number, user, host, irregular } = calledOf(uri)
  if (replaces === undefined) {
    if (irregular) return { kind: 'refused', ...answerToIrregular[irregular] }
    if (number === '') return badReferTo
  }
  return {
    kind: 'refer',
    target: {
      number,
      user,
      domain: domainOf({ host }),
      ...(scheme === 'sips' && { isSecure: true }),
    },
    replaces,
    isSilent: headers['refer-sub']?.split(';', 1)[0]?.trim().toLowerCase() === 'false',
    id: String(Number.parseInt(headers['cseq'] ?? '0', 10)),
  }
}

const schemes = new Set(['sip', 'sips', 'tel'])

/** RFC 3261 §19.1.1: headers of a URI, escaped. */
function embeddedReplaces(headers: string): string | undefined {
  for (const header of headers.split('&')) {
    const equals = header.indexOf('=')
    if (header.slice(0, equals).toLowerCase() !== 'replaces') continue
    return unescapeText(header.slice(equals + 1)) ?? ''
  }
  return undefined
}
