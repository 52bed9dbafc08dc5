/**
 * A finding of `/anomalies` for people: its title, its text in their time zone, and links to
 * evidence and to the next step.
 */
import type { Finding, KeptFinding } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import {
  clockText,
  durationText,
  plural,
  shortAddress,
  shortMomentText,
  sinceText,
} from '../parts/format.ts'
import { formPath } from '../parts/prefill.ts'
import { actorText } from './actor-words.ts'
import { nameOfNode, type NodeName } from './names.ts'

export interface Link {
  readonly text: string
  readonly to: string
}

interface Context {
  /** Nodes by destination. */
  readonly nodes: ReadonlyMap<string, NodeName>
  readonly present: number
}

/** Who or what a finding is about. */
interface Subject {
  readonly kind: 'customer' | 'carrier' | 'node' | 'key' | 'extension' | 'other'
  /** The id of a customer, the uuid of a key, or the destination of a node. */
  readonly id: string
  readonly name: string
}

export function subjectOf({ subject, what }: Pick<Finding, 'subject' | 'what'>): Subject {
  const [, kind = '', rest = ''] =
    /^(customer|carrier|node|key|extension) (.+)$/s.exec(subject) ?? []
  const unquoted = rest.replace(/^"(.*?)".*$/s, '$1')
  switch (kind) {
    case 'customer': {
      const name = /customer \d+ "([^"]*)"/.exec(what)?.[1]
      return { kind, id: rest, name: name ?? `customer ${rest}` }
    }
    case 'key':
      return { kind, id: rest, name: /key "([^"]*)"/.exec(what)?.[1] ?? rest }
    case 'carrier':
    case 'node':
    case 'extension':
      return { kind, id: unquoted, name: unquoted }
    default:
      return { kind: 'other', id: '', name: subject.replaceAll('_', ' ') }
  }
}

type TitledFinding = Pick<Finding, 'kind' | 'what' | 'subject' | 'figures' | 'first_at'>

export function findingTitle(finding: TitledFinding, context: Context): string {
  const { kind, what } = finding
  const subject = subjectOf(finding)
  const { name } = subject
  if (subject.kind === 'node') return nodeTitle(finding, subject.id, context)
  switch (kind) {
    case 'spend':
      return `${name} spends more than usual`
    case 'destination':
      return `${name} calls where it never called before`
    case 'wallet':
      return `${name} cannot pay for its calls`
    case 'rate':
      return `${name} calls numbers that have no rate`
    case 'unknown_callers':
      return 'Calls come from numbers that belong to no customer'
    case 'key_use':
      return `Key ${name} is used in an unusual way`
    case 'trunk':
      if (what.includes('below the floors of route')) return `Carrier ${name} does badly`
      return what.includes('out of service')
        ? `Carrier ${name} does not answer`
        : `Calls through carrier ${name} fail`
    case 'registration':
      return subject.kind === 'carrier'
        ? `Carrier ${name} accepts no registration`
        : isLikelyTypo(finding)
          ? `A phone has the wrong password of extension ${name}`
          : `Somebody guesses the password of extension ${name}`
    case 'capacity':
      return subject.kind === 'other'
        ? `A limit is reached: ${name}`
        : `${name} has reached a limit`
    case 'node':
      return `PBX node ${name}`
    case 'certificate':
      return finding.figures['expired'] === 1
        ? 'A certificate has expired'
        : 'A certificate expires soon'
    case 'payment':
      return paymentTitle(what)
    case 'hook':
      return `The ${name} fails`
    case 'margin':
      return 'A carrier costs too much for what its calls are sold for'
  }
}

/** `payment "pi_1" of 25.00 EUR is not credited: …` */
function paymentTitle(what: string): string {
  const amount = / of (\S+ [A-Z]{3})/.exec(what)?.[1] ?? ''
  const payment = amount === '' ? 'A payment' : `A payment of ${amount}`
  return what.includes(' is not credited: ')
    ? `${payment} is not credited`
    : `${payment} needs attention`
}

/** The server judges by addresses and tries. */
const isLikelyTypo = ({ figures }: Pick<Finding, 'figures'>): boolean =>
  figures['likely_typo'] === 1

