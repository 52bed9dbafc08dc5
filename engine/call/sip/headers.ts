/**
 * Which headers pass from one leg to the other. A header passes because it is listed here: what
 * belongs to a leg (Via, Route, Record-Route, Contact, credentials) or reveals equipment behind us
 * (User-Agent, Server, Organization, Warning) never does.
 */
import { headerNamed, replaceHosts, splitList } from '../../sip-server/message/index.ts'
import { withPlainNumbers } from './caller-id.ts'
import type { Headers } from '../signalling.ts'

/** The mark of our own calls towards nodes; never taken from outside. */
export const CALL_UUID = 'X-Call-UUID'

const describesCall = namesIn(
  'p-asserted-identity privacy diversion history-info remote-party-id reason alert-info call-info',
  'subject priority resource-priority user-to-user p-early-media p-charging-vector accept',
  'accept-language accept-encoding geolocation geolocation-routing in-reply-to identity date',
)
const describesBody = namesIn(
  'content-type content-disposition content-encoding content-language content-id mime-version',
)
/** `recv-info`: INVITE and its responses agree on INFO packages (RFC 6086 §5.1). */
const common = [...describesCall, ...describesBody, ...namesIn('allow supported recv-info')]

const inviteHeaders = new Set(common)
/** Without Retry-After: one busy node does not make Tollgate busy. */
const inviteAnswerHeaders = new Set([...common, 'unsupported'])
const inDialogHeaders = new Set([
  ...common,
  ...namesIn('event subscription-state info-package expires'),
])
const inDialogAnswerHeaders = new Set([...common, ...namesIn('unsupported retry-after')])
const byeHeaders = new Set(namesIn('reason user-to-user'))

/** Who calls, as the next network reads it. */
const namesCallers = new Set(namesIn('p-asserted-identity remote-party-id'))
/** Values that name hosts; the host is replaced by ours. */
const namesHosts = new Set(namesIn('p-asserted-identity diversion history-info remote-party-id'))

/** Extensions that end-to-end parties may use through us; session timers are each leg's own. */
const passedOptions = new Set(namesIn('histinfo resource-priority uui privacy replaces'))
/** Towards the called side we take reliable provisionals ourselves (RFC 3262); we send none. */
const offeredOptions = new Set([...passedOptions, '100rel'])

/** Methods that pass, or that we do for both sides; what a peer allows beyond them ends at us. */
const passedMethods = new Set(
  namesIn('INVITE ACK CANCEL BYE OPTIONS PRACK UPDATE INFO MESSAGE NOTIFY REFER'),
)

/** Identities that only a trunk or a node may claim (RFC 3325 §5); a phone has its number alone. */
export const identityClaims: ReadonlySet<string> = new Set(
  namesIn('p-asserted-identity remote-party-id identity diversion history-info p-charging-vector'),
)

/** What has passed, without such claims. */
export function withoutClaims(passed: Headers): Headers {
  for (const name of identityClaims) delete passed[name]
  return passed
}

/** Without these headers, named in lower case. */
export function withoutHeaders(headers: Headers, names: readonly string[] = []): Headers {
  if (names.length === 0) return headers
  const kept = Object.entries(headers).filter(([name]) => !names.includes(name.toLowerCase()))
  return Object.fromEntries(kept)
}

export interface HeaderRules {
  /** Which `X-…` headers pass, by lower-case names: they may reveal anything about equipment behind us. */
  readonly passX: ReadonlySet<string>
  /** Our host and port. */
  readonly ownHost: () => string
}

export class HeaderFilter {
  readonly #rules: HeaderRules

  constructor(rules: HeaderRules) {
    this.#rules = rules
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

/** What we do for both sides of a call, whatever the other one can: RFC 3891 §6.2. */
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
  const kept = splitList(value).filter((token) => known.has(token))
  if (kept.length > 0) passed[key] = kept.join(', ')
}

/** What of a `Require` we do not do (RFC 3261 §8.2.2.3), as the value of `Unsupported`. */
export function unsupportedOptions(require: string | undefined): string {
  if (require === undefined) return ''
  return splitList(require)
    .filter((token) => !doneHere.has(token))
    .join(', ')
}

/** `100rel` and `timer` are the SIP server's work. */
const doneHere = new Set(['100rel', 'timer', 'replaces'])

/** The caller requires reliable provisional responses (RFC 3262). */
export const requires100rel = (require: string | undefined): boolean =>
  require !== undefined && splitList(require).includes('100rel')

function namesIn(...lines: readonly string[]): string[] {
  return lines.flatMap((line) => line.split(' '))
}
