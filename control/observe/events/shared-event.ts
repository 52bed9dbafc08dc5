/** Events between nodes: as the API shows them, with what it takes to pass them on. */
import { z } from 'zod'
import type { EngineEvent, EventsPort } from '../../../schema/contracts/engine-events.ts'
import type { PriceSource } from '../../calls/active-call-view.ts'
import { eventView, isVisible, sequenceOf } from './event-view.ts'

const sequence = z.int().min(0)

export const sharedEvent = z.strictObject({
  sequence,
  /** Milliseconds UTC. */
  at: z.number(),
  tenantId: z.int().nullable(),
  type: z.string().regex(/^[a-z._]{1,40}$/),
  data: z.record(z.string(), z.unknown()),
})

/** An event of a node. Only the node of a call knows its price, so the node of the event makes `data`. */
export type SharedEvent = z.output<typeof sharedEvent>

/** The first line of a stream: its log, and behind which event it goes on. */
export const feedHead = z.strictObject({ epoch: z.string().max(12), after: sequence })

/** The kept events of a log. */
export const logPart = z.strictObject({
  epoch: z.string().max(12),
  last: sequence,
  /** Nothing between the position and the first of them is missing. */
  isComplete: z.boolean(),
  events: z.array(sharedEvent).max(50_000),
})

export type LogPart = z.output<typeof logPart>

export const shared = (event: EngineEvent, ocs: PriceSource | undefined): SharedEvent => ({
  sequence: event.sequence,
  at: event.at,
  tenantId: event.tenantId,
  type: event.type,
  data: eventView(event, ocs),
})

/** What a tenant (null: all of them) may see of a log behind `id`; undefined: everything that is kept. */
export function partOf(
  events: EventsPort,
  {
    after: id,
    tenantId,
  }: { readonly after?: string | undefined; readonly tenantId: number | null },
  ocs: PriceSource | undefined,
): LogPart {
  const known = id === undefined ? undefined : sequenceOf(events, id)
  const visible = events.after(known ?? 0).filter((event) => isVisible(event, tenantId))
  return {
    epoch: events.epoch.toString(36),
    last: events.last,
    isComplete: known !== undefined && known >= events.forgotten(tenantId),
    events: visible.map((event) => shared(event, ocs)),
  }
}
