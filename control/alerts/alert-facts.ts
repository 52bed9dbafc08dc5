/** Reads from an event its subject, its words, and whom it concerns. Pure. */
import { kindFacts } from '../../schema/contracts/alert-kinds.ts'
import type { AlertKind } from '../../schema/tables/money.ts'
import { cleanText } from '../http/clean-text.ts'
import type { RuleInForce } from './alert-rule-set.ts'

type EventData = Readonly<Record<string, unknown>>

export interface AlertFacts {
  /** Names what it is about among the alerts of a rule. */
  readonly subject: string
  /** A sentence without a full stop. */
  readonly text: string
  readonly figures: Readonly<Record<string, string | number>>
  /** A page of the console. */
  readonly path: string
}

export interface EventFacts extends AlertFacts {
  readonly customerId: number | null
  readonly carrierId: number | null
  readonly carrier: string | null
  readonly node: string | null
  readonly severity: string | null
  /** It is no payment that was not credited, such as a refund. */
  readonly isOtherPayment: boolean
  /** The number of the dispatcher set whose tenant it concerns. */
  readonly setId: number | null
  /** Sides that have said that they want to hear no more of it for now. */
  readonly snoozedBy: readonly unknown[]
}

/** Longer ones do not fit into an index of PostgreSQL. */
const MAX_SUBJECT = 300

/** @param data in the API's own spelling, of any version: a field may be missing. */
export function factsOf(type: string, data: EventData): EventFacts {
  const customerId = numberIn(data, 'customer_id')
  const carrierId = numberIn(data, 'carrier_id')
  const carrier = textIn(data, 'carrier') ?? textIn(data, 'carrier_name')
  const concerned = {
    customerId,
    carrierId,
    carrier,
    node: textIn(data, 'destination'),
    severity: textIn(data, 'severity'),
    setId: numberIn(data, 'set_id'),
    isOtherPayment: type === 'payment.alert' && isOtherPayment(data),
    snoozedBy: listIn(data, 'snoozed_by'),
    figures: figuresOf(data),
  }
  const facts = told(type.split('.', 1)[0] ?? '', type, data, carrierId, carrier)
  return { ...concerned, ...facts, subject: subjectText(facts.subject) }
}

/** A text that no database stores must not stop the events that follow. */
export const subjectText = (text: string): string => cleanText(text, MAX_SUBJECT)

function told(
  family: string,
  type: string,
  data: EventData,
  carrierId: number | null,
  carrier: string | null,
): Pick<AlertFacts, 'subject' | 'text' | 'path'> {
  const why = reasonOf(data)
  const named = (name: string) => String(textIn(data, name) ?? numberIn(data, name) ?? '?')
  switch (family) {
    case 'dispatcher': {
      const [set, destination] = [named('set_id'), named('destination')]
      const text = `Node ${cleanText(destination)} of dispatcher set ${set} is out of service${why}`
      return { subject: `node ${set} ${destination}`, text, path: '/console/nodes' }
    }
    case 'carrier': {
      const who = carrier ?? `${carrierId ?? '?'}`
      return {
        subject: `carrier ${carrierId ?? who}`,
        text: `Carrier ${cleanText(who)} is out of service${why}`,
        path: carrierId === null ? '/console/carriers' : `/console/carriers/${carrierId}`,
      }
    }
    case 'registration':
      return registrationTold(data, carrierId, carrier, why)
    case 'node': {
      const name = named('node')
      const text = `Instance ${cleanText(name)} is lost${why}`
      return { subject: `instance ${name}`, text, path: '/console/nodes' }
    }
    case 'payment':
      return paymentTold(data, why)
    case 'finding':
      return findingTold(data, why)
    default:
      return { subject: `${type} ${named('id')}`, text: `${type}${why}`, path: '/console/now' }
  }
}

function registrationTold(
  data: EventData,
  carrierId: number | null,
  carrier: string | null,
  why: string,
): Pick<AlertFacts, 'subject' | 'text' | 'path'> {
  if (carrierId !== null || carrier !== null)
    return {
      subject: `carrier ${carrierId ?? carrier}`,
      text: `The registration with carrier ${cleanText(carrier ?? `${carrierId}`)} is lost${why}`,
      path: carrierId === null ? '/console/carriers' : `/console/carriers/${carrierId}`,
    }
  const [extension, domain] = [textIn(data, 'extension'), textIn(data, 'domain')]
  const path = '/console/phones'
  if (extension === null) {
    const who = `${numberIn(data, 'count') ?? 'several'} phones`
    return { subject: `phone ${who}`, text: `The registrations of ${who} are lost${why}`, path }
  }
  const who = `${extension}@${domain ?? '?'}`
  return {
    subject: `phone ${who}`,
    text: `The registration of ${cleanText(who)} is lost${why}`,
    path,
  }
}

