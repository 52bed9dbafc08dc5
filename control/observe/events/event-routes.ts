/**
 * `GET /events`: events of calls, nodes and phones, as a stream (server-sent events) or as a JSON
 * list.
 */
import { type Context, Hono, type MiddlewareHandler } from 'hono'
import { z } from 'zod'
import type { ActiveCall } from '../../../schema/contracts/calls.ts'
import type { EnginePort, EventsPort } from '../../../schema/contracts/engine.ts'
import type { OcsPort } from '../../../schema/contracts/charging.ts'
import { requires } from '../../auth/requires.ts'
import type { PriceSource } from '../../calls/active-call-view.ts'
import type { hangUpAnswer } from '../../calls/hangup-plan.ts'
import { ApiError } from '../../http/api-error.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import { ok } from '../../http/envelope.ts'
import type { Platform } from '../../http/platform.ts'
import { validate, describeRoute } from '../../http/validate.ts'
import { liveCallView } from '../../instances/live-call.ts'
import { bodyOf } from '../../instances/instance-client.ts'
import type { PeerRequests, WithOthers } from '../../instances/other-instances.ts'
import { type Counts, type Question, question } from '../../instances/questions.ts'
import { type EventFeed, ownPosition } from './event-feed.ts'
import type { EventHub } from './event-hub.ts'
import {
  eventId,
  dataFor,
  eventViewFor,
  isVisible,
  type LogPart,
  logPart,
  MAX_ID_LENGTH,
  ONLY_INSTANCE,
  parsePosition,
  partOf,
  positionText,
  sequenceOf,
} from './event-view.ts'
import { data, either, text } from '../../http/operation.ts'
import { exampleTime, moment } from '../../http/view-fields.ts'
import { exampleCallUuid } from '../../calls/active-call-view.ts'

const eventSchema = z
  .strictObject({
    id: z.string(),
    type: z.enum([
      'call.started',
      'call.ringing',
      'call.answered',
      'call.ended',
      'call.transferring',
      'call.transferred',
      'call.transfer_failed',
      'recording.started',
      'recording.stopped',
      'recording.ready',
      'recording.failed',
      'node.down',
      'node.up',
      'carrier.quality_low',
      'carrier.quality_restored',
      'registration',
      'node.lost',
      'node.recovered',
      'node.fenced',
      'relay.down',
      'relay.up',
      'relay.restarted',
      'storage.failed',
      'storage.recovered',
      'proposal.created',
      'proposal.decided',
      'payment.alert',
    ]),
    data: z.looseObject({ at: moment }),
  })
  .meta({ id: 'Event' })

const ringing = { at: exampleTime, call_uuid: exampleCallUuid, caller_id_number: '4930100' }

const query = z.strictObject({
  after: z.string().max(MAX_ID_LENGTH).optional().describe('Id of the last event received.'),
})

const streamHeaders = {
  'Content-Type': 'text/event-stream',
  'Cache-Control': 'no-store',
  // Buffering proxies would delay the events.
  'X-Accel-Buffering': 'no',
}

/** A client without a preference gets the stream. */
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
    describeRoute({
      id: 'watchEvents',
      tag: 'Calls',
      instances: 'all',
      summary:
        'Stream events of calls, nodes and phones (server-sent events), or list them as JSON',
      answer: either(
        data(z.strictObject({ events: z.array(eventSchema), last_event_id: z.string() }), {
          events: [{ id: 'mk1x2y3z-41', type: 'call.ringing', data: ringing }],
          last_event_id: 'mk1x2y3z-41',
        }),
        text(
          'text/event-stream',
          `id: mk1x2y3z-41\nevent: call.ringing\ndata: ${JSON.stringify(ringing)}\n\n`,
        ),
      ),
      refusals: [503],
    }),
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
      const peers = others?.of(c)
      if (peers !== undefined)
        return ok(c, await listOfAll(peers, after, tenantId, { events, ocs }))
      const sequence = after === undefined ? undefined : sequenceOf(events, after)
      const found = events.after(sequence ?? 0).filter((event) => isVisible(event, tenantId))
      return ok(c, {
        events: found.slice(-LISTED).map((event) => ({
          id: eventId(events, event.sequence),
          type: event.type,
          data: eventViewFor(event, tenantId, ocs),
        })),
        last_event_id: eventId(events, events.last),
      })
    },
  )
}

/** Maximum length of the list; the newest events. */
const LISTED = 1_000

/**
 * The events after `after`; all stored events of instances that it does not name. Oldest first by
 * the clocks of the instances.
 */
