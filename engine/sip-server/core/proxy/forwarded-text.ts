/** The text of forwarded messages: RFC 3261 §16.6 for requests, §16.7 step 3 for responses. */
import type { AppMessage } from '../../application.ts'
import { bareUri } from '../../dialog/dialog.ts'
import type { Flow } from '../../flow.ts'
import { contentLengthLine, type SipMessage } from '../../../../schema/sip/message.ts'
import { parseNameAddr, parseOptionTags, parseUri } from '../../../../schema/sip/fields.ts'
import { splitList } from '../../../../schema/sip/headers.ts'
import type { SentRequest } from '../../transaction/machine.ts'

export interface ForwardedParts {
  readonly uri: string
  /** Value of our Via. */
  readonly via: string
  readonly branch: string
  /** The Vias of the request as whole lines, the top one completed. */
  readonly vias: string
  readonly maxForwards: number
  /** Our Record-Route or Path values, the nearest to the destination first. */
  readonly ownRoutes: readonly string[]
  /** The rest of its Route. */
  readonly routes: readonly string[]
  /** Headers of the application, in place of those of the same name. */
  readonly added: readonly (readonly [string, string])[]
}

export function forwardedRequest(request: SipMessage, parts: ForwardedParts): SentRequest {
  const { method, body, callId } = request
  const { uri, via, branch, vias, routes, added } = parts
  const maxForwards = String(parts.maxForwards)
  const isRegister = method === 'REGISTER'
  let text = `${method} ${uri} SIP/2.0\r\nVia: ${via}\r\n${vias}Max-Forwards: ${maxForwards}\r\n`
  // RFC 3327 §5.2: the way back to a phone that registers is its Path.
  for (const own of parts.ownRoutes) text += `${isRegister ? 'Path' : 'Record-Route'}: ${own}\r\n`
  for (const route of routes) text += `Route: ${route}\r\n`
  for (const [name, value] of added) text += `${name}: ${value}\r\n`
  const needsPath = isRegister && parts.ownRoutes.length > 0
  if (needsPath && !parseOptionTags(request.all('Require')).includes('path'))
    text += 'Require: path\r\n'
  const replaced = new Set(added.map(([name]) => name.toLowerCase()))
  for (const [name, value] of request.entries())
    if (!hopByHop.has(name) && !replaced.has(name.toLowerCase())) text += `${name}: ${value}\r\n`
  return {
    method,
    uri,
    via,
    branch,
    routes,
    maxForwards,
    from: request.get('From') ?? '',
    to: request.get('To') ?? '',
    callId,
    cseq: request.cseq?.number ?? 0,
    credentials: '',
    text: text + contentLengthLine(body) + body,
  }
}

const hopByHop = new Set(['Via', 'Max-Forwards', 'Route', 'Content-Length'])

/** Headers that an application may add to a request that is not its own. */
export function addedHeaders(message: AppMessage): readonly (readonly [string, string])[] {
  const added: [string, string][] = []
  message.forEach((name, value) => {
    if (!reserved.has(name)) added.push([name, value])
  })
  return added
}

const reserved = new Set(
  (
    'Via,Record-Route,Route,Max-Forwards,From,To,Call-ID,CSeq,Contact,Content-Length,' +
    'Content-Type,Content-Encoding,RAck'
  ).split(','),
)

/** The response without our Via, with `lines`; undefined when no Via is left to send it to. */
export function forwardedResponse(response: SipMessage, lines = ''): string | undefined {
  const [, ...vias] = response.all('Via').flatMap(splitList)
  if (vias.length === 0) return undefined
  let text = `SIP/2.0 ${response.status} ${response.reason}\r\n`
  for (const via of vias) text += `Via: ${via}\r\n`
  for (const [name, value] of response.entries())
    if (name !== 'Via' && name !== 'Content-Length') text += `${name}: ${value}\r\n`
  const { body } = response
  return text + lines + contentLengthLine(body) + body
}

/**
 * The destinations of a forwarded request, those of redirections included (RFC 3261 §16.5, §16.7
 * step 4).
 */
export interface ForwardTarget {
  /** Request-URI. */
  readonly uri: string
  /** The rest of the Route. */
  readonly routes: readonly string[]
  /** URI of the next hop. */
  readonly hop: string
  /** The hop is an address: a phone that has registered under this name is not meant. */
  readonly isAddress?: true
  /** The only flow that leads there, where it is known. */
  readonly flow?: Flow | undefined
}

export const keyOf = ({ uri, hop }: ForwardTarget): string => `${uri} ${hop}`

/** Destinations of one request, those of redirections included. */
export const MAX_TARGETS = 32

/** Contacts that are not known yet, by descending q; they are known afterwards. */
export function redirections(response: SipMessage, known: Set<string>): readonly ForwardTarget[] {
  const targets: ForwardTarget[] = []
  for (const { uri } of contactsOf(response)) {
    const target = { uri, routes: [], hop: uri }
    if (known.size >= MAX_TARGETS) break
    if (known.has(keyOf(target))) continue
    known.add(keyOf(target))
    targets.push(target)
  }
  return targets
}

function contactsOf(response: SipMessage): readonly { readonly uri: string; readonly q: number }[] {
  const contacts: { uri: string; q: number }[] = []
  for (const value of response.list('Contact')) {
    const uri = bareUri(value)
    const scheme = parseUri(uri)?.scheme
    if (scheme !== 'sip' && scheme !== 'sips') continue
    const q = Number(parseNameAddr(value)?.params.get('q') ?? 1)
    contacts.push({ uri: uri.split('?', 1)[0] ?? uri, q: Number.isFinite(q) ? q : 1 })
  }
  return contacts.toSorted((a, b) => b.q - a.q)
}