/** Each payment is a subject of its own. */
function paymentTold(data: EventData, why: string) {
  const event = textIn(data, 'event_id')
  const id = numberIn(data, 'id') ?? event ?? '?'
  const amount = textIn(data, 'amount_exact') ?? numberIn(data, 'amount')
  const sum = amount === null ? '' : ` of ${amount} ${textIn(data, 'currency') ?? ''}`.trimEnd()
  return {
    subject: `payment ${id}`,
    text:
      `A payment${cleanText(sum)} (${cleanText(event ?? `${id}`, 100)}) needs a person` +
      (why || `: ${cleanText(textIn(data, 'detail') ?? textIn(data, 'kind') ?? '', 200)}`),
    path: '/console/payments',
  }
}

function findingTold(data: EventData, why: string) {
  const id = numberIn(data, 'finding_id') ?? numberIn(data, 'id') ?? textIn(data, 'id') ?? '?'
  const kind = textIn(data, 'kind') ?? 'finding'
  const text = textIn(data, 'what') ?? textIn(data, 'text') ?? `${kind}${why}`
  const sentence = cleanText(text).replace(/\.$/, '')
  const shown = sentence.charAt(0).toUpperCase() + sentence.slice(1)
  return { subject: `finding ${id}`, text: shown, path: '/console/now' }
}

function reasonOf(data: EventData): string {
  const reason = textIn(data, 'reason') ?? textIn(data, 'cause')
  return reason === null || reason === '' ? '' : `: ${cleanText(reason, 200)}`
}

const MAX_FIGURES = 12

/** The plain values of the event, for those who read messages by a program. */
const figuresOf = (data: EventData): Readonly<Record<string, string | number>> =>
  Object.fromEntries(
    Object.entries(data)
      .flatMap(([name, value]): [string, string | number][] => {
        if (typeof value === 'number') return [[name, value]]
        return typeof value === 'string' ? [[name, cleanText(value, 200)]] : []
      })
      .slice(0, MAX_FIGURES),
  )

const numberIn = (data: EventData, name: string): number | null => {
  const value = data[name]
  return typeof value === 'number' ? value : null
}

const textIn = (data: EventData, name: string): string | null => {
  const value = data[name]
  return typeof value === 'string' ? value : null
}

const listIn = (data: EventData, name: string): readonly unknown[] => {
  const value = data[name]
  return Array.isArray(value) ? value : []
}

/** No money is missing in a wallet. A kind of a later version is told. */
const otherPayments: readonly AlertKind[] = ['refund', 'dispute', 'subscription_ended']

/** An event that nobody can read is about what its type says. */
const isOtherPayment = (data: EventData): boolean =>
  textIn(data, 'kind') === 'unreadable_event'
    ? /refund|dispute|subscription/.test(textIn(data, 'event_kind') ?? '')
    : otherPayments.some((kind) => kind === data['kind'])

const ranks: readonly string[] = ['low', 'medium', 'high', 'critical']

/** Says how an event changes the alerts of a rule; undefined: it does not concern the rule. */
export function effectOn(
  rule: RuleInForce,
  type: string,
  facts: EventFacts,
  tenantId: number | null,
): 'opens' | 'closes' | 'happens' | undefined {
  const { opens = [], closes = [] } = kindFacts[rule.kind].events ?? {}
  const effect = opens.includes(type) ? 'opens' : closes.includes(type) ? 'closes' : undefined
  if (effect === undefined) return undefined
  // A rule closes all that it has opened, also when it has come to look elsewhere meanwhile.
  if (effect === 'closes') return effect
  if (facts.isOtherPayment) return undefined
  if (rule.tenantId !== null && rule.tenantId !== tenantId) return undefined
  if (rule.customerId !== null && rule.customerId !== facts.customerId) return undefined
  const isOtherCarrier =
    rule.carrierId !== null &&
    rule.carrierId !== facts.carrierId &&
    !(facts.carrierId === null && rule.carrier === facts.carrier && rule.tenantId === tenantId)
  if (isOtherCarrier) return undefined
  if (rule.node !== null && rule.node !== facts.node) return undefined
  const { leastSeverity } = rule
  if (leastSeverity !== null)
    if (ranks.indexOf(facts.severity ?? '') < ranks.indexOf(leastSeverity)) return undefined
  const side = rule.tenantId === null ? 'platform' : 'tenant'
  if (facts.snoozedBy.includes(side)) return undefined
  return closes.length === 0 ? 'happens' : effect
}
