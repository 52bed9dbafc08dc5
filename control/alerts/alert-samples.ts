/** Reads from the database the values of rules with a threshold. Every list is bounded. */
import { sql, type RawBuilder, type SqlBool } from 'kysely'
import { MINUTE_MS } from '../../schema/clock.ts'
import { exactSum } from '../../schema/columns.ts'
import type { AlertRuleKind } from '../../schema/contracts/alert-kinds.ts'
import { all } from '../../schema/sql/query.ts'
import type { Store } from '../../schema/storage/store.ts'
import { cleanText } from '../http/clean-text.ts'
import type { AlertFacts } from './alert-facts.ts'
import type { RuleInForce } from './alert-rule-set.ts'

export interface AlertSample extends AlertFacts {
  readonly value: number
  /** There are too few calls to judge by: what is, stays. */
  readonly isVague?: boolean
}

/** A rule with a threshold. */
export type MeasuringRule = RuleInForce & { readonly threshold: number }

export type SharedKind = Extract<
  AlertRuleKind,
  | ('asr_below' | 'mos_below' | 'spend_above')
  | ('balance_below' | 'webhook_failing' | 'replication_lag')
>

/** Subjects of one rule that are looked at. */
const MAX_SUBJECTS = 1_000
const MICROS = 1_000_000

/** `now`: milliseconds UTC. */
export const samplers: Readonly<
  Record<SharedKind, (store: Store, rule: MeasuringRule, now: number) => Promise<AlertSample[]>>
> = {
  asr_below: async (store, rule, now) => {
    const rows = await ofCalls(store, rule, now, false)
    return rows.map(({ carrier, calls, answered }) => {
      const percent = Math.round((answered / calls) * 1_000) / 10
      return {
        ...carrierFacts(carrier),
        value: percent,
        isVague: calls < rule.leastCalls,
        text:
          `Carrier ${cleanText(carrier)} answers ${percent} % of ${calls} calls in ` +
          `${minutesOf(rule)} min (least: ${rule.threshold} %)`,
        figures: { carrier, asr_percent: percent, calls, answered, threshold: rule.threshold },
      }
    })
  },
  mos_below: async (store, rule, now) => {
    const rows = await ofCalls(store, rule, now, true)
    return rows.map(({ carrier, calls, mos }) => {
      const value = Math.round((mos ?? 0) * 100) / 100
      return {
        ...carrierFacts(carrier),
        value,
        isVague: calls < rule.leastCalls,
        text:
          `${calls} calls by carrier ${cleanText(carrier)} in ${minutesOf(rule)} min have a mean ` +
          `MOS of ${value} (least: ${rule.threshold})`,
        figures: { carrier, mos: value, calls, threshold: rule.threshold },
      }
    })
  },
  spend_above: spendSamples,
  balance_below: balanceSamples,
  webhook_failing: webhookSamples,
  replication_lag: replicationSamples,
}

const minutesOf = ({ windowMs }: RuleInForce): number => Math.round(windowMs / MINUTE_MS)

const carrierFacts = (carrier: string) => ({
  subject: `carrier ${carrier}`,
  path: `/console/history?carrier=${encodeURIComponent(carrier)}`,
})

interface CarrierCalls {
  readonly carrier: string
  readonly calls: number
  readonly answered: number
  readonly mos: number | null
}

/**
 * Calls of the window by carrier; with `isRated` those whose quality is known. Nobody can mend a
 * carrier that is gone.
 */
async function ofCalls(
  store: Store,
  rule: MeasuringRule,
  now: number,
  isRated: boolean,
): Promise<readonly CarrierCalls[]> {
  const conditions = [
    sql<SqlBool>`start_stamp >= ${now - rule.windowMs}`,
    sql<SqlBool>`carrier IS NOT NULL`,
    ...callFilters(rule),
    ...(isRated ? [sql<SqlBool>`mos_score IS NOT NULL`] : []),
  ]
  const mos = isRated ? sql`avg(mos_score)` : sql`NULL`
  const query = sql<CarrierCalls>`
    SELECT carrier, count(*) AS calls, ${mos} AS mos,
      count(CASE WHEN disposition = 'ANSWERED' THEN 1 END) AS answered
    FROM cdr WHERE ${sql.join(conditions, sql` AND `)}
    GROUP BY carrier HAVING carrier IN (SELECT name FROM carrier)
    ORDER BY carrier LIMIT ${MAX_SUBJECTS}`
  return all<CarrierCalls>(store, { compile: () => query.compile(store.db) })
}

const callFilters = ({ tenantId, customerId, carrier }: RuleInForce): RawBuilder<SqlBool>[] => [
  ...(tenantId === null ? [] : [sql<SqlBool>`tenant_id = ${tenantId}`]),
  ...(customerId === null ? [] : [sql<SqlBool>`customer_id = ${customerId}`]),
  ...(carrier === null ? [] : [sql<SqlBool>`carrier = ${carrier}`]),
]

interface SpentRow {
  readonly customer_id: number
  readonly name: string
  readonly currency: string | null
  readonly spent: string
}

