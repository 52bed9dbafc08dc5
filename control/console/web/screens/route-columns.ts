/** Outbound routes in tables: what they do, and how well their carriers do it. */
import type { OutboundRoute } from '../api/views.ts'
import { figureColumn, textColumn } from '../parts/columns.tsx'
import { clockText, type Tone } from '../parts/format.ts'
import type { ShownColumn } from '../parts/table.tsx'
import { visibleText } from '../parts/visible-text.ts'

export const modes = {
  static: 'to its carrier, by priority',
  lcr: 'to the cheapest carrier',
  block: 'refuse the call',
} as const

export const distributionWords = {
  weight: 'by chance, by weight',
  round_robin: 'in turn',
  percent: 'exactly by weight',
} as const

const figure = (value: number | null, unit: string): readonly string[] =>
  value === null ? [] : [`${value} ${unit}`]

function qualityText({ quality_status: status }: OutboundRoute): string | null {
  if (status === null) return null
  const { state, figures, until, fallen } = status
  const { attempts, asr, acd, pdd_ms } = state === 'low' ? (fallen?.figures ?? figures) : figures
  const shown = [
    ...figure(asr, '% answered'),
    ...figure(acd, 's a call'),
    ...figure(pdd_ms, 'ms to ring'),
  ]
  const words = shown.length === 0 ? 'no calls yet' : `${shown.join(', ')} (${attempts} calls)`
  if (state === 'low')
    return `tried last${until === null ? '' : ` until ${clockText(until)}`}: ${words}`
  if (state === 'trial') return `on trial: ${words}`
  return shown.length === 0 ? words : `good: ${words}`
}

const tones: Readonly<Record<NonNullable<OutboundRoute['quality_status']>['state'], Tone>> = {
  good: 'good',
  trial: 'warn',
  low: 'bad',
}

const onlyFor = ({ customer, tenant }: OutboundRoute): string | null => {
  if (customer !== null) return `only for ${visibleText(customer, 40)}`
  return tenant === null ? null : `tenant ${visibleText(tenant, 40)}`
}

export const routeColumns: readonly ShownColumn<OutboundRoute>[] = [
  textColumn('name', 'Name', ({ name }) => name, {
    also: ({ customer, tenant }) => `${customer ?? ''} ${tenant ?? ''}`,
    second: onlyFor,
  }),
  textColumn('prefix', 'Prefix', ({ prefix }) => prefix, {
    show: ({ prefix }) => (prefix === '' ? 'every number' : prefix),
  }),
  textColumn('carrier', 'Carrier', ({ carrier }) => carrier, {
    also: ({ mode }) => modes[mode],
    second: ({ mode }) => modes[mode],
  }),
  figureColumn('priority', 'Priority', ({ priority }) => priority),
  textColumn('quality', 'Quality', qualityText, {
    tone: ({ quality_status: status }) => (status === null ? 'plain' : tones[status.state]),
  }),
]
