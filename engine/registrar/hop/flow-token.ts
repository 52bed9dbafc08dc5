/**
 * Flow tokens (RFC 5626 §5.1): data about a phone that an instance sends to another one, or to
 * itself, in a Route. Only instances can read and make one: it is encrypted and authenticated with
 * a key that is derived from SECRET_KEY. Each is bound to the instance that reads it, and to the
 * phone's Contact or to the Call-ID. Pure.
 */
import { hkdfSync } from 'node:crypto'
import { SecretBox } from '../../../schema/secrets/secret-box.ts'
import type { BindingSource } from '../bindings.ts'

/** An extension by number and domain. */
export interface Home {
  readonly domain: string
  readonly extension: string
}

/**
 * Asks the instance that holds the flow of a phone to send it a request. For the phone's Contact
 * alone.
 */
export interface CallToken extends Home {
  readonly kind: 'call'
  /** The instance that has made it: no other one may use it. */
  readonly issuer: string
  /** Milliseconds UTC. */
  readonly issuedAt: number
}

/** Requests of the instance in a dialog, on their way to the phone. For one Call-ID. */
export interface ToPhoneToken extends Home {
  readonly kind: 'to-phone'
  /** The instance that has the other side of the dialog. */
  readonly instance: string
  /** The flow of the phone when the dialog began. */
  readonly flow: BindingSource
}

/** Requests of the phone in that dialog, on their way to the instance. For one Call-ID. */
export interface ToInstanceToken extends Home {
  readonly kind: 'to-instance'
  readonly instance: string
  /** Address of the phone when the dialog began. */
  readonly address: string
}

export type FlowToken = CallToken | ToPhoneToken | ToInstanceToken

/** The instance and the request that a token is bound to. */
export interface TokenUse {
  /** The instance that reads it. */
  readonly holder: string
  readonly uri: string
  readonly callId: string
}

/** More is no token: an extension, a domain and two names are shorter. */
const MAX_LENGTH = 1_200

/** Prefixes that mark a user part as a token; the digit is the version of the format. */
const prefixes = { contact: 'tgc1.', dialog: 'tgd1.' } as const
type TokenScope = keyof typeof prefixes

export class FlowTokens {
  readonly #box: SecretBox

  /** @param key 32 bytes that all instances of the installation have, and nothing else. */
  constructor(key: Buffer) {
    this.#box = new SecretBox(Buffer.from(hkdfSync('sha256', key, '', PURPOSE, 32)))
  }

  /** Returns the user part of a SIP URI. */
  write(token: FlowToken, use: TokenUse): string {
    const scope = token.kind === 'call' ? 'contact' : 'dialog'
    const sealed = this.#box.seal(placeOf(scope, use), JSON.stringify(fieldsOf(token)))
    const bytes = Buffer.from(sealed.slice(SEALED.length), 'base64')
    return prefixes[scope] + bytes.toString('base64url')
  }

  /**
   * `none`: the text does not look like a token. Undefined: it is forged, damaged, or for another
   * use.
   */
  read(text: string, use: TokenUse): FlowToken | 'none' | undefined {
    const scope = scopeOf(text)
    if (scope === undefined) return 'none'
    if (text.length > MAX_LENGTH) return undefined
    const bytes = Buffer.from(text.slice(prefixes[scope].length), 'base64url')
    const opened = this.#box.open(placeOf(scope, use), SEALED + bytes.toString('base64'))
    return opened === undefined ? undefined : tokenOf(JSON.parse(opened) as Fields)
  }
}

/** No token of another kind, nor a secret of the database, is one of these. */
const PURPOSE = 'tollgate flow tokens'

/** How `SecretBox` begins its texts. */
const SEALED = 'enc1:'

const scopeOf = (text: string): TokenScope | undefined =>
  text.startsWith(prefixes.contact)
    ? 'contact'
    : text.startsWith(prefixes.dialog)
      ? 'dialog'
      : undefined

const placeOf = (scope: TokenScope, { holder, uri, callId }: TokenUse) => ({
  table: 'flow token',
  column: scope,
  row: JSON.stringify([holder, scope === 'contact' ? uri : callId]),
})

type Fields =
  | readonly ['c', domain: string, extension: string, issuer: string, issuedAt: number]
  | readonly ['p', domain: string, extension: string, node: string, ...flow: FlowFields]
  | readonly ['n', domain: string, extension: string, node: string, address: string]
type FlowFields = readonly [protocol: string, address: string, port: number]

function fieldsOf(token: FlowToken): Fields {
  const { domain, extension } = token
  switch (token.kind) {
    case 'call':
      return ['c', domain, extension, token.issuer, token.issuedAt]
    case 'to-phone': {
      const { protocol, address, port } = token.flow
      return ['p', domain, extension, token.instance, protocol, address, port]
    }
    case 'to-instance':
    default:
      return ['n', domain, extension, token.instance, token.address]
  }
}

/** Authenticated: only `fieldsOf` has written them. */
function tokenOf(fields: Fields): FlowToken {
  const [kind, domain, extension] = fields
  switch (kind) {
    case 'c':
      return { kind: 'call', domain, extension, issuer: fields[3], issuedAt: fields[4] }
    case 'p': {
      const flow = { protocol: fields[4], address: fields[5], port: fields[6] }
      return { kind: 'to-phone', domain, extension, instance: fields[3], flow }
    }
    case 'n':
    default:
      return { kind: 'to-instance', domain, extension, instance: fields[3], address: fields[4] }
  }
}
