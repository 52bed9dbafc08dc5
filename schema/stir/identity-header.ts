/** The value of an `Identity` header (RFC 8224 §4), strictly and within bounds. Pure. */

/** Headers of one INVITE that are read; more of them are an attack. */
export const MAX_IDENTITIES = 10
const MAX_IDENTITY_LENGTH = 8_192
export const MAX_URL_LENGTH = 1_000

export interface IdentityHeader {
  /** Parts of the JWS (RFC 7515 §7.1) in base64url; the first two are empty in the compact form. */
  readonly header: string
  readonly payload: string
  /** 64 bytes in base64url. */
  readonly signature: string
  /** URL of the certificate. */
  readonly info: string
  readonly alg: string | undefined
  /** Type of the PASSporT, such as `shaken`. */
  readonly ppt: string | undefined
}

/** Undefined: the grammar is broken, or the value is too long. */
export function parseIdentity(value: string): IdentityHeader | undefined {
  if (value.length > MAX_IDENTITY_LENGTH) return undefined
  const { jws, rest = '' } = wholeValue.exec(value)?.groups ?? {}
  const parts = jws?.split('.')
  const params = parts && readParams(rest)
  const info = params?.get('info')
  if (parts === undefined || params === undefined || info === undefined) return undefined
  const [header = '', payload = '', signature = ''] = parts
  // Both are there, or neither.
  if ((header === '') !== (payload === '')) return undefined
  return { header, payload, signature, info, alg: params.get('alg'), ppt: params.get('ppt') }
}

/** A signature of ES256 has 64 bytes (RFC 7518 §3.4). */
const wholeValue = /^[ \t]*(?<jws>[\w-]*\.[\w-]*\.[\w-]{86})(?<rest>[ \t]*;[\t\x20-\x7e]*)$/

/** Undefined: malformed, or a parameter of ours twice. */
function readParams(text: string): ReadonlyMap<string, string> | undefined {
  const found = new Map<string, string>()
  parameter.lastIndex = 0
  while (parameter.lastIndex < text.length) {
    const { name = '', url, quoted, token } = parameter.exec(text)?.groups ?? {}
    if (name === '') return undefined
    const key = name.toLowerCase()
    if (found.has(key)) return undefined
    // Only `info` is an URL in angle brackets, and it is nothing else.
    if ((key === 'info') !== (url !== undefined)) return undefined
    found.set(key, url ?? quoted ?? token ?? '')
  }
  return found
}

const parameter = new RegExp(
  String.raw`[ \t]*;[ \t]*(?<name>[\w.!%*+\x60'~-]{1,64})[ \t]*` +
    String.raw`(?:=[ \t]*(?:<(?<url>[\x21-\x3b\x3d\x3f-\x7e]{1,1000})>` +
    String.raw`|"(?<quoted>[\x20\x21\x23-\x5b\x5d-\x7e]{0,256})"` +
    String.raw`|(?<token>[\w.!%*+\x60'~:/-]{1,256}))[ \t]*)?`,
  'y',
)

/** The value of an `Identity` header. */
export const identityText = (jws: string, info: string, ppt: string): string =>
  `${jws};info=<${info}>;alg=ES256;ppt=${ppt}`
