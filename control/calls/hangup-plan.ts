/** The plan for hanging up a live call, on this instance or on another one. */
import { ApiError } from '../http/api-error.ts'
import type { PeerRequests } from '../instances/other-instances.ts'
import { type LiveCallView, liveCallView, liveCall } from '../instances/live-call.ts'
import { quoted } from '../http/clean-text.ts'
import type { Platform } from '../http/platform.ts'
import type { Plan } from '../changes/change.ts'
import { z } from 'zod'
import { bodyOf } from '../instances/instance-client.ts'

interface HangUpOrder {
  readonly callUuid: string
  /** Q.850. */
  readonly cause: number
  /** Only a call of this tenant; null: of any. */
  readonly tenantId: number | null
}

interface HangUpDeps extends Pick<Platform, 'engine' | 'steadyNow'> {
  /** Undefined: other instances are not asked for the call. */
  readonly peers?: PeerRequests | undefined
}

interface HangUpAnswer {
  readonly status: 'ending' | 'would_end'
  readonly call: LiveCallView
}

/** `hangUp` resolves with the result of the engine that has the call; undefined: not known. */
interface LocatedCall {
  readonly call: LiveCallView
  readonly hangUp: () => Promise<z.output<typeof hangUpAnswer>['result'] | undefined>
}

export async function planHangUp(
  order: HangUpOrder,
  deps: HangUpDeps,
): Promise<Plan<HangUpAnswer>> {
  const { call, hangUp } = await locate(order, deps)
  return {
    target: { kind: 'live_call', id: order.callUuid },
    before: call.state,
    after: null,
    undo: 'none',
    effect:
      `The call from ${quoted(call.caller_id_number)} to ${quoted(call.destination_number)} ` +
      'ends for both parties.',
    affected: { live_calls: 1 },
    preview: { status: 'would_end', call },
    async apply() {
      switch (await hangUp()) {
        case 'ending':
          return { status: 'ending', call }
        case 'already_ending':
          throw new ApiError(409, 'call_ending', 'The call is already ending')
        case 'not_found':
          throw notLive()
        case undefined:
          throw new ApiError(
            503,
            'node_unreachable',
            'The node that has the call did not answer in time: it may have ended it, or not',
          )
      }
    },
  }
}

async function locate(order: HangUpOrder, deps: HangUpDeps): Promise<LocatedCall> {
  const { callUuid, cause, tenantId } = order
  const { engine, steadyNow, peers } = deps
  const own = engine.calls.find(callUuid)
  if (own !== undefined && (tenantId === null || own.tenantId === tenantId)) {
    const hangUp = async () => engine.calls.hangUp(callUuid, cause)
    return { call: liveCallView(own, steadyNow()), hangUp }
  }
  const answer = await peers?.answered({ kind: 'live_call', callUuid, tenantId })
  if (answer === undefined || peers === undefined) throw notLive()
  const call = answer === 'unknown' ? undefined : bodyOf(answer, liveCall)
  if (answer === 'unknown' || call === undefined)
    throw new ApiError(
      503,
      'node_unreachable',
      'A node of the platform does not answer: it may have the call. Retry in a few seconds',
    )
  const hangUp = async () => {
    const question = { kind: 'hang_up', callUuid, tenantId, cause } as const
    const ended = await peers.instruct(answer.peer, question)
    return ended && bodyOf(ended, hangUpAnswer)?.result
  }
  return { call, hangUp }
}

/** The answer of the engine of another instance. */
export const hangUpAnswer = z.object({ result: z.enum(['ending', 'not_found', 'already_ending']) })

const notLive = (): ApiError =>
  new ApiError(
    404,
    'not_found',
    'No live call has this uuid. list_active_calls lists live calls; get_call finds ended ones',
  )
