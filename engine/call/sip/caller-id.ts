/**
 * Reads caller and callee out of From, P-Asserted-Identity and the Request-URI. Pure. Reads
 * only as much of a header as the number takes; a value that makes no sense yields an empty
 * number, never an exception.
 */
import {
  ANONYMOUS_HOST,
  escapeUser,
  readAddress,
  readUri,
  replaceUsers,
} from '../../sip-server/message/index.ts'
import { type ReadNumber, readNumber, readUserPart } from '../../../schema/rules/numbers.ts'

export interface Party {
  /** Unquoted, without line breaks; empty when there is none. */
  readonly name: string
  /** User part of a SIP URI: the number, or the text of the URI, still escaped; empty when there is none. */
  readonly user: string
  /** Host and port; empty for `tel:`. */
  readonly host: string
  /** The normal form of a number, else the text, unescaped and without parameters. */
  readonly number: string
  /** Why `number` is no number; undefined: it is one, or empty. */
  readonly irregular?: Irregular | undefined
}

/** A user name, or no way to write a number. */
export type Irregular = Exclude<ReadNumber['kind'], 'number'>

/** The response to a request that calls it. */
export const answerToIrregular = {
  name: { status: 404, reason: 'Not Found' },
  malformed: { status: 484, reason: 'Address Incomplete' },
} as const satisfies Record<Irregular, { status: number; reason: string }>

/** Longer names are cut: they end in records, logs and headers of our own. */
const MAX_NAME = 128

/** A party that is known by its number. */
export const partyOfNumber = (number: string, host: string, name = ''): Party => ({
  name,
  user: escapeUser(number),
  host,
  number,
})

/** RFC 3325 §9.1: the network vouches for the asserted identity; From is a claim of the sender. */
export function callerOf(asserted: string | undefined, from: string): Party {
  const claimed = partyOf(from)
  if (asserted === undefined) return claimed
  const known = partyOf(asserted)
  return known.number === '' ? claimed : { ...known, name: known.name || claimed.name }
}

/** The first (name-addr or addr-spec) of a From, To or P-Asserted-Identity value. */
export function partyOf(value: string): Party {
  const { displayName, uri } = readAddress(value)
  return { name: cleanName(displayName), ...uriParty(uri) }
}

export const isAnonymous = ({ host }: Party): boolean => host.toLowerCase() === ANONYMOUS_HOST

/** The callee of a Request-URI: the user part of `sip:` and `sips:`, the number of `tel:`. */
export function calledOf(uri: string): Party {
  return { name: '', ...uriParty(uri) }
}

/** Without port, in small letters. */
export const domainOf = ({ host }: Pick<Party, 'host'>): string =>
  host.replace(/:\d+$/, '').toLowerCase()

/** An identity header with each number in its normal form; names stay as they are. */
export const withPlainNumbers = (value: string): string =>
  replaceUsers(value, (user) => {
    const { kind, text } = readUserPart(user.split(':', 1)[0] ?? '')
    return kind === 'number' ? escapeUser(text) : user
  })

function uriParty(uri: string): Omit<Party, 'name'> {
  const { scheme, user, hostPort: host, params } = readUri(uri)
  if (user === '') return { user, host, number: '' }
  const { kind, text: number } = readUserPart(user)
  if (kind === 'number') return { user: escapeUser(number), host, number }
  // There a name is no name, but a number that is written wrong.
  const mustBeNumber = scheme === 'tel' || isTelephone.test(params)
  return { user: escapeUser(user), host, number, irregular: mustBeNumber ? 'malformed' : kind }
}

/** RFC 3261 §19.1.1: the user part is a telephone number, whatever it looks like. */
const isTelephone = /;user=phone(?![^;?])/i

/** `party` under the number that a rule of its carrier has made of its own. */
export function renumbered(party: Party, rewritten: string): Party {
  if (rewritten === party.number) return party
  const { kind, text: number } = readNumber(rewritten)
  const irregular = kind === 'number' || number === '' ? undefined : kind
  return { ...party, number, user: escapeUser(number), irregular }
}

/** Control characters (a folded line, an escaped CR) must reach neither a header nor a log. */
const cleanName = (text: string): string => text.replace(/\p{Cc}+/gu, ' ').slice(0, MAX_NAME)
