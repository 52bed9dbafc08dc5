/** JSON texts for Slack, PagerDuty and webhooks. Pure. */
import { timeToText } from '../../schema/columns.ts'
import type { AlertItem, AlertMessage } from './alert-message.ts'

/** Slack cuts longer texts. */
const MAX_SLACK_TEXT = 35_000

/** A text of Slack's markup: what others have written is no markup. */
export function slackBody(subject: string, text: string, { severity }: AlertMessage): string {
  const sign = { info: ':information_source:', warning: ':warning:', critical: ':rotating_light:' }
  const shown = escaped(text).slice(0, MAX_SLACK_TEXT)
  return JSON.stringify({ text: `${sign[severity]} *${escaped(subject)}*\n${shown}` })
}

const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')

const severityOf = { info: 'info', warning: 'warning', critical: 'critical' } as const

/** PagerDuty groups by itself: a message for it has one alert, whose key ties its end to it. */
export function pagerDutyEvent(
  routingKey: string,
  { rule, items }: AlertMessage,
  publicUrl: string | undefined,
): string {
  const [item] = items
  if (item === undefined) throw new Error('a message without an alert')
  const known = { routing_key: routingKey, dedup_key: item.key }
  if (item.kind === 'recovered') return JSON.stringify({ ...known, event_action: 'resolve' })
  return JSON.stringify({
    ...known,
    event_action: 'trigger',
    payload: {
      summary: item.text.slice(0, 1_000),
      source: 'tollgate',
      severity: severityOf[item.severity],
      timestamp: timeToText(item.since),
      custom_details: { rule, ...item.figures },
    },
    client: 'Tollgate',
    ...(publicUrl !== undefined && {
      client_url: `${publicUrl}${item.path}`,
      links: [{ href: `${publicUrl}${item.path}`, text: 'Open in the console' }],
    }),
  })
}

/** The event of a webhook, as `POST /webhooks` describes events. */
export const webhookBody = (
  { rule, severity, items }: AlertMessage,
  now: number,
  publicUrl: string | undefined,
): string =>
  JSON.stringify({
    type: rule === null ? 'alert.test' : 'alert.changed',
    timestamp: timeToText(now),
    data: { rule, severity, alerts: items.map((item) => shownItem(item, publicUrl)) },
  })

const shownItem = (item: AlertItem, publicUrl: string | undefined) => ({
  key: item.key,
  state: item.kind === 'opened' ? 'open' : 'closed',
  text: item.text,
  severity: item.severity,
  since: timeToText(item.since),
  closed_at: item.kind === 'opened' ? null : timeToText(item.at),
  closed_because: item.ended ?? null,
  figures: item.figures,
  url: publicUrl === undefined ? null : `${publicUrl}${item.path}`,
})
