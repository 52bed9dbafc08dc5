/** Answers what other nodes ask for themselves. Stands in front of every route. */
import type { MiddlewareHandler } from 'hono'
import type { EnginePort } from '../../schema/contracts/engine-port.ts'
import type { EventFeed } from '../events/event-feed.ts'
import { partOf } from '../events/shared-event.ts'
import type { ControlEnv } from '../http/control-env.ts'
import type { PriceSource } from '../pbx/calls/active-call-view.ts'
import { type Counts, question } from './questions.ts'

interface Answering {
  readonly engine: Pick<EnginePort, 'calls' | 'dispatcher' | 'events'>
  readonly ocs: PriceSource | undefined
  readonly feed: EventFeed
}

export const answerQuestions =
  ({ engine, ocs, feed }: Answering): MiddlewareHandler<ControlEnv> =>
  (c, next) => {
    const asked = question.safeParse(c.get('nodeRequest')?.question)
    if (!asked.success) return next()
    switch (asked.data.kind) {
      case 'locate': {
        const isHere = engine.calls.find(asked.data.callUuid) !== undefined
        return Promise.resolve(c.body(null, isHere ? 200 : 404))
      }
      case 'counts':
        return Promise.resolve(c.json(countsIn(engine, asked.data.carriers)))
      case 'events':
        return Promise.resolve(c.json(partOf(engine.events, asked.data, ocs)))
      case 'follow': {
        const stream = feed.open(asked.data.after)
        const answer = stream === undefined ? c.body(null, 503) : new Response(stream)
        return Promise.resolve(answer)
      }
    }
  }

function countsIn({ calls, dispatcher }: Answering['engine'], carriers: readonly number[]): Counts {
  const nodes = dispatcher.status().flatMap((set) => set.nodes)
  return {
    nodes: Object.fromEntries(nodes.map(({ nodeId, activeCalls }) => [nodeId, activeCalls])),
    carriers: Object.fromEntries(carriers.map((id) => [id, calls.countByCarrier(id)])),
  }
}
