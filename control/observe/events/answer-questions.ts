/** Answers what other nodes ask for themselves. Stands in front of every route. */
import type { MiddlewareHandler } from 'hono'
import type { z } from 'zod'
import type { ActiveCall } from '../../../schema/contracts/calls.ts'
import type { EnginePort } from '../../../schema/contracts/engine-port.ts'
import type { OcsPort } from '../../../schema/contracts/ocs.ts'
import type { EventFeed } from './event-feed.ts'
import { partOf } from './shared-event.ts'
import type { ControlEnv } from '../../http/control-env.ts'
import type { PriceSource } from '../../calls/active-call-view.ts'
import { liveCallView } from '../../nodes/live-call.ts'
import type { hangUpAnswer } from '../../calls/hangup-plan.ts'
import { type Counts, type Question, question } from '../../nodes/questions.ts'

interface Answering {
  readonly engine: Pick<EnginePort, 'calls' | 'events'>
  readonly ocs: (PriceSource & Pick<OcsPort, 'callsUnder'>) | undefined
  readonly feed: EventFeed
  readonly steadyNow: () => number
}

export const answerQuestions =
  ({ engine, ocs, feed, steadyNow }: Answering): MiddlewareHandler<ControlEnv> =>
  (c, next) => {
    const asked = question.safeParse(c.get('nodeRequest')?.question)
    if (!asked.success) return next()
    switch (asked.data.kind) {
      case 'locate': {
        const isHere = engine.calls.find(asked.data.callUuid) !== undefined
        return Promise.resolve(c.body(null, isHere ? 200 : 404))
      }
      case 'live_call': {
        const call = callOf(engine, asked.data)
        const isHere = call !== undefined
        return Promise.resolve(isHere ? c.json(liveCallView(call, steadyNow())) : c.body(null, 404))
      }
      case 'hang_up': {
        const { callUuid, cause } = asked.data
        const isHere = callOf(engine, asked.data) !== undefined
        const result = isHere ? engine.calls.hangUp(callUuid, cause) : 'not_found'
        return Promise.resolve(c.json({ result } satisfies z.output<typeof hangUpAnswer>))
      }
      case 'counts':
        return Promise.resolve(c.json(countsIn(engine, asked.data)))
      case 'guarded':
        return Promise.resolve(c.json({ calls: ocs?.callsUnder(asked.data) ?? 0 }))
      case 'events':
        return Promise.resolve(c.json(partOf(engine.events, asked.data, ocs)))
      case 'follow': {
        const stream = feed.open(asked.data.after)
        const answer = stream === undefined ? c.body(null, 503) : new Response(stream)
        return Promise.resolve(answer)
      }
    }
  }

function callOf(
  { calls }: Answering['engine'],
  { callUuid, tenantId }: { readonly callUuid: string; readonly tenantId: number | null },
): ActiveCall | undefined {
  const call = calls.find(callUuid)
  return tenantId === null || call?.tenantId === tenantId ? call : undefined
}

function countsIn(
  { calls }: Answering['engine'],
  { of, ids }: Extract<Question, { kind: 'counts' }>,
): Counts {
  const count = {
    nodes: (id: number) => calls.countByNode(id),
    carriers: (id: number) => calls.countByCarrier(id),
    agents: (id: number) => calls.countByAgent(id),
  }[of]
  return Object.fromEntries(ids.map((id) => [id, count(id)]))
}
