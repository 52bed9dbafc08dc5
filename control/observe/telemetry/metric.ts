/** One metric of the Prometheus registry, read from the telemetry view. */
import type { TelemetryView } from './telemetry-view.ts'

export type Labels = Readonly<Record<string, string | number>>

interface Sample {
  readonly value: number
  readonly labels?: Labels
  /** `_bucket`, `_sum` or `_count` of a histogram. */
  readonly suffix?: string
}

export interface Metric {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram' | 'summary'
  readonly help: string
  readonly read: (view: TelemetryView) => readonly Sample[]
}

export const one = (
  type: 'counter' | 'gauge',
  name: string,
  help: string,
  read: (view: TelemetryView) => number | null | undefined,
): Metric => ({
  name,
  type,
  help,
  read: (view) => {
    const value = read(view)
    return value === null || value === undefined ? [] : [{ value }]
  },
})

export const many = (
  type: Metric['type'],
  name: string,
  help: string,
  read: Metric['read'],
): Metric => ({
  name,
  type,
  help,
  read,
})
