/**
 * SIP headers as calls use them: those that pass from one leg to the other, caller and callee, and
 * those of our responses. Only headers listed here pass. Headers that belong to a leg (Via, Route,
 * Record-Route, Contact, credentials) or reveal equipment behind us (User-Agent, Server,
 * Organization, Warning) never do.
 */
import { PARTS } from './multipart.ts'
import type { Answer, Headers } from './signalling.ts'
import {
  ANONYMOUS_HOST,
  escapeUser,
  headerNamed,
  isKnownStatus,
  readAddress,
  readUri,
  replaceHosts,
  replaceUsers,
  splitList,
} from '../../schema/sip/index.ts'
import { readNumber, type ReadNumber, readUserPart } from '../../schema/rules/numbers.ts'

/** The mark of our own calls towards nodes; never taken from outside. */
export const CALL_UUID = 'X-Call-UUID'

/**
 * Carries the token of a transfer in an INVITE from one instance of the installation to another.
 */
export const TRANSFER_TOKEN = 'X-Tollgate-Transfer'

const describesCall = namesIn(
  'p-asserted-identity privacy diversion history-info remote-party-id reason alert-info call-info',
  'subject priority resource-priority user-to-user p-early-media p-charging-vector accept',
  'accept-language accept-encoding geolocation geolocation-routing in-reply-to identity date',
)
const describesBody = namesIn(
  'content-type content-disposition content-encoding content-language content-id mime-version',
  PARTS,
)
/** `recv-info`: INVITE and its responses agree on INFO packages (RFC 6086 §5.1). */
const common = [...describesCall, ...describesBody, ...namesIn('allow supported recv-info')]

const inviteHeaders = new Set(common)
/** Retry-After does not pass: one busy node does not make Tollgate busy. */
const inviteAnswerHeaders = new Set([...common, 'unsupported'])

/** Those of our dialog with the caller; its session timer and its capabilities are our own. */
const ofOwnDialog = new Set(
  namesIn('via from to call-id cseq record-route route max-forwards require proxy-require rseq')
    .concat(namesIn('rack session-expires min-se timestamp authorization proxy-authorization'))
    .concat(namesIn('server user-agent expires x-call-uuid')),
)

/**
 * Whether a header of an application's final answer passes although no other destination may send
 * it: those that others may send pass as `inviteAnswer` shows them.
 */
export function passesFinal(name: string): boolean {
  const key = name.toLowerCase()
  return !ofOwnDialog.has(key) && !inviteAnswerHeaders.has(key) && !key.startsWith('content-')
}
const inDialogHeaders = new Set([
  ...common,
  ...namesIn('event subscription-state info-package expires'),
])
const inDialogAnswerHeaders = new Set([...common, ...namesIn('unsupported retry-after')])
const byeHeaders = new Set(namesIn('reason user-to-user'))

/** Headers that name the caller, as the next network reads it. */
const namesCallers = new Set(namesIn('p-asserted-identity remote-party-id'))
/** Values that name hosts; the host is replaced by ours. */
const namesHosts = new Set(namesIn('p-asserted-identity diversion history-info remote-party-id'))

/** Extensions that end-to-end parties may use through us; session timers are each leg's own. */
const passedOptions = new Set(namesIn('histinfo resource-priority uui privacy replaces'))
/** We take reliable provisionals of the called side ourselves (RFC 3262), and send none. */
const offeredOptions = new Set([...passedOptions, '100rel'])

/** Methods that pass, or that we handle for both sides. Other methods in `Allow` are removed. */
const passedMethods = new Set(
  namesIn('INVITE ACK CANCEL BYE OPTIONS PRACK UPDATE INFO MESSAGE NOTIFY REFER'),
)

/** Identities that only a trunk or a node may claim (RFC 3325 §5); a phone has its number alone. */
export const identityClaims: ReadonlySet<string> = new Set(
  namesIn('p-asserted-identity remote-party-id identity diversion history-info p-charging-vector'),
)

/** Removes identity claims from headers that have passed. */
export function withoutClaims(passed: Headers): Headers {
  for (const name of identityClaims) delete passed[name]
  return passed
}

/**
 * With these a phone is told to answer by itself, and where to fetch its ring tone and its picture.
 * RFC 3261 §20.4 and §20.9 warn of both, and RFC 5373 §6 wants to know who asks: they reach a phone
 * only in an INVITE of its own tenant.
 */
const alertHeaders: readonly string[] = namesIn('alert-info call-info')

/** Removes what makes a phone answer by itself from headers that have passed. */
export function withoutAlerts(passed: Headers): Headers {
  for (const name of alertHeaders) delete passed[name]
  return passed
}