/** A customer of the platform may pay a tenant's calls: how much, the tenant does not see. */
async function spendSamples(store: Store, rule: MeasuringRule, now: number) {
  const conditions = [
    sql<SqlBool>`start_stamp >= ${now - rule.windowMs}`,
    sql<SqlBool>`cost_micros <> 0`,
    ...callFilters(rule),
  ]
  // Those far below the threshold are as good as absent.
  const least = Math.round(rule.threshold * 0.95 * MICROS)
  const query = sql<SpentRow>`
    SELECT spent.customer_id, customer.name, spent.currency, spent.spent FROM (
      SELECT customer_id, currency, CAST(sum(cost_micros) AS TEXT) AS spent
      FROM cdr WHERE customer_id IS NOT NULL AND ${sql.join(conditions, sql` AND `)}
      GROUP BY customer_id, currency HAVING sum(cost_micros) >= ${least}
      ORDER BY customer_id LIMIT ${MAX_SUBJECTS}
    ) AS spent JOIN customer ON customer.id = spent.customer_id
    ${rule.tenantId === null ? sql`` : sql`WHERE customer.tenant_id = ${rule.tenantId}`}`
  const rows = await all<SpentRow>(store, { compile: () => query.compile(store.db) })
  return rows.map(({ customer_id: id, name, currency, spent }): AlertSample => {
    const value = Number(spent) / MICROS
    const sum = `${value.toFixed(2)} ${currency ?? ''}`.trim()
    return {
      subject: `customer ${id} ${currency ?? ''}`.trim(),
      path: `/console/customers/${id}`,
      value,
      text:
        `Customer ${cleanText(name)} has spent ${sum} in ${minutesOf(rule)} min (limit: ` +
        `${rule.threshold})`,
      figures: { customer_id: id, customer: name, spent: value, threshold: rule.threshold },
    }
  })
}

interface BalanceRow {
  readonly customer_id: number
  readonly name: string
  readonly currency: string
  readonly balance: string
}

async function balanceSamples(store: Store, rule: MeasuringRule): Promise<AlertSample[]> {
  const most = Math.round((rule.threshold + Math.abs(rule.threshold) * 0.05) * MICROS)
  const query = store.db
    .selectFrom('wallet')
    .innerJoin('customer', 'customer.id', 'wallet.customer_id')
    .select(['customer_id', 'name', 'wallet.currency'])
    .select(exactSum('balance_micros').as('balance'))
    .where(sql<SqlBool>`balance_micros < ${most}`)
    .$if(rule.tenantId !== null, (some) => some.where('tenant_id', '=', rule.tenantId))
    .$if(rule.customerId !== null, (some) => some.where('customer_id', '=', rule.customerId ?? 0))
    .orderBy('wallet.id')
    .limit(MAX_SUBJECTS)
  const rows: readonly BalanceRow[] = await all(store, query)
  return rows.map(({ customer_id: id, name, currency, balance }) => {
    const value = Number(balance) / MICROS
    return {
      subject: `customer ${id} ${currency}`,
      path: `/console/customers/${id}`,
      value,
      text:
        `Customer ${cleanText(name)} has ${value.toFixed(2)} ${currency} left (limit: ` +
        `${rule.threshold})`,
      figures: { customer_id: id, customer: name, balance: value, threshold: rule.threshold },
    }
  })
}

/** An endpoint that was switched off has failed as often as can be. */
const SWITCHED_OFF = 10

async function webhookSamples(store: Store, rule: MeasuringRule): Promise<AlertSample[]> {
  const { db } = store
  const waiting = db
    .selectFrom('webhook_endpoint')
    .innerJoin('webhook_delivery', 'endpoint_id', 'webhook_endpoint.id')
    .select(['webhook_endpoint.id', 'url'])
    .select((row) => row.fn.max('attempts').as('attempts'))
    .where('state', '=', 'pending')
    .where('attempts', '>=', rule.threshold)
    .where('removed_at', 'is', null)
    .$if(rule.tenantId !== null, (some) => some.where('tenant_id', '=', rule.tenantId))
    .groupBy(['webhook_endpoint.id', 'url'])
    .limit(MAX_SUBJECTS)
  const off = db
    .selectFrom('webhook_endpoint')
    .select(['id', 'url', 'disabled_reason'])
    .where('is_active', '=', 0)
    .where('disabled_reason', 'is not', null)
    .where('removed_at', 'is', null)
    .$if(rule.tenantId !== null, (some) => some.where('tenant_id', '=', rule.tenantId))
    .limit(MAX_SUBJECTS)
  const facts = (id: number, url: string, value: number, text: string): AlertSample => ({
    subject: `webhook ${id}`,
    path: `/console/webhooks/${id}`,
    value,
    text: `Webhook ${cleanText(url, 200)} ${text}`,
    figures: { endpoint_id: id, attempts: value },
  })
  const known = new Map<number, AlertSample>()
  for (const { id, url, attempts } of await all(store, waiting))
    known.set(id, facts(id, url, attempts, `has failed ${String(attempts)} times`))
  for (const { id, url, disabled_reason: why } of await all(store, off))
    known.set(id, facts(id, url, SWITCHED_OFF, `was switched off: ${why ?? ''}`))
  return [...known.values()]
}

interface StandbyRow {
  readonly name: string
  readonly address: string | null
  readonly lag: number | null
}

async function replicationSamples(store: Store, rule: MeasuringRule): Promise<AlertSample[]> {
  if (!store.statements.isShared) return []
  const query = sql<StandbyRow>`
    SELECT application_name AS name, host(client_addr) AS address,
      CAST(extract(epoch FROM replay_lag) AS double precision) AS lag
    FROM pg_stat_replication ORDER BY pid LIMIT ${MAX_SUBJECTS}`
  const rows = await all<StandbyRow>(store, { compile: () => query.compile(store.db) })
  return rows.map(({ name, address, lag }) => {
    const who = cleanText(`${name}${address === null ? '' : ` (${address})`}`, 100)
    const seconds = Math.round((lag ?? 0) * 10) / 10
    return {
      subject: `standby ${who}`,
      path: '/console/settings',
      value: seconds,
      text: `Standby ${who} is ${seconds} s behind (limit: ${rule.threshold} s)`,
      figures: { standby: who, lag_seconds: seconds, threshold: rule.threshold },
    }
  })
}