function nodeTitle(
  { kind, first_at: at, what }: TitledFinding,
  destination: string,
  { nodes, present }: Context,
): string {
  const node = `PBX node ${nameOfNode(nodes, destination).full}`
  const since = `since ${sinceText(at, present)}`
  if (kind === 'capacity') return `${node} has reached its limit of calls`
  if (what.includes('by hand')) return `${node} was taken out of service by hand`
  return /went out of service/.test(what)
    ? `${node} goes out of service again and again`
    : `${node} does not answer ${since}`
}

/** Times as the viewer's clock has them, addresses and codes as people read them. */
export const findingText = ({ what }: Pick<Finding, 'what'>): string =>
  what
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d+)?)?Z/g, (time) => clockText(time))
    .replace(/sips?:[^\s";]+(?:;[^\s":]+)?/g, (uri) => shortAddress(uri))
    .replace(
      /(refused with )([a-z]+(?:_[a-z]+)+)/g,
      (_, words: string, code: string) => `${words}“${code.replaceAll('_', ' ')}”`,
    )
    .replace(/\.?$/, '.')
    .replace(/^./, (letter) => letter.toUpperCase())

const uuid = /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/

/** Links to the calls, the customer, the carrier, the node or the key. */
export function evidenceOf(finding: Finding): readonly Link[] {
  const { kind, evidence } = finding
  const { kind: of, id, name } = subjectOf(finding)
  const calls = (by: string, value: string): Link => ({
    text: 'Its calls',
    to: pathOf('history', undefined, { by, for: value }),
  })
  const own: readonly Link[] =
    of === 'customer'
      ? [{ text: `Customer ${name}`, to: pathOf('customers', id) }, calls('customer_id', id)]
      : of === 'carrier'
        ? [
            { text: `Carrier ${name}`, to: pathOf('carriers', undefined, { q: name }) },
            calls('carrier', name),
          ]
        : of === 'node'
          ? [calls('node', shortAddress(id))]
          : []
  const shown = kind === 'key_use' ? [] : evidence.filter((each) => uuid.test(each))
  return [
    ...own,
    ...shown.map((call, index) => ({ text: `Call ${index + 1}`, to: pathOf('calls', call) })),
  ]
}

/** Addresses have no page of their own. */
export const addressesOf = ({ evidence, kind }: Finding): string =>
  kind === 'registration' && evidence.length > 0
    ? `${plural(evidence.length, 'address', 'addresses')}: ${evidence.join(', ')}`
    : ''

/** Texts of the API name tools for agents: people read what they do themselves. */
const deeds: readonly (readonly [tool: RegExp, deed: string])[] = [
  [/: resume_api_key brings it back/g, ': “Resume” brings it back'],
  [/ with set_dispatcher_state/g, ' with “Take back”'],
  [/ with set_trunk_state/g, ' by making it active'],
  [
    /Ask a person for the price: add_rate adds .* proposes it\./g,
    'Ask for the price, and add it to the plan of rates.',
  ],
  [/give it to the customer: add_number .* proposes it\./g, 'give it to the customer.'],
  [/ on the screen Payments, or by POST \S+\./g, ' on the screen Payments.'],
  [/The screen Payments and GET \S+ have all/g, 'The screen Payments has all'],
  [/set loss_protection to refuse/g, 'let the loss protection refuse such calls'],
  [/max_concurrent_calls/g, 'limit of calls at once'],
  [/max_cps/g, 'limit of calls a second'],
  [/max_calls/g, 'limit of calls'],
]

/** Says what to do about it, as people say it. */
export const adviceText = ({ advice }: Pick<Finding, 'advice'>): string =>
  findingText({ what: deeds.reduce((text, [tool, deed]) => text.replace(tool, deed), advice) })

/** Deeds by the tool, or the request, that did them. */
const remedies: Readonly<Record<string, string>> = {
  set_spend_guard: 'a spend guard',
  suspend_api_key: 'a suspension of the key',
  revoke_sbc_api_key: 'a revocation of the key',
  ban_address: 'a ban of the address',
  set_dispatcher_state: 'a drain of the node',
  set_trunk_state: 'a change of the carrier',
  set_customer_limits: 'new limits',
  add_rate: 'a new rate',
  add_number: 'a number for the customer',
}

