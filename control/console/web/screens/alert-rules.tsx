/** Alert rules: of what people are told, and by which channels. */
import type { AlertRule } from '../api/views.ts'
import { tenantLine, textColumn } from '../parts/columns.tsx'
import { ResourceScreen, type ScreenNoun } from '../parts/resource-screen.tsx'
import { alertKindWords } from './alert-words.ts'

const limitOf = ({ threshold }: AlertRule): string | null =>
  threshold === null ? null : `limit ${threshold}`

const noun: ScreenNoun<AlertRule> = {
  one: 'alert rule',
  many: 'Alert rules',
  scope: 'webhooks',
  about: 'An alert rule says of what people are told, by which channels, and when not.',
  effect: 'Its open alerts end, and nobody is told of such things any more.',
  nameOf: ({ name }) => name,
  columns: [
    textColumn('name', 'Name', ({ name }) => name, {
      also: ({ tenant }) => tenant,
      second: (each) => tenantLine(each),
    }),
    textColumn('on', 'Looks at', ({ on }) => alertKindWords[on], { second: limitOf }),
    textColumn('severity', 'Severity', ({ severity }) => severity),
    textColumn('channels', 'Told by', ({ channels }) => channels.join(', '), { max: 80 }),
    textColumn('state', 'State', ({ is_enabled }) => (is_enabled ? 'on' : 'off'), {
      tone: ({ is_enabled }) => (is_enabled ? 'good' : 'plain'),
    }),
  ],
  form: {
    path: '/alert-rules',
    names: ['name', 'on', 'threshold', 'severity', 'channels', 'tenant', 'is_enabled'],
    more: [
      ...['window_seconds', 'least_calls', 'for_seconds', 'group_seconds', 'customer', 'carrier'],
      ...['node', 'least_severity', 'quiet_hours.from', 'quiet_hours.to', 'quiet_hours.time_zone'],
      'quiet_hours.holds_critical',
    ],
    whole: ['quiet_hours'],
    generated: ['quiet_hours.from', 'quiet_hours.to', 'quiet_hours.time_zone'],
    labels: {
      'quiet_hours.from': 'Quiet from',
      'quiet_hours.to': 'Quiet until',
      'quiet_hours.time_zone': 'Time zone of the quiet hours',
      'quiet_hours.holds_critical': 'Critical alerts wait, too',
      on: 'Looks at',
      threshold: 'Limit',
      window_seconds: 'Seconds of calls that are looked at',
      least_calls: 'Calls, at least',
      for_seconds: 'Seconds that it has to last',
      group_seconds: 'Seconds that are told together',
      least_severity: 'Findings of at least',
      is_enabled: 'In use',
    },
    hints: {
      'quiet_hours.from': 'Such as 22:00. Empty: there are none.',
      'quiet_hours.to': 'Before “from”: on the next day.',
      'quiet_hours.time_zone': 'Such as Europe/Berlin.',
      'quiet_hours.holds_critical': '',
      on: '',
      threshold: 'Percent, MOS, an amount, days, seconds or attempts. Empty for events.',
      channels: 'One name a line.',
      window_seconds: '',
      least_calls: '',
      for_seconds: '',
      group_seconds: '',
      customer: '',
      carrier: '',
      least_severity: '',
      tenant: 'None: it sees all tenants.',
      is_enabled: '',
    },
    words: { on: alertKindWords },
  },
}

export const AlertRulesScreen = () => <ResourceScreen noun={noun} />
