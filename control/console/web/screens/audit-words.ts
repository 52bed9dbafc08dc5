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
  POST: 'create',
  PUT: 'change',
  PATCH: 'change',
  DELETE: 'remove',
}

/** Verbs whose past does not end with `-ed`, or doubles a letter. */
const pasts: Readonly<Record<string, string>> = {
  ban: 'banned',
  begin: 'began',
  do: 'did',
  give: 'gave',
  hang: 'hung',
  make: 'made',
  read: 'read',
  send: 'sent',
  set: 'set',
  take: 'took',
  transfer: 'transferred',
  try: 'tried',
  undo: 'undid',
}

/** `sign in` → `signed in` */
const inThePast = (words: string): string =>
  words.replace(/^\w+/, (verb) => pasts[verb] ?? verb.replace(/e?$/, 'ed'))

/** Deeds by the end of a path: the longest that fits; `%` is the object. */
const deeds: Readonly<Record<string, string>> = {
  'POST /auth/login': 'sign in',
  'POST /auth/session': 'sign in',
  'POST /code': 'sign in with a code',
  'POST /enrolment': 'begin to set up a second factor',
  'GET /callback': 'sign in with an identity provider',
  'DELETE /auth/session': 'sign out',
  'POST /auth/logout': 'sign out',
  'DELETE /auth/sessions': 'end the own other sessions',
  'DELETE /auth/sessions/:sessionId': 'end an own session',
  'PUT /auth/password': 'change the own password',
  'POST /auth/second-factor': 'begin to set up a second factor',
  'POST /confirmation': 'set up a second factor',
  'POST /recovery-codes': 'make new recovery codes',
  'POST /removal': 'remove the own second factor',
  'PUT /sign-in-policy': 'change who needs a second factor',
  'DELETE /users/:id/sessions': 'sign out %',
  'DELETE /second-factor': 'remove the second factor of %',
  'PUT /saved-views/:screen/:name': 'save a view',
  'DELETE /saved-views/:screen/:name': 'remove a saved view',
  'POST /application-keys/:uuid/rotate': 'give % a new token',
  'POST /rotate': 'give % a new secret',
  'POST /suspend': 'suspend %',
  'POST /resume': 'resume %',
  'POST /changes/:change_id/undo': 'undo a change',
  'POST /rates/decks/:id/undo': 'undo an import of a deck',
  'POST /rates/reratings/:id/undo': 'take back a rerating',
  'POST /guard/bans': 'ban an address',
  'POST /dispatcher/reload': 'read the dispatcher sets again',
  'POST /acknowledge': 'acknowledge a finding',
  'POST /snooze': 'snooze a finding',
  'POST /reopen': 'open a finding again',
  'POST /test-call': 'place a test call',
  'POST /mcp/tools/:name': 'call %',
  'POST /numbers/import': 'import numbers',
  'POST /test': 'test %',
  'POST /retry': 'send an event to % again',
  'DELETE /registrations': 'remove registrations of %',
  'POST /wallet/adjust': 'move money of %',
  'POST /hangup': 'hang up a call',
  'POST /transfer': 'transfer a call',
  'POST /originate': 'place a call',
  'POST /spy': 'listen to a call',
  'POST /simulate': 'simulate a call',
  'POST /telephony/recording': 'switch the recording of a call',
  'DELETE /recording': 'remove a recording',
  'POST /rates/import': 'import rates',
  'POST /rates/decks': 'import a deck',
  'POST /rates/decks/preview': 'preview a deck',
  'POST /rates/decks/diff': 'compare a deck',
  'POST /rates/reratings': 'price calls anew',
  'POST /rates/reratings/preview': 'try out new prices of calls',
  'PUT /state': 'set the state of a PBX node of %',
  'POST /approve': 'approve a proposal',
  'POST /refuse': 'refuse a proposal',
  'POST /spend-guards': 'set a spend guard',
  'DELETE /spend-guards/:guard_id': 'remove a spend guard',
  'POST /resolve': 'settle a payment alert',
  'POST /assign': 'credit a payment',
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
  const inTime = (words: string): string => (isDone ? inThePast(words) : words)
  if (method === 'tool') return `${isDone ? 'called' : 'call'} the tool ${path}`
  if (method === 'command') return `${isDone ? 'ran' : 'run'} ${action}`
  if (method === 'expire') return `${isDone ? 'took' : 'take'} back a change that was for a time`
  if (path === '/decide') return inTime(deeds[`POST /${decision}`] ?? '')
  // A check reports what it would change, and changes nothing.
  if (isDone && after === null && path.endsWith('/rates/import'))
    return 'checked an import of rates'
  const bare = bareOf(path)
  const parts = bare.split('/')
  const known = parts.map((_, at) => deeds[`${method} /${parts.slice(at).join('/')}`]).find(Boolean)
  const words = inTime(known ?? verbs[method] ?? `do ${method} to`)
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
