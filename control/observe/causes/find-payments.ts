/**
 * Payments that need a person: they are not credited, or were taken back. They stay until their
 * alert is resolved.
 */
import { moneyToNumber } from '../../../schema/columns.ts'
import { all, first } from '../../../schema/sql/query.ts'
import type { AlertKind } from '../../../schema/tables/money.ts'
import { exactMoneyText, plural, quoted } from '../../http/clean-text.ts'
import type { AnomalyDeps, Finding, Span } from './finding.ts'

/** Uncredited payments come first, then the newest of the others; the rest is one finding. */
const MAX_ALERTS = 20

/** Alerts are the platform's: a payment without a customer has no tenant. */
export async function findPayments(
  { store, tenantId, ocs }: AnomalyDeps,
  { before }: Span,
): Promise<readonly Finding[]> {
  if (tenantId !== null || ocs === undefined) return []
  const open = store.db
    .selectFrom('billing_alert')
    .where('resolved_at', 'is', null)
    .where('created_at', '<', before)
  // One after the other: a list of both would have to be sorted.
  const newest = open.selectAll().orderBy('id', 'desc')
  const uncreditedAlerts = await all(store, newest.where('kind', 'in', urgent).limit(MAX_ALERTS))
  const others = newest.where('kind', 'not in', urgent).limit(MAX_ALERTS - uncreditedAlerts.length)
  const shown =
    uncreditedAlerts.length < MAX_ALERTS
      ? [...uncreditedAlerts, ...(await all(store, others))]
      : uncreditedAlerts
  if (shown.length < MAX_ALERTS) return shown.map(findingOf)
  const ids = shown.map(({ id }) => id)
  const rest = open
    .where('id', 'not in', ids)
    .select(({ fn }) => [
      fn.countAll<number>().as('count'),
      fn.min('created_at').as('first_at'),
      fn.max('created_at').as('last_at'),
    ])
  const left = await first(store, rest)
  const isUrgent = shown.every(({ kind }) => urgent.includes(kind))
  return [...shown.map(findingOf), ...findingOfRest(left, isUrgent)]
}

interface LeftOut {
  readonly count: number
  readonly first_at: number | null
  readonly last_at: number | null
}

/** @param isUrgent urgent ones may be among them. */
function findingOfRest(left: LeftOut | undefined, isUrgent: boolean): readonly Finding[] {
  if (left === undefined || left.first_at === null || left.last_at === null) return []
  const { count, first_at: firstAt, last_at: lastAt } = left
  return [
    {
      kind: 'payment',
      severity: isUrgent ? 'high' : 'low',
      subject: 'payment alerts',
      what: `${plural(count, 'more payment alert')} ${count === 1 ? 'is' : 'are'} open.`,
      firstAt,
      lastAt,
      figures: { alerts: count },
      evidence: [],
      advice: 'The screen Payments and GET /billing/alerts have all: resolve what is settled.',
      next: { tool: 'list_customers', arguments: {} },
      firstStep: null,
    },
  ]
}

interface OpenAlert {
  readonly id: number
  readonly kind: AlertKind
  readonly event_id: string
  readonly customer_id: number | null
  readonly reference: string | null
  readonly amount_micros: number | null
  readonly currency: string | null
  readonly detail: string
  readonly created_at: number
}

function findingOf(alert: OpenAlert): Finding {
  const { id, customer_id: customerId, reference, amount_micros: micros, detail } = alert
  const { severity, what, advice } = meanings[alert.kind]
  const name = quoted(reference ?? alert.event_id)
  const amount = micros === null ? '' : ` of ${exactMoneyText(micros, alert.currency)}`
  const whose = customerId === null ? '' : ` (customer ${customerId})`
  return {
    kind: 'payment',
    severity,
    subject: `payment alert ${id}`,
    what: `payment ${name}${amount}${whose} ${what}: ${quoted(detail)}.`,
    firstAt: alert.created_at,
    lastAt: alert.created_at,
    figures: { alert: id, ...(micros !== null && { amount: moneyToNumber(micros) }) },
    evidence: reference === null ? [] : [reference],
    advice,
    next:
      customerId === null
        ? { tool: 'list_customers', arguments: {} }
        : { tool: 'get_ledger', arguments: { customer: customerId } },
    firstStep: null,
  }
}

interface Meaning {
  readonly severity: Finding['severity']
  readonly what: string
  readonly advice: string
}

const assignIt =
  'A person assigns it to its customer on the screen Payments, or by POST ' +
  '/billing/alerts/{id}/assign. An event that says whose it is ends it, too.'

const uncredited: Meaning = { severity: 'high', what: 'is not credited', advice: assignIt }

const takenBack =
  'The wallet is unchanged: a person adjusts it where that is due, and resolves the alert ' +
  'on the screen Payments.'

const meanings: Readonly<Record<AlertKind, Meaning>> = {
  unknown_customer: uncredited,
  currency_mismatch: uncredited,
  balance_out_of_range: uncredited,
  resolved_before: uncredited,
  unreadable_event: {
    severity: 'high',
    what: 'may not be credited: its event cannot be read',
    advice: 'Look the event up at the payment provider, and adjust the wallet if it was a payment.',
  },
  amount_mismatch: {
    severity: 'medium',
    what: 'is credited with another amount than an event says',
    advice: 'Compare it with the payment provider. The first event counts; adjust the difference.',
  },
  not_arrived: {
    severity: 'medium',
    what: 'waits for its money',
    advice:
      'Look it up at the payment provider, and ask the customer. When the money arrives, it is ' +
      'credited, and the alert ends.',
  },
  refund: { severity: 'medium', what: 'is refunded', advice: takenBack },
  dispute: { severity: 'medium', what: 'is disputed', advice: takenBack },
  subscription_ended: {
    severity: 'low',
    what: 'ends',
    advice:
      'No further payment of the subscription comes. Tell the customer, or resolve the alert.',
  },
}

/** Money that came in and is in no wallet. */
const urgent = (Object.keys(meanings) as AlertKind[]).filter(
  (kind) => meanings[kind].severity === 'high',
)
