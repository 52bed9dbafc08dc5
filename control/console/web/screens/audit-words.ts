/** An entry of the audit log in a sentence. */
import type { AuditEntry } from '../api/views.ts'
import { actorText } from './ledger-words.ts'

type Told = Pick<
  AuditEntry,
  'actor' | 'actor_name' | 'action' | 'target' | 'outcome' | 'code' | 'effect' | 'after_digest'
>

const verbs: Readonly<Record<string, readonly [done: string, wanted: string]>> = {
  POST: ['created', 'create'],
  PUT: ['changed', 'change'],
  PATCH: ['changed', 'change'],
  DELETE: ['removed', 'remove'],
}

/** Deeds by the last segments of a path, without its version: the longest that fits. */
const deeds: Readonly<Record<string, readonly [done: string, wanted: string]>> = {
  'POST auth/login': ['signed in', 'sign in'],
  'POST auth/session': ['signed in', 'sign in'],
  'DELETE auth/session': ['signed out', 'sign out'],
  'POST auth/logout': ['signed out', 'sign out'],
  'POST wallet/adjust': ['moved money of', 'move money of'],
  'POST telephony/hangup': ['hung up a call', 'hang up a call'],
  'POST telephony/transfer': ['transferred a call', 'transfer a call'],
  'POST telephony/originate': ['placed a call', 'place a call'],
  'POST telephony/simulate': ['simulated a call', 'simulate a call'],
  'POST rates/import': ['imported rates', 'import rates'],
  'POST rates/decks': ['imported a deck', 'import a deck'],
  'POST rates/decks/preview': ['previewed a deck', 'preview a deck'],
  'POST rates/decks/diff': ['compared a deck', 'compare a deck'],
  'PUT :nodeId/state': ['set the state of a PBX node of', 'set the state of a PBX node of'],
}

const nouns: Readonly<Record<string, string>> = {
  'application-keys': 'key',
  dispatcher: 'dispatcher set',
  'rate-plans': 'rate plan',
  'outbound-routes': 'outbound route',
  'spend-guards': 'spend guard',
  'ai-agents': 'AI agent',
  'routing-webhooks': 'routing webhook',
  'identity-providers': 'identity provider',
  'stir/keys': 'signing key',
  'stir/authorities': 'signing authority',
}

/** `night-shift`, and `The node … goes from active to inactive`, are two sentences of one. */
export function auditText(entry: Told): string {
  const who = whoText(entry.actor, entry.actor_name)
  const { effect, outcome, code } = entry
  if (outcome === 'success')
    return effect === null ? `${who} ${deedOf(entry, true)}` : `${who}${doneText(effect)}`
  const why = code === null ? '' : ` (${code.replaceAll('_', ' ')})`
  // Who signs in has no credential yet.
  if (entry.actor === 'anonymous' && isSignIn(entry))
    return outcome === 'refused' ? `a sign-in was refused${why}` : `a sign-in failed${why}`
  return outcome === 'refused'
    ? `${who} was not allowed to ${deedOf(entry, false)}${why}`
    : `${who} could not ${deedOf(entry, false)}${why}`
}

/** `user admin`, `key night-shift`: a name alone would not tell them apart. */
function whoText(actor: string, name: string | null): string {
  const text = actorText(actor, name)
  if (actor.startsWith('user:')) return `user ${text}`
  return actor.startsWith('key:') && name !== null ? `key ${text}` : text
}

/**
 * `The key "crm" is created.` → ` created the key "crm"`; other effects are a sentence of their
 * own.
 */
function doneText(effect: string): string {
  const [, subject, verb] = /^The (.+) is (created|removed)\.$/s.exec(effect) ?? []
  return subject === undefined ? `: ${effect}` : ` ${verb} the ${subject}`
}

const isSignIn = ({ action }: Told): boolean => /^POST .*\/auth\/(?:login|session)$/.test(action)

function deedOf({ action, target, after_digest: after }: Told, isDone: boolean): string {
  const [method = '', path = ''] = action.split(' ')
  if (method === 'tool') return `${isDone ? 'called' : 'call'} the tool ${path}`
  const segments = path
    .split('/')
    .filter((each) => each !== '' && each !== 'api' && !/^v\d+$/.test(each))
  const deed = deeds[`${method} ${segments.slice(-2).join('/')}`]
  // A check reports what it would change, and changes nothing.
  if (isDone && after === null && action.endsWith('/rates/import'))
    return 'checked an import of rates'
  const verb = verbs[method]
  if (deed === undefined && verb === undefined) return `${isDone ? 'did' : 'do'} ${action}`
  const [done, wanted] = deed ?? verb ?? ['', '']
  const subject = subjectOf(segments, target)
  const words = isDone ? done : wanted
  return deed !== undefined && !words.endsWith(' of') ? words : `${words} ${subject}`
}

/** `customers`, `:id` and `/api/v1/customers/7` → `customer 7` */
function subjectOf(segments: readonly string[], target: string): string {
  const given = target
    .split('/')
    .filter((each) => each !== '' && each !== 'api' && !/^v\d+$/.test(each))
  const at = segments.findLastIndex((each) => each.startsWith(':'))
  // The words after the id belong to it, such as the rates of a plan.
  const after = segments.slice(at + 1).filter((each) => !each.startsWith(':'))
  const owner = at > 0 ? `${nounOf(segments[at - 1] ?? '')} ${decoded(given[at] ?? '')}` : ''
  if (at === -1) return withArticle(nounOf(segments.at(-1) ?? ''))
  return after.length === 0 ? owner : `${after.join(' ').replaceAll('-', ' ')} of ${owner}`
}

/** `an outbound route`, `a user` */
const withArticle = (noun: string): string => `${/^[aeio]/i.test(noun) ? 'an' : 'a'} ${noun}`

const nounOf = (segment: string): string =>
  nouns[segment] ?? segment.replace(/s$/, '').replaceAll('-', ' ')

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
