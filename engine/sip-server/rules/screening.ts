/** New requests that no application hears of: of spammers, probes, and registrations without a domain. Pure. */
import { isIPv4 } from 'node:net'
import { isReliable } from '../flow.ts'
import { parseNameAddr } from '../message/name-addr.ts'
import { parseUri } from '../message/uri.ts'
import type { NewRequest, Screening } from '../options.ts'

export interface ScreeningRules {
  readonly spammers: readonly { readonly name: string; readonly values: readonly string[] }[]
  /** What becomes of spammers by UDP: 603, or no answer. */
  readonly action: 'reject' | 'discard'
  /** On streams. */
  readonly streamAction: 'reject' | 'discard'
  /** OPTIONS with exactly this User-Agent get 200. */
  readonly optionsUserAgent: string | undefined
  /** REGISTER for an IPv4 address gets 403. */
  readonly rejectsRegisterWithoutRealm: boolean
}

/** Undefined: there is nothing to look for. */
export function screening(
  rules: ScreeningRules,
): ((request: NewRequest) => Screening | undefined) | undefined {
  const { spammers, optionsUserAgent, rejectsRegisterWithoutRealm } = rules
  const looksForSpammers = spammers.some(({ values }) => values.length > 0)
  if (!looksForSpammers && optionsUserAgent === undefined && !rejectsRegisterWithoutRealm)
    return undefined
  return (request) => {
    if (isOfSpammer(request, spammers))
      return isReliable(request.protocol) ? outcomes[rules.streamAction] : outcomes[rules.action]
    if (request.method === 'OPTIONS' && optionsUserAgent !== undefined)
      return request.get('User-Agent') === optionsUserAgent ? taken : undefined
    if (request.method === 'REGISTER' && rejectsRegisterWithoutRealm)
      return isIPv4(parseUri(request.uri)?.host ?? '') ? forbidden : undefined
    return undefined
  }
}

const outcomes: Readonly<Record<ScreeningRules['action'], Screening>> = {
  reject: { status: 603, reason: 'Decline' },
  discard: 'drop',
}
const taken: Screening = { status: 200, reason: 'OK' }
const forbidden: Screening = { status: 403, reason: 'Forbidden' }

const isOfSpammer = (request: NewRequest, spammers: ScreeningRules['spammers']): boolean =>
  spammers.some(({ name, values }) => {
    const text = judgedText(request, name)
    return text !== '' && values.some((value) => text.includes(value))
  })

/** Of From and To only the user counts. */
function judgedText({ get }: NewRequest, name: string): string {
  if (name === 'user-agent') return get('User-Agent') ?? ''
  const value = get(name === 'from' ? 'From' : 'To')
  return value === undefined ? '' : (parseUri(parseNameAddr(value)?.uri ?? '')?.user ?? '')
}
