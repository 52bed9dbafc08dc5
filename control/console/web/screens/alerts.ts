/** What needs the attention of an operator, by the telemetry. */
import type { Telemetry } from '../api/views.ts'
import { figureText } from '../parts/format.ts'

/** Beyond it, calls are set up noticeably later. */
const LAG_ALERT_MS = 100

export function alertsOf(telemetry: Telemetry): string[] {
  const { nodes, relays, billing, event_loop: loop, this_node: node } = telemetry
  const silent = nodes.filter(({ state }) => state === 'probing')
  const lost = relays.filter(({ alive }) => !alive)
  return [
    ...(node.condition === 'fenced' ? [`Another process has the name of ${node.name}`] : []),
    ...(node.condition === 'unheard' ? [`The database server does not answer ${node.name}`] : []),
    ...(silent.length > 0 ? [`${silent.length} nodes do not answer`] : []),
    ...(lost.length > 0 ? [`${lost.length} media relays do not answer`] : []),
    ...((billing?.commit_failures ?? 0) > 0 ? ['Records cannot be stored'] : []),
    ...(loop.lag_p99_ms > LAG_ALERT_MS
      ? [`The event loop is ${figureText(loop.lag_p99_ms, 0)} ms late`]
      : []),
  ]
}
