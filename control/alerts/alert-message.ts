/** A message about alerts, as it is stored, and as a person reads it. Pure. */
import { timeToText } from '../../schema/columns.ts'
import type { AlertSeverity } from '../../schema/contracts/alert-kinds.ts'
import { cleanText } from '../http/clean-text.ts'

export interface AlertItem {
  /** The same in each message about the alert. */
  readonly key: string
  readonly kind: 'opened' | 'recovered'
  readonly text: string
  readonly figures: Readonly<Record<string, string | number>>
  readonly path: string
  readonly severity: AlertSeverity
  /** Milliseconds UTC. */
  readonly since: number
  readonly at: number
  /** A sentence without a full stop: why it is over, where that is not plain. */
  readonly ended?: string
}

export interface AlertMessage {
  /** The name of the rule; null: a test. */
  readonly rule: string | null
  readonly channel: string
  readonly severity: AlertSeverity
  readonly items: readonly AlertItem[]
}

export const testMessage = (channel: string, at: number): AlertMessage => ({
  rule: null,
  channel,
  severity: 'info',
  items: [
    {
      key: 'test',
      kind: 'opened',
      text: `This is a test of the alert channel ${cleanText(channel, 100)}: it works`,
      figures: {},
      path: '/console/alert-channels',
      severity: 'info',
      since: at,
      at,
    },
  ],
})

const MAX_SUBJECT = 150

export function subjectOf({ rule, severity, items }: AlertMessage): string {
  const opened = items.filter(({ kind }) => kind === 'opened')
  const recovered = items.length - opened.length
  const [only] = items
  const what =
    items.length === 1 && only !== undefined
      ? `${only.kind === 'recovered' ? 'Over: ' : ''}${only.text}`
      : [
          ...(opened.length > 0 ? [`${opened.length} alerts`] : []),
          ...(recovered > 0 ? [`${recovered} over`] : []),
        ].join(', ')
  const isOver = opened.length === 0
  const mark = rule === null ? 'test' : isOver ? 'over' : severity
  return cleanText(`[${mark}] ${rule === null ? '' : `${rule}: `}${what}`, MAX_SUBJECT)
}

/** @param publicUrl where people reach the console; undefined: there are no links. */
export function textOf(message: AlertMessage, publicUrl: string | undefined): string {
  const link = (path: string) => (publicUrl === undefined ? '' : `\n  ${publicUrl}${path}`)
  const lines = message.items.map((item) => {
    const time =
      item.kind === 'recovered'
        ? `\n  From ${shownTime(item.since)} until ${shownTime(item.at)} (${lasted(item)}).` +
          (item.ended === undefined ? '' : ` ${item.ended}.`)
        : `\n  Since ${shownTime(item.since)}.`
    const mark = item.kind === 'recovered' ? 'Over: ' : ''
    return `${mark}${item.text}.${time}${link(item.path)}`
  })
  const foot =
    message.rule === null
      ? 'Sent by Tollgate.'
      : `Sent by the alert rule ${cleanText(message.rule, 100)} of Tollgate.` +
        (publicUrl === undefined ? '' : ` ${publicUrl}/console/alerts`)
  return `${lines.join('\n\n')}\n\n${foot}\n`
}

/** `2026-11-29 15:04 UTC` */
const shownTime = (at: number): string => `${timeToText(at).slice(0, 16).replace('T', ' ')} UTC`

function lasted({ since, at }: AlertItem): string {
  const minutes = Math.max(0, Math.round((at - since) / 60_000))
  if (minutes < 1) return 'less than a minute'
  if (minutes < 120) return `${minutes} min`
  return `${Math.round(minutes / 6) / 10} h`
}
