/**
 * Headers between call control and the SIP server of an application: no application sees them, and
 * none is taken from anybody who does not know the secret of that server. Pure.
 */
import { headerNamed } from '../../../schema/sip/index.ts'
import { PARTS } from '../multipart.ts'
import type { Headers } from '../signalling.ts'

/** The secret of the application's server: on every request between the two. */
export const APPLICATION_SECRET = 'X-Tollgate-Application'
/** On a request of an application: the uuid of the call in which it was made. */
export const APPLICATION_CALL = 'X-Tollgate-Call'
/** On the INVITE to an application: the one that was received. */
export const ORIGINAL_INVITE = 'X-Tollgate-Original'
/** On the final response that means `continue`: the secret. */
export const APPLICATION_CONTINUES = 'X-Tollgate-Continue'

const privateNames: ReadonlySet<string> = new Set(
  [APPLICATION_SECRET, APPLICATION_CALL, ORIGINAL_INVITE, APPLICATION_CONTINUES].map((name) =>
    name.toLowerCase(),
  ),
)

export const isPrivateHeader = (name: string): boolean => privateNames.has(name.toLowerCase())

/** An INVITE as it was received. */
export interface OriginalInvite {
  readonly headers: Headers
  /** Host of the Request-URI. */
  readonly host: string
  readonly protocol: string
  readonly address: string
  readonly port: number
}

/** A password of a phone is for us alone. */
const withheld = new Set(['authorization', 'proxy-authorization', 'content-length'])

/**
 * JSON is one line, and adds little: an INVITE that fits into a datagram fits with this in place of
 * its headers, too. As base64 one of 48 kB did not.
 */
export function writeOriginal({ headers, ...source }: OriginalInvite): string {
  const shown = Object.entries(headers).filter(
    ([name]) => !withheld.has(name.toLowerCase()) && !isPrivateHeader(name) && name !== PARTS,
  )
  return JSON.stringify({ ...source, headers: Object.fromEntries(shown) })
}

/** Headers that the INVITE to an application has beside the original ones. */
const ofTheWay = new Set(
  ['content-type content-disposition supported require allow recv-info max-forwards from to']
    .flatMap((names) => names.split(' '))
    .concat(PARTS),
)

/** Without what the original INVITE says. */
export const onlyOfTheWay = (headers: Headers): Headers =>
  Object.fromEntries(Object.entries(headers).filter(([name]) => ofTheWay.has(name.toLowerCase())))

/** `text`: of a request that has the secret. Undefined: it is none. */
export function readOriginal(text: string): OriginalInvite | undefined {
  try {
    const read: unknown = JSON.parse(text)
    return isOriginal(read) ? read : undefined
  } catch {
    return undefined
  }
}

const isOriginal = (value: unknown): value is OriginalInvite =>
  typeof value === 'object' && value !== null && 'headers' in value && 'address' in value

/** Whether a final response of an application means that the call goes on without it. */
export const continues = (headers: Headers, secret: string): boolean =>
  headerNamed(headers, APPLICATION_CONTINUES.toLowerCase()) === secret