async function listOfAll(
  peers: PeerRequests,
  after: string | undefined,
  tenantId: number | null,
  { events, ocs }: { readonly events: EventsPort; readonly ocs: PriceSource | undefined },
) {
  const position = after === undefined ? new Map<string, string>() : parsePosition(after)
  const answers = await peers.question((peer) => {
    const known = position.get(peer.name)
    return { kind: 'events', tenantId, ...(known !== undefined && { after: known }) }
  })
  const own = partOf(events, { after: ownPosition(position, peers.self), tenantId }, ocs)
  const parts: (readonly [string, LogPart])[] = [[peers.self, own]]
  for (const answer of answers) {
    const part = bodyOf(answer, logPart)
    if (part !== undefined) parts.push([answer.peer.name, part])
  }
  const found = parts.flatMap(([name, part]) => part.events.map((event) => ({ name, ...event })))
  const idOf = new Map(parts.map(([name, { epoch }]) => [name, (n: number) => `${epoch}-${n}`]))
  const reached = new Map<string, string>()
  for (const [name, { events: stored, last, epoch }] of parts)
    reached.set(name, `${epoch}-${(stored[0]?.sequence ?? last + 1) - 1}`)
  const listed = found
    .toSorted((a, b) => a.at - b.at)
    .map(({ name, sequence, type, ...event }) => {
      reached.set(name, idOf.get(name)?.(sequence) ?? '')
      return { id: positionText(reached), type, data: dataFor(event, tenantId) }
    })
    .slice(-LISTED)
  for (const [name, { last }] of parts) reached.set(name, idOf.get(name)?.(last) ?? '')
  // The reader's position for an instance that did not answer stays where it was.
  const unreachable = [...position].filter(([name]) => name !== ONLY_INSTANCE && !reached.has(name))
  return { events: listed, last_event_id: positionText(new Map([...unreachable, ...reached])) }
}

/** Answers what other instances ask for themselves. Stands in front of every route. */
interface QuestionDeps {
  readonly engine: Pick<EnginePort, 'calls' | 'events'>
  readonly ocs: (PriceSource & Pick<OcsPort, 'callsUnder'>) | undefined
  readonly feed: EventFeed
  readonly steadyNow: () => number
}

export const answerQuestions =
  ({ engine, ocs, feed, steadyNow }: QuestionDeps): MiddlewareHandler<ControlEnv> =>
  (c, next) => {
    const parsed = question.safeParse(c.get('instanceRequest')?.question)
    if (!parsed.success) return next()
    switch (parsed.data.kind) {
      case 'locate': {
        const isHere = engine.calls.find(parsed.data.callUuid) !== undefined
        return Promise.resolve(c.body(null, isHere ? 200 : 404))
      }
      case 'live_call': {
        const call = callOf(engine, parsed.data)
        const isHere = call !== undefined
        return Promise.resolve(isHere ? c.json(liveCallView(call, steadyNow())) : c.body(null, 404))
      }
      case 'hang_up': {
        const { callUuid, cause } = parsed.data
        const isHere = callOf(engine, parsed.data) !== undefined
        const result = isHere ? engine.calls.hangUp(callUuid, cause) : 'not_found'
        return Promise.resolve(c.json({ result } satisfies z.output<typeof hangUpAnswer>))
      }
      case 'counts':
        return Promise.resolve(c.json(countsIn(engine, parsed.data)))
      case 'guarded':
        return Promise.resolve(c.json({ calls: ocs?.callsUnder(parsed.data) ?? 0 }))
      case 'events':
        return Promise.resolve(c.json(partOf(engine.events, parsed.data, ocs)))
      case 'follow': {
        const stream = feed.open(parsed.data.after)
        const answer = stream === undefined ? c.body(null, 503) : new Response(stream)
        return Promise.resolve(answer)
      }
    }
  }

function callOf(
  { calls }: QuestionDeps['engine'],
  { callUuid, tenantId }: { readonly callUuid: string; readonly tenantId: number | null },
): ActiveCall | undefined {
  const call = calls.find(callUuid)
  return tenantId === null || call?.tenantId === tenantId ? call : undefined
}

function countsIn(
  { calls }: QuestionDeps['engine'],
  { of, ids }: Extract<Question, { kind: 'counts' }>,
): Counts {
  const count = {
    nodes: (id: number) => calls.countByNode(id),
    carriers: (id: number) => calls.countByCarrier(id),
    agents: (id: number) => calls.countByAgent(id),
  }[of]
  return Object.fromEntries(ids.map((id) => [id, count(id)]))
}