/** Removes headers by their lower-case names. */
export function withoutHeaders(headers: Headers, names: readonly string[] = []): Headers {
  if (names.length === 0) return headers
  const passing = Object.entries(headers).filter(([name]) => !names.includes(name.toLowerCase()))
  return Object.fromEntries(passing)
}

/** Sets headers in place of those of the same names, in whatever spelling. */
export function replaceHeaders(headers: Headers, added: Headers): void {
  const names = new Set(Object.keys(added).map((name) => name.toLowerCase()))
  for (const name of Object.keys(headers)) if (names.has(name.toLowerCase())) delete headers[name]
  Object.assign(headers, added)
}

export interface HeaderRules {
  /**
   * Which `X-…` headers pass, by lower-case names: they may reveal anything about equipment behind
   * us.
   */
  readonly passX: ReadonlySet<string>
  /** Our host and port. */
  readonly ownHost: () => string
}

export class HeaderFilter {
  readonly #rules: HeaderRules

  constructor(rules: HeaderRules) {
    this.#rules = rules
  }

  /** Our host and port. */
  get ownHost(): string {
    return this.#rules.ownHost()
  }

  invite(headers: Headers): Headers {
    return this.#pass(headers, inviteHeaders, offeredOptions)
  }

  inviteAnswer(headers: Headers): Headers {
    return this.#pass(headers, inviteAnswerHeaders)
  }

  inDialog(headers: Headers): Headers {
    return this.#pass(headers, inDialogHeaders)
  }

  inDialogAnswer(headers: Headers): Headers {
    return this.#pass(headers, inDialogAnswerHeaders)
  }

  bye(headers: Headers): Headers {
    return this.#pass(headers, byeHeaders)
  }

  #pass(from: Headers, allowed: ReadonlySet<string>, options = passedOptions): Headers {
    const { passX } = this.#rules
    const passed: Headers = {}
    for (const name in from) {
      const value = from[name]
      if (value === undefined) continue
      // Most names are lower case already; only these few keep the sender's spelling.
      const first = name.charCodeAt(0)
      const key = first >= 65 && first <= 90 ? name.toLowerCase() : name
      if (allowed.has(key)) this.#passListed(key, value, options, passed)
      else if (passX.has(key)) passed[name] = value
    }
    return passed
  }

  #passListed(key: string, value: string, options: ReadonlySet<string>, passed: Headers): void {
    if (key === 'supported') passOnly(options, key, value, passed)
    else if (key === 'allow') passOnly(passedMethods, key, value, passed)
    else if (namesHosts.has(key)) {
      const named = namesCallers.has(key) ? withPlainNumbers(value) : value
      passed[key] = replaceHosts(named, this.#rules.ownHost())
    } else passed[key] = value
  }
}

/** RFC 3891 §6.2: we handle Replaces for both sides, whatever the other one supports. */
export function advertiseReplaces(headers: Headers): void {
  const { supported } = headers
  if (supported === undefined) headers['supported'] = 'replaces'
  else if (!supported.includes('replaces')) headers['supported'] = `${supported}, replaces`
}

const OWN_MARK = CALL_UUID.toLowerCase()

/** The value of our mark on a request. */
export const ownMark = (headers: Headers): string | undefined => headerNamed(headers, OWN_MARK)

/** The tokens of a comma list that we know; nothing when none is left. */
function passOnly(known: ReadonlySet<string>, key: string, value: string, passed: Headers): void {
  // Options are written in any case (RFC 3261 §7.3.1), methods are not (§7.1).
  const tokens = splitList(key === 'supported' ? value.toLowerCase() : value)
  const passing = tokens.filter((token) => known.has(token))
  if (passing.length > 0) passed[key] = passing.join(', ')
}

/** The unsupported options of a `Require` (RFC 3261 §8.2.2.3), as the value of `Unsupported`. */
export function unsupportedOptions(require: string | undefined): string {
  if (require === undefined) return ''
  return splitList(require)
    .filter((token) => !doneHere.has(token.toLowerCase()))
    .join(', ')
}

/** The SIP server implements `100rel` and `timer`. */
const doneHere = new Set(['100rel', 'timer', 'replaces'])

/** The caller requires reliable provisional responses (RFC 3262). */
export const requires100rel = (require: string | undefined): boolean =>
  require !== undefined && splitList(require.toLowerCase()).includes('100rel')

function namesIn(...lines: readonly string[]): string[] {
  return lines.flatMap((line) => line.split(' '))
}

