/** An entry of the audit log in a sentence. */
import type { AuditEntry } from '../api/views.ts'
import { actorText } from './actor-words.ts'

type Told = Pick<
  AuditEntry,
  | 'actor'
  | 'actor_name'
  | 'action'
  | 'target'
  | 'target_name'
  | 'outcome'
  | 'code'
  | 'effect'
  | 'after_digest'
>

const verbs: Readonly<Record<string, string>> = {
  POST: 'created|create',
  PUT: 'changed|change',
  PATCH: 'changed|change',
  DELETE: 'removed|remove',
}

/**
 * Deeds by the end of a path: the longest that fits. What was done, and what somebody wanted to do;
 * `%` is the object.
 */
const deeds: Readonly<Record<string, string>> = {
  'POST /auth/login': 'signed in|sign in',
  'POST /auth/session': 'signed in|sign in',
  'POST /code': 'signed in with a code|sign in with a code',
  'POST /enrolment': 'began to set up a second factor|set up a second factor',
  'GET /callback': 'signed in with an identity provider|sign in with an identity provider',
  'DELETE /auth/session': 'signed out|sign out',
  'POST /auth/logout': 'signed out|sign out',
  'DELETE /auth/sessions': 'ended the own other sessions|end the own other sessions',
  'DELETE /auth/sessions/:sessionId': 'ended an own session|end an own session',
  'PUT /auth/password': 'changed the own password|change the own password',
  'POST /auth/second-factor': 'began to set up a second factor|set up a second factor',
  'POST /confirmation': 'set up a second factor|set up a second factor',
  'POST /recovery-codes': 'made new recovery codes|make new recovery codes',
  'POST /removal': 'removed the own second factor|remove the own second factor',
  'PUT /sign-in-policy': 'changed who needs a second factor|change who needs a second factor',
  'DELETE /users/:id/sessions': 'signed out %|sign out %',
  'DELETE /second-factor': 'removed the second factor of %|remove the second factor of %',
  'PUT /saved-views/:screen/:name': 'saved a view|save a view',
  'DELETE /saved-views/:screen/:name': 'removed a saved view|remove a saved view',
  'POST /application-keys/:uuid/rotate': 'gave % a new token|give % a new token',
  'POST /rotate': 'gave % a new secret|give % a new secret',
  'POST /suspend': 'suspended %|suspend %',
  'POST /resume': 'resumed %|resume %',
  'POST /changes/:change_id/undo': 'undid a change|undo a change',
  'POST /rates/decks/:id/undo': 'undid an import of a deck|undo an import of a deck',
  'POST /rates/reratings/:id/undo': 'took back a rerating|take back a rerating',
  'POST /guard/bans': 'banned an address|ban an address',
  'POST /dispatcher/reload': 'read the dispatcher sets again|read the dispatcher sets again',
  'POST /acknowledge': 'acknowledged a finding|acknowledge a finding',
  'POST /snooze': 'snoozed a finding|snooze a finding',
  'POST /reopen': 'opened a finding again|open a finding again',
  'POST /test-call': 'placed a test call|place a test call',
  'POST /mcp/tools/:name': 'called %|call %',
  'POST /numbers/import': 'imported numbers|import numbers',
  'POST /test': 'tested %|test %',
  'POST /retry': 'sent an event to % again|send an event to % again',
  'DELETE /registrations': 'removed registrations of %|remove registrations of %',
  'POST /wallet/adjust': 'moved money of %|move money of %',
  'POST /hangup': 'hung up a call|hang up a call',
  'POST /transfer': 'transferred a call|transfer a call',
  'POST /originate': 'placed a call|place a call',
  'POST /spy': 'listened to a call|listen to a call',
  'POST /simulate': 'simulated a call|simulate a call',
  'POST /telephony/recording': 'switched the recording of a call|switch the recording of a call',
  'DELETE /recording': 'removed a recording|remove a recording',
  'POST /rates/import': 'imported rates|import rates',
  'POST /rates/decks': 'imported a deck|import a deck',
  'POST /rates/decks/preview': 'previewed a deck|preview a deck',
  'POST /rates/decks/diff': 'compared a deck|compare a deck',
  'POST /rates/reratings': 'priced calls anew|price calls anew',
  'POST /rates/reratings/preview': 'tried out new prices of calls|try out new prices of calls',
  'PUT /state': 'set the state of a PBX node of %|set the state of a PBX node of %',
  'POST /approve': 'approved a proposal|approve a proposal',
  'POST /refuse': 'refused a proposal|refuse a proposal',
  'POST /spend-guards': 'set a spend guard|set a spend guard',
  'DELETE /spend-guards/:guard_id': 'removed a spend guard|remove a spend guard',
  'POST /resolve': 'settled a payment alert|settle a payment alert',
  'POST /assign': 'credited a payment|credit a payment',
}