const changedThings: readonly (readonly [path: string, thing: string])[] = [
  ['/guard/bans', 'a ban of the address'],
  ['/spend-guards', 'a spend guard'],
  ['/application-keys', 'a change of the key'],
  ['/dispatcher', 'a change of the node'],
  ['/routing/carriers', 'a change of the carrier'],
  ['/customers', 'a change of the customer'],
  ['/rates', 'a new rate'],
]

/** Who has changed what against it; empty: nobody has. */
export function handledText({ handled_by: change }: Pick<Finding, 'handled_by'>): string {
  if (change === null) return ''
  const { tool, by, at, reason, seen_since: isSeen } = change
  const deed =
    remedies[tool] ?? changedThings.find(([path]) => tool.includes(path))?.[1] ?? 'a change'
  return [
    `Handled${by === null ? '' : ` by ${actorText(by)}`} at ${clockText(at)} with ${deed}`,
    reason === null ? '' : `: ${reason.replace(/\.$/, '')}`,
    '.',
    isSeen ? ' It has continued since.' : '',
  ].join('')
}

type Marked = Pick<KeptFinding, 'acknowledged' | 'snoozed'>

/** Who has acknowledged or snoozed it; empty: nobody has. */
export function markText({ acknowledged, snoozed }: Marked): string {
  if (acknowledged !== null) {
    const { by, at, note } = acknowledged
    const why = note === null ? '' : `: ${note.replace(/\.$/, '')}`
    return `Acknowledged by ${actorText(by)} at ${clockText(at)}${why}.`
  }
  if (snoozed === null) return ''
  const { by, until, reason } = snoozed
  return (
    `Snoozed by ${actorText(by)} until ${shortMomentText(until)}: ` +
    `${reason.replace(/\.$/, '')}.`
  )
}

/** How long it was open, or has been. */
export const lastedText = (
  { opened_at: opened, closed_at: closed }: Pick<KeptFinding, 'opened_at' | 'closed_at'>,
  present: number,
): string => {
  const end = closed === null ? present : Date.parse(closed)
  return durationText(Math.max(0, Math.round((end - Date.parse(opened)) / 1_000)))
}

const textOf = (value: unknown): string | undefined =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : undefined

/** An argument of the first step, as the text of a field. */
const given = ({ first_step: step }: Pick<Finding, 'first_step'>, name: string) =>
  textOf(step?.arguments[name])

/** The form, or the screen, on which a person puts it right; the form is filled in. */
export function stepOf(finding: Finding, { nodes }: Pick<Context, 'nodes'>): Link {
  const subject = subjectOf(finding)
  const { kind: of, id, name } = subject
  const { what } = finding
  switch (finding.kind) {
    case 'spend':
    case 'destination':
      return guardStep(finding, subject)
    case 'wallet':
      return of === 'customer' ? moneyStep(finding, subject) : callsStep
    case 'rate':
      return of === 'customer' ? rateStep(what, subject) : callsStep
    case 'unknown_callers':
      return unknownStep(finding)
    case 'key_use':
      return {
        text: `Suspend key ${name}`,
        to: formPath('keys', { reason: given(finding, 'reason') }, { action: 'suspend', of: id }),
      }
    case 'registration':
      if (of !== 'carrier') return guessingStep(finding, subject)
      break
    case 'certificate':
    case 'hook':
      return { text: 'See the settings', to: pathOf('settings') }
    case 'payment':
      return paymentStep(finding)
    case 'margin':
      return { text: 'See the outbound routes', to: pathOf('outbound-routes') }
    case 'capacity':
    case 'node':
    case 'trunk':
  }
  const destination = given(finding, 'destination')
  if (destination !== undefined || of === 'node') return nodeStep(finding, destination ?? id, nodes)
  switch (of) {
    case 'customer':
      return limitStep(finding, subject)
    case 'carrier':
      return carrierStep(finding, subject)
    default:
      return callsStep
  }
}

const callsStep: Link = { text: 'See the calls', to: pathOf('history') }

