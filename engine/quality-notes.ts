/** Log line, event and figures when the carrier of a route is below its floors, and after that. */
import type { RouteQualityStatus } from '../schema/contracts/route-quality.ts'
import type { Log } from '../schema/contracts/log.ts'
import type { EventLog } from './event-log.ts'
import type { QualityChange } from './routing/route-quality.ts'

/** Turns a time of the steady clock into milliseconds UTC. */
type StampOf = (time: number) => number

export function noteQuality(
  change: QualityChange,
  status: RouteQualityStatus,
  { events, log, stampOf }: { events: EventLog; log: Log; stampOf: StampOf },
): void {
  const isLow = change.kind === 'low'
  const { tenantId, route, carrier, since, until, fallen } = status
  const by = isLow ? null : change.by
  const end = until === null ? null : stampOf(until)
  const quality = { ...status, since: stampOf(since), until: end }
  const type = isLow ? 'carrier.quality_low' : 'carrier.quality_restored'
  events.add({ type, tenantId, quality, by })
  const about = { route, carrier, faults: fallen?.faults, figures: fallen?.figures, by }
  if (isLow) log('warn', 'a carrier is below the floors of its route: it is tried last', about)
  else log('info', 'a carrier is tried in its place again', about)
}
