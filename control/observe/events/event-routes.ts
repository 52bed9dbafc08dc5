/** `GET /events`: events of calls, nodes and phones, as a stream (server-sent events) or as a JSON list. */
import { Hono, type Context } from 'hono'
import { z } from 'zod'
import { requires } from '../../auth/requires.ts'
import type { EventsPort } from '../../../schema/contracts/engine-events.ts'
import type { Platform } from '../../http/platform.ts'
import type { WithOthers } from '../../nodes/other-nodes.ts'
import { ApiError } from '../../http/api-error.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { ok } from '../../http/envelope.ts'
import { validate } from '../../http/validate.ts'
import type { EventHub } from './event-hub.ts'
import { MAX_ID_LENGTH } from './event-position.ts'
import { LISTED, listOfAll } from './events-of-all.ts'
import { eventId, eventView, isVisible, sequenceOf } from './event-view.ts'

const query = z.strictObject({
  after: z.string().max(MAX_ID_LENGTH).optional().describe('Id of the last event received.'),
})

const streamHeaders = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store',
  // Buffering proxies would delay the events.
  'X-Accel-Buffering': 'no',
}

/** Without a preference, the stream. */
const wantsStream = (accept: string): boolean =>
  accept.includes('text/event-stream') || !accept.includes('application/json')

const tooManyReaders = (of: 'credential' | 'tenant' | 'all'): ApiError =>
  new ApiError(of === 'all' ? 503 : 429, 'too_many_readers', messages[of], {
    headers: { 'Retry-After': '30' },
  })

const messages = {
  credential: 'This credential reads as many streams as it may',
  tenant: 'This tenant reads as many streams as it may',
  all: 'No further stream can be opened',
} as const

export type EventDeps = Pick<Platform, 'ocs'> &
  WithOthers & {
    readonly engine: { readonly events: EventsPort }
  }

/** Returns a check whether a request would still be admitted. */
type Revalidator = (c: Context<ControlEnv>) => () => Promise<boolean>

export function eventRoutes(
  { engine: { events }, ocs, others }: EventDeps,
  hub: EventHub,
  revalidate: Revalidator,
  onRefused: () => void,
) {
  return new Hono<ControlEnv>().get(
    '/events',
    requires('calls:read'),
    validate('query', query),
    async (c) => {
      const { tenantId, actor } = c.var.principal
      const { after } = c.req.valid('query')
      if (wantsStream(c.req.header('accept')?.toLowerCase() ?? '')) {
        const lastId = c.req.header('last-event-id') ?? after
        const stream = hub.open({ tenantId, actor }, lastId, revalidate(c))
        if (typeof stream === 'string') {
          onRefused()
          throw tooManyReaders(stream)
        }
        return c.body(stream, 200, streamHeaders)
      }
      const asked = others?.of(c)
      if (asked !== undefined)
        return ok(c, await listOfAll(asked, after, tenantId, { events, ocs }))
      const sequence = after === undefined ? undefined : sequenceOf(events, after)
      const found = events.after(sequence ?? 0).filter((event) => isVisible(event, tenantId))
      return ok(c, {
        events: found.slice(-LISTED).map((event) => ({
          id: eventId(events, event.sequence),
          type: event.type,
          data: eventView(event, ocs),
        })),
        last_event_id: eventId(events, events.last),
      })
    },
  )
}