/** “Set a spend guard for Acme on 1900”; the shown name is the server's. */
function guardStep(finding: Finding, { id, name }: Subject): Link {
  const prefix = given(finding, 'prefix') ?? ''
  const seconds = Number(given(finding, 'duration') ?? 86_400)
  return {
    text: `Set a spend guard for ${name}${prefix === '' ? '' : ` on ${prefix}`}`,
    to: formPath('spend-guards', {
      scope: 'customer',
      who: id,
      prefix,
      action: given(finding, 'action') ?? 'block',
      amount: given(finding, 'amount'),
      per: given(finding, 'per'),
      hours: String(Math.max(1, Math.round(seconds / 3_600))),
      reason: given(finding, 'reason'),
    }),
  }
}

function moneyStep(finding: Finding, { id, name }: Subject): Link {
  const most = given(finding, 'max_daily_spend')
  return most === undefined
    ? { text: `Top up ${name}`, to: formPath('customers', {}, { item: id, action: 'top-up' }) }
    : {
        text: `Raise the daily limit of ${name}`,
        to: formPath('customers', { max_daily_spend: most }, { item: id, action: 'change' }),
      }
}

function rateStep(what: string, { id, name }: Subject): Link {
  const prefix = /begin with "\+?(\d+)"/.exec(what)?.[1] ?? ''
  const fields = prefix === '' ? {} : { prefix }
  return {
    text: prefix === '' ? `Add the rate for ${name}` : `Add a rate for ${prefix} to ${name}`,
    to: formPath('customers', { view: 'rates', ...fields }, { item: id }),
  }
}

function unknownStep({ subject, what }: Finding): Link {
  if (subject !== 'unknown_caller') return { text: 'See the carriers', to: pathOf('carriers') }
  const number = /such as caller "(\+?\d{2,20})"/.exec(what)?.[1]
  return {
    text: `Give ${number ?? 'the number'} to a customer`,
    to: formPath('numbers', { number }),
  }
}

function guessingStep(finding: Finding, { name }: Subject): Link {
  if (isLikelyTypo(finding))
    return { text: 'See the phone', to: pathOf('phones', undefined, { q: name.split('@')[0] }) }
  const count = finding.evidence.length
  return {
    text: `Ban ${count === 1 ? `${finding.evidence[0]}` : `these ${count} addresses`}`,
    to: formPath('bans', { address: finding.evidence.join(', '), minutes: '60' }),
  }
}

function paymentStep({ what, figures }: Finding): Link {
  const alert = textOf(figures['alert'])
  const isOpen = what.includes(' is not credited: ') && alert !== undefined
  return isOpen
    ? {
        text: 'Assign the payment to a customer',
        to: formPath('payments', {}, { action: 'assign', of: alert }),
      }
    : { text: 'See the payments', to: pathOf('payments') }
}

function nodeStep(
  finding: Finding,
  destination: string,
  nodes: ReadonlyMap<string, NodeName>,
): Link {
  const { id, name } = nameOfNode(nodes, destination)
  const state = given(finding, 'state')
  if (state === undefined || id === undefined)
    return {
      text: `See node ${name}`,
      to: pathOf('nodes', undefined, { q: shortAddress(destination) }),
    }
  return state === 'active'
    ? { text: `Take ${name} back`, to: formPath('nodes', {}, { action: 'take-back', of: `${id}` }) }
    : { text: `Drain ${name}`, to: formPath('nodes', {}, { action: 'drain', of: `${id}` }) }
}

const limitNames: Readonly<Record<string, string>> = {
  max_concurrent_calls: 'calls at once',
  max_cps: 'calls a second',
}

function limitStep(finding: Finding, { id, name }: Subject): Link {
  const field = Object.keys(limitNames).find((each) => given(finding, each) !== undefined)
  if (field === undefined) return { text: `See ${name}`, to: pathOf('customers', id) }
  const most = given(finding, field)
  return {
    text: `Let ${name} have ${most} ${limitNames[field]}`,
    to: formPath('customers', { [field]: most }, { item: id, action: 'change' }),
  }
}

function carrierStep(finding: Finding, { name }: Subject): Link {
  const id = given(finding, 'carrier')
  if (id === undefined)
    return { text: `See carrier ${name}`, to: pathOf('carriers', undefined, { q: name }) }
  const isBack = given(finding, 'state') === 'active'
  return {
    text: `Take ${name} ${isBack ? 'back into' : 'out of'} service`,
    to: formPath('carriers', { is_active: isBack ? '1' : '0' }, { item: id, action: 'change' }),
  }
}