const nouns: Readonly<Record<string, string>> = {
  'application-keys': 'key',
  authorities: 'signing authority',
  dispatcher: 'dispatcher set',
  nodes: 'PBX node',
  'ai-agents': 'AI agent',
  'stir/keys': 'signing key',
}

/** `night-shift`, and `The node … goes from active to inactive`, are two sentences of one. */
export function auditText(entry: Told): string {
  const who = actorText(entry.actor, entry.actor_name)
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

/**
 * `The key "crm" is created.` → ` created the key "crm"`; other effects are a sentence of their
 * own.
 */
function doneText(effect: string): string {
  const [, subject, verb] = /^The (.+) is (created|removed)\.$/s.exec(effect) ?? []
  return subject === undefined ? `: ${effect}` : ` ${verb} the ${subject}`
}

const isSignIn = ({ action }: Told): boolean => /^POST .*\/auth\/(?:login|session)$/.test(action)

function deedOf(entry: Told, isDone: boolean): string {
  const { action, after_digest: after } = entry
  const [method = '', path = '', decision] = action.split(' ')
  const pick = (words: string): string => words.split('|')[isDone ? 0 : 1] ?? ''
  if (method === 'tool') return `${isDone ? 'called' : 'call'} the tool ${path}`
  if (method === 'command') return `${isDone ? 'ran' : 'run'} ${action}`
  if (method === 'expire') return `${isDone ? 'took' : 'take'} back a change that was for a time`
  if (path === '/decide') return pick(deeds[`POST /${decision}`] ?? '')
  // A check reports what it would change, and changes nothing.
  if (isDone && after === null && path.endsWith('/rates/import'))
    return 'checked an import of rates'
  const bare = bareOf(path)
  const parts = bare.split('/')
  const known = parts.map((_, at) => deeds[`${method} /${parts.slice(at).join('/')}`]).find(Boolean)
  const words = pick(known ?? verbs[method] ?? `did ${method} to|do ${method} to`)
  if (known === undefined) return `${words} ${subjectOf(parts, entry)}`
  return words.replace('%', () =>
    subjectOf(parts.slice(0, parts.findIndex(isParameter) + 1), entry),
  )
}

/** `/api/v1/customers/7` → `customers/7` */
const bareOf = (path: string): string => path.replace(/^\/api\/v\d+/, '').replace(/^\//, '')

const isParameter = (part: string): boolean => part.startsWith(':')

/** `customers`, `:id` and `/api/v1/customers/7` → `customer "acme"` */
function subjectOf(parts: readonly string[], { target, target_name: name }: Told): string {
  const given = bareOf(target).split('/')
  const first = parts.findIndex(isParameter)
  if (first === -1) return withArticle(nounOf(parts, parts.length))
  const id = decoded(given[first] ?? '')
  const owner = `${nounOf(parts, first)} ${name === null ? id : `"${name}"`}`
  // The words after the id belong to it, such as the nodes of a set.
  const rest = parts.slice(first + 1)
  if (rest.length === 0) return owner
  const inner = rest.findIndex(isParameter)
  const part =
    inner === -1
      ? withArticle(nounOf(parts, parts.length))
      : `${nounOf(parts, first + 1 + inner)} ${decoded(given[first + 1 + inner] ?? '')}`
  return `${part} of ${owner}`
}

/** `an outbound route`, `a user` */
const withArticle = (noun: string): string => `${/^[aeio]/i.test(noun) ? 'an' : 'a'} ${noun}`

/** The noun of the path before a place: `stir/keys` → `signing key`. */
function nounOf(parts: readonly string[], end: number): string {
  const [before, last = ''] = [parts[end - 2], parts[end - 1]]
  return nouns[`${before}/${last}`] ?? nouns[last] ?? last.replace(/s$/, '').replaceAll('-', ' ')
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}