/**
 * Methods that we take, in and out of dialogs: in every answer that names them (RFC 3261 §8.2.1,
 * §11.2).
 */
export const ALLOW =
  'INVITE, ACK, CANCEL, BYE, OPTIONS, REGISTER, PRACK, UPDATE, INFO, MESSAGE, NOTIFY, ' +
  'REFER, PUBLISH'

/** The status, or what RFC 3261 §8.1.3.2 reads for one that is not registered: x00 of its class. */
export function listedStatus(status: number): number {
  if (isKnownStatus(status)) return status
  return status < 200 ? 183 : Math.min(600, status - (status % 100))
}

/** Sends an answer, at most one final one. */
export function respond(
  answer: Answer,
  status: number,
  reason?: string,
  options: { readonly headers?: Headers; readonly body?: string | undefined } = {},
): void {
  if (answer.finalResponseSent) return
  answer.send(listedStatus(status), reason, options)
}

/**
 * Reads caller and callee out of From, P-Asserted-Identity and the Request-URI. Pure. Reads
 * only as much of a header as the number takes; a value that makes no sense yields an empty
 * number, never an exception.
 */
export interface Party {
  /** Unquoted, without line breaks; empty when there is none. */
  readonly name: string
  /**
   * User part of a SIP URI: the number, or the text of the URI, still escaped; empty when there is
   * none.
   */
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
export function callerOf(asserted: string | undefined, claimed: Party): Party {
  if (asserted === undefined) return claimed
  const known = numberedPartyOf(asserted)
  return known.number === '' ? claimed : { ...known, name: known.name || claimed.name }
}

/** The first (name-addr or addr-spec) of a From, To or P-Asserted-Identity value. */
export function partyOf(value: string): Party {
  const { displayName, uri } = readAddress(value)
  return uriParty(uri, cleanName(displayName))
}

/**
 * The party in a header that may have several values, over several lines: RFC 3325 §9.1 allows one
 * sip and one tel URI in any order. The number that is known everywhere is meant, else the first
 * number, else the first name.
 */
export function numberedPartyOf(value: string): Party {
  const first = partyOf(value)
  if (!value.includes(',') || isGlobal(first)) return first
  const parties = splitList(value).slice(0, MAX_IDENTITIES).map(partyOf)
  const meant =
    parties.find(isGlobal) ??
    parties.find(({ number, irregular }) => number !== '' && irregular === undefined) ??
    parties.find(({ number }) => number !== '') ??
    first
  return meant.name === '' ? { ...meant, name: first.name } : meant
}

/** More values of one header are not read. */
const MAX_IDENTITIES = 8

const isGlobal = ({ number, irregular }: Party): boolean =>
  irregular === undefined && number.startsWith('+')

export const isAnonymous = ({ host }: Party): boolean => host.toLowerCase() === ANONYMOUS_HOST

/** The callee of a Request-URI: the user part of `sip:` and `sips:`, the number of `tel:`. */
export const calledOf = (uri: string): Party => uriParty(uri, '')

/** The host of a party in lower case, without port. */
export const domainOf = ({ host }: Pick<Party, 'host'>): string =>
  host.replace(/:\d+$/, '').toLowerCase()

/** An identity header with each number in its normal form; names stay as they are. */
const withPlainNumbers = (value: string): string =>
  replaceUsers(withoutVerstat(value), (user) => {
    const { kind, text } = readUserPart(user.split(':', 1)[0] ?? '')
    return kind === 'number' ? escapeUser(text) : user
  })

/**
 * `verstat` (3GPP TS 24.229 §7.2A.20) says what was verified: it passes only where it is
 * believed (`CheckedNumber`).
 */
const withoutVerstat = (value: string): string =>
  /verstat/i.test(value) ? value.replace(/;\s*verstat\s*(?:=[^;>,@\s]*)?/gi, '') : value

function uriParty(uri: string, name: string): Party {
  const { scheme, user, hostPort: host, params } = readUri(uri)
  if (user === '') return { name, user, host, number: '' }
  const { kind, text: number } = readUserPart(user)
  if (kind === 'number') return { name, user: escapeUser(number), host, number }
  // There a name is no name, but a number that is written wrong.
  const mustBeNumber = scheme === 'tel' || isTelephone.test(params)
  const irregular = mustBeNumber ? 'malformed' : kind
  return { name, user: escapeUser(withoutVerstat(user)), host, number, irregular }
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
const cleanName = (text: string): string =>
  text === '' ? text : text.replace(/\p{Cc}+/gu, ' ').slice(0, MAX_NAME)
