/** Payments that need a person: they are not credited, or were taken back. They stay until their alert is resolved. */
import { moneyToNumber } from '../../../schema/columns.ts'
import { all } from '../../../schema/sql/query.ts'
import type { AlertKind } from '../../../schema/tables/money.ts'
import { exactMoneyText, quoted } from '../../http/clean-text.ts'
import type { AnomalyDeps, Finding, Span } from './finding.ts'

/** The newest; `GET /billing/alerts` has all. */
const MAX_ALERTS = 20

/** Alerts are the platform's: a payment without a customer has no tenant. */
export async function findPayments(
  { store, tenantId, ocs }: AnomalyDeps,
  { before }: Span,
): Promise<readonly Finding[]> {
  if (tenantId !== null || ocs === undefined) return []
  const query = store.db
    .selectFrom('billing_alert')
    .selectAll()
    .where('resolved_at', 'is', null)
    .where('created_at', '<', before)
    .orderBy('id', 'desc')
    .limit(MAX_ALERTS)
  return (await all(store, query)).map(findingOf)
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
  'A person assigns it to its customer on the screen Payments, or by POST /billing/alerts/{id}/assign. An event that says whose it is ends it, too.'

const uncredited: Meaning = { severity: 'high', what: 'is not credited', advice: assignIt }

const takenBack =
  'The wallet is unchanged: a person adjusts it where that is due, and resolves the alert on the screen Payments.'

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
  refund: { severity: 'medium', what: 'is refunded', advice: takenBack },
  dispute: { severity: 'medium', what: 'is disputed', advice: takenBack },
  subscription_ended: {
    severity: 'low',
    what: 'ends',
    advice:
      'No further payment of the subscription comes. Tell the customer, or resolve the alert.',
  },
}
