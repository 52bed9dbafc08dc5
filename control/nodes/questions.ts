/** What nodes ask each other for themselves, without a caller: no client can ask it, whatever it sends. */
import type { MiddlewareHandler } from 'hono'
import { z } from 'zod'
import type { EnginePort } from '../../schema/contracts/engine-port.ts'
import type { ControlEnv } from '../http/control-env.ts'

/** Questions are answered below this path, in front of every route. */
export const QUESTIONS_PATH = '/api/v1/nodes/question'
/** The carriers of one page of a list. */
const MAX_CARRIERS = 200

const question = z.discriminatedUnion('kind', [
  /** 200: the call is live there. */
  z.strictObject({ kind: z.literal('locate'), callUuid: z.string().max(200) }),
  /** How many live calls nodes of dispatcher sets, and these carriers, have there. */
  z.strictObject({
    kind: z.literal('counts'),
    carriers: z.array(z.int()).max(MAX_CARRIERS),
  }),
])

export type Question = z.output<typeof question>

const amounts = z.record(z.string(), z.int().min(0))
/** By id. */
export const countsAnswer = z.strictObject({ nodes: amounts, carriers: amounts })
export type Counts = z.output<typeof countsAnswer>

type AnsweringEngine = Pick<EnginePort, 'calls' | 'dispatcher'>

export const answerQuestions =
  (engine: AnsweringEngine): MiddlewareHandler<ControlEnv> =>
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
    }
  }

function countsIn({ calls, dispatcher }: AnsweringEngine, carriers: readonly number[]): Counts {
  const nodes = dispatcher.status().flatMap((set) => set.nodes)
  return {
    nodes: Object.fromEntries(nodes.map(({ nodeId, activeCalls }) => [nodeId, activeCalls])),
    carriers: Object.fromEntries(carriers.map((id) => [id, calls.countByCarrier(id)])),
  }
}
