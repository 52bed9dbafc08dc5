/** The destinations of a forwarded request, those of redirections included (RFC 3261 §16.5, §16.7 step 4). */
import { bareUri } from '../../dialog/route-set.ts'
import type { Flow } from '../../flow.ts'
import type { SipMessage } from '../../message/message.ts'
import { parseNameAddr } from '../../message/name-addr.ts'
import { parseUri } from '../../message/uri.ts'

export interface Target {
  /** Request-URI. */
  readonly uri: string
  /** What is left of the Route. */
  readonly routes: readonly string[]
  /** URI of the next hop. */
  readonly hop: string
  /** The hop is a place: a phone that has registered under its name is not meant. */
  readonly isPlace?: true
  /** The only flow that leads there, where it is known. */
  readonly flow?: Flow | undefined
}

export const keyOf = ({ uri, hop }: Target): string => `${uri} ${hop}`

/** Destinations of one request, those of redirections included. */
export const MAX_TARGETS = 32

/** Contacts that are not known yet, by descending q; they are known afterwards. */
export function redirections(response: SipMessage, known: Set<string>): readonly Target[] {
  const targets: Target[] = []
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
