/** What a REFER asks (RFC 3515, RFC 4488). Pure. */
import { answerToIrregular, calledOf } from '../sip/caller-id.ts'
import type { Headers } from '../signalling.ts'
import { readReplaces, type Replaces } from './replaces.ts'

/** Whom the party that stays shall talk to. */
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
      /** RFC 4488: nobody wants to hear how it goes on. */
      readonly isSilent: boolean
      /** Number of the REFER, which names its subscription (RFC 3515 §2.4.6). */
      readonly id: string
    }
  | { readonly kind: 'refused'; readonly status: number; readonly reason: string }

const refused = (status: number, reason: string): ReferRequest => ({
  ...{ kind: 'refused', status, reason },
})
const badReferTo = refused(400, 'Bad Refer-To')

export function readRefer(headers: Headers): ReferRequest {
  const uri = uriOf(headers['refer-to'] ?? '')
  if (uri === undefined) return badReferTo
  const scheme = uri.slice(0, uri.indexOf(':')).toLowerCase()
  if (!uri.includes(':') || scheme === '') return badReferTo
  if (!schemes.has(scheme)) return refused(416, 'Unsupported URI Scheme')
  const question = uri.indexOf('?')
  const address = question === -1 ? uri : uri.slice(0, question)
  // §2.1 lets a REFER ask for any method; we place calls.
  const method = /;method=([^;]*)/i.exec(address)?.[1] ?? 'INVITE'
  if (method.toUpperCase() !== 'INVITE') return refused(603, 'Decline')
  const embedded = question === -1 ? undefined : embeddedReplaces(uri.slice(question + 1))
  const replaces = embedded === undefined ? undefined : readReplaces(embedded)
  if (embedded !== undefined && replaces === undefined) return badReferTo
  const { number, user, host, irregular } = calledOf(address)
  if (replaces === undefined) {
    if (irregular) return { kind: 'refused', ...answerToIrregular[irregular] }
    if (number === '') return badReferTo
  }
  return {
    kind: 'refer',
    target: {
      number,
      user,
      domain: host.replace(/:\d+$/, '').toLowerCase(),
      ...(scheme === 'sips' && { isSecure: true }),
    },
    replaces,
    isSilent: headers['refer-sub']?.split(';', 1)[0]?.trim().toLowerCase() === 'false',
    id: String(Number.parseInt(headers['cseq'] ?? '0', 10)),
  }
}

const schemes = new Set(['sip', 'sips', 'tel'])

/** The one URI of a Refer-To value. Undefined: there is none, or more than one (§2.1). */
function uriOf(value: string): string | undefined {
  const open = value.indexOf('<')
  if (open === -1) {
    const uri = value.split(';', 1)[0]?.trim() ?? ''
    return uri === '' || /[,\s]/.test(uri) ? undefined : uri
  }
  const close = value.indexOf('>', open)
  if (close === -1 || value.slice(close + 1).includes('<')) return undefined
  return value.slice(open + 1, close).trim() || undefined
}

/** RFC 3261 §19.1.1: headers of a URI, escaped. */
function embeddedReplaces(headers: string): string | undefined {
  for (const header of headers.split('&')) {
    const equals = header.indexOf('=')
    if (header.slice(0, equals).toLowerCase() !== 'replaces') continue
    try {
      return decodeURIComponent(header.slice(equals + 1))
    } catch {
      return ''
    }
  }
  return undefined
}
