/** How well the carrier of a route does, as this instance has measured it. */
import type { OutboundRoute } from '../api/views.ts'
import { textColumn } from '../parts/columns.tsx'
import { clockText, type Tone } from '../parts/format.ts'

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
  return state === 'trial' ? `on trial: ${words}` : words
}

const tones: Readonly<Record<NonNullable<OutboundRoute['quality_status']>['state'], Tone>> = {
  good: 'good',
  trial: 'warn',
  low: 'bad',
}

export const qualityColumn = textColumn<OutboundRoute>('quality', 'Quality', qualityText, {
  tone: ({ quality_status: status }) => (status === null ? 'plain' : tones[status.state]),
})
