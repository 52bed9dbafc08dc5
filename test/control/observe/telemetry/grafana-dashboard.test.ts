import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { metrics } from '../../../../control/observe/telemetry/metrics.ts'
import { Guard } from '../../../../engine/guard/guard.ts'

const dashboard = readFileSync('control/grafana-dashboard.json', 'utf8')

/** What the engine's guard counts arrives under its own names. */
function guardMetrics(): string[] {
  const guard = new Guard({ now: () => 0, isExempt: () => false, log: () => undefined })
  return Object.keys(guard.telemetry()).map((name) => `tollgate_${name}`)
}

test('every metric that the Grafana dashboard names exists', () => {
  const known = new Set(
    metrics.flatMap(({ name, type }) =>
      type === 'histogram' ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  )
  const named = dashboard.match(/\b(?:tollgate|process)_\w+/g) ?? []
  expect(named.length).toBeGreaterThan(25)
  const exists = new Set([...known, ...guardMetrics()])
  expect(named.filter((name) => !exists.has(name))).toEqual([])
})
