/**
 * A finding of `/anomalies` for people: its title, its text in their time zone, and links to
 * evidence and to the next step.
 */
import type { Finding } from '../api/views.ts'
import { pathOf } from '../parts/address.ts'
import { clockText, plural, shortAddress, sinceText } from '../parts/format.ts'
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

export function findingTitle(finding: Finding, context: Context): string {
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
  { kind, first_at: at, what }: Finding,
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

/** The screen on which it is put right. */
export function stepOf(finding: Finding): Link {
  const subject = subjectOf(finding)
  const { kind: of, id, name } = subject
  switch (finding.kind) {
    case 'spend':
    case 'destination':
      return { text: 'Set a spend guard', to: pathOf('spend-guards') }
    case 'wallet':
      return { text: 'Top up the wallet', to: pathOf('customers', id) }
    case 'rate':
      return of === 'customer'
        ? { text: 'Add the rate', to: pathOf('customers', id, { view: 'rates' }) }
        : { text: 'See the customers', to: pathOf('customers') }
    case 'unknown_callers':
      return { text: 'Give the number to a customer', to: pathOf('customers') }
    case 'key_use':
      return { text: 'Suspend the key', to: pathOf('keys', undefined, { q: name }) }
    case 'registration':
      if (of !== 'carrier')
        return {
          text: isLikelyTypo(finding) ? 'See the bans' : 'Ban the addresses',
          to: pathOf('bans'),
        }
      break
    case 'certificate':
      return { text: 'See the settings', to: pathOf('settings') }
    case 'payment':
      return { text: 'See the payments', to: pathOf('payments') }
    case 'hook':
      return { text: 'See the settings', to: pathOf('settings') }
    case 'margin':
      return { text: 'See the outbound routes', to: pathOf('outbound-routes') }
    case 'capacity':
    case 'node':
    case 'trunk':
  }
  switch (of) {
    case 'customer':
      return { text: 'Change its limits', to: pathOf('customers', id) }
    case 'carrier':
      return { text: 'See the carrier', to: pathOf('carriers', undefined, { q: name }) }
    case 'node':
      return { text: 'See the node', to: pathOf('nodes', undefined, { q: shortAddress(id) }) }
    default:
      return { text: 'See the calls', to: pathOf('history') }
  }
}
