/** Charging: verdicts, money, and what waits to be stored. */
import { type Metric, many, one } from './metric.ts'

export const billingMetrics: readonly Metric[] = [
  many(
    'counter',
    'tollgate_billing_authorizations_total',
    'Charging verdicts: granted, the denial code, or the guard that has refused a call that could not be decided.',
    (view) =>
      Object.entries(view.billing?.verdicts ?? {}).map(([verdict, value]) => ({
        value,
        labels: { verdict },
      })),
  ),
  one(
    'gauge',
    'tollgate_billing_open_calls',
    'Calls with a reservation or a pending debit.',
    (view) => view.billing?.open_calls,
  ),
  one('gauge', 'tollgate_billing_reserved', 'Held for live calls, all currencies.', (view) =>
    view.billing === null ? null : Number(view.billing.reserved),
  ),
  many('counter', 'tollgate_billing_entries_total', 'Ledger entries by kind.', (view) =>
    (view.billing?.moved ?? []).map(({ kind, currency, count }) => ({
      value: count,
      labels: { kind, currency },
    })),
  ),
  many('counter', 'tollgate_billing_amount_total', 'Money moved by kind, absolute.', (view) =>
    (view.billing?.moved ?? []).map(({ kind, currency, amount }) => ({
      value: Number(amount),
      labels: { kind, currency },
    })),
  ),
  one(
    'gauge',
    'tollgate_billing_waiting_writes',
    'Records waiting for the next group commit.',
    (view) => view.billing?.waiting_writes,
  ),
  one(
    'counter',
    'tollgate_billing_commits_total',
    'Group commits.',
    (view) => view.billing?.commits_total,
  ),
  one(
    'gauge',
    'tollgate_billing_commit_failures',
    'Consecutive failed group commits.',
    (view) => view.billing?.commit_failures,
  ),
  one(
    'counter',
    'tollgate_billing_lost_events_total',
    'Webhook events of calls that could not be stored.',
    (view) => view.billing?.lost_events_total,
  ),
  one(
    'gauge',
    'tollgate_outbox_call_reports',
    'Call records waiting for the external OCS.',
    (view) => view.outbox.call_reports,
  ),
  one(
    'gauge',
    'tollgate_outbox_webhook_deliveries',
    'Waiting webhook deliveries, counted up to 10,000.',
    (view) => view.outbox.webhook_deliveries,
  ),
  one(
    'gauge',
    'tollgate_outbox_webhook_oldest_seconds',
    'Age of the oldest waiting webhook delivery; 0 when none is waiting.',
    (view) => view.outbox.webhook_oldest_seconds ?? 0,
  ),
]
