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
      ...['node', 'least_severity'],
    ],
    labels: {
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
