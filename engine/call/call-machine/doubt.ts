/**
 * Calls of the last process, until their parties are heard. Either may have hung up while no process was there, and
 * has sent its BYE to nobody. Each is asked in its dialog; one that does not know it (481) or is silent ends the call
 * at the last moment at which it was known to go on, as does everything else that ends it meanwhile (`cdr/cdr.ts`).
 */
import { cause, type End } from '../cdr/end-reason.ts'
import type { LegEventData } from '../signalling.ts'
import { callOf, legOf, partnerOf } from './calling.ts'
import { goOn, resumeGrant, waitsForGrant } from './grant.ts'
import type { StepContext } from './protocol.ts'
import type { Call, Leg } from './state.ts'

/** The call was not there any more when its parties were asked. */
export const endedUnseen: End = {
  kind: 'cut',
  by: 'system',
  cause: cause.timer,
  code: null,
  name: 'PROCESS_RESTART',
}

/** A leg that cannot be asked now is asked again after this time. */
const ASK_AGAIN_MS = 4_000
/** A peer that could not be asked for so long is gone: longer than a phone takes to connect again. */
const ASKED_FOR_MS = 64_000

/**
 * A request by UDP is repeated every 4 s at the latest (T2 of RFC 3261 §17.1.2.2). One that comes for the first time
 * later than that was not sent before this process was there.
 */
const COPIES_MS = 4_000

/** Asks the parties of a call that have not been heard. */
export function askParties(ctx: StepContext, call: Call): void {
  for (const legId of [call.legs.caller, call.legs.callee]) {
    const leg = legOf(ctx.world, legId)
    if (leg) askLeg(ctx, leg)
  }
}

/** The response to a request that is under way says as much. */
export function askLeg({ commands }: StepContext, leg: Leg): void {
  if (leg.isUnheard !== true || leg.state !== 'confirmed') return
  for (const _ in leg.pending) return
  const transactionId = `${leg.id}#${leg.requestCount++}`
  leg.pending[transactionId] = { kind: 'question' }
  commands.push({ type: 'ask', legId: leg.id, transactionId })
}

/** A message of its peer has come. */
export function noteHeard(ctx: StepContext, leg: Leg, event: LegEventData): void {
  if (isSignOfLife(ctx, leg, event)) heard(ctx, leg)
}

function isSignOfLife({ now, world }: StepContext, leg: Leg, event: LegEventData): boolean {
  switch (event.type) {
    case 'request':
    case 'ack':
      return true
    case 'response': {
      const { status } = event.response
      // 100 comes from the next hop. 503 may be our own: the request did not leave (RFC 3261 §8.1.3.1).
      return status > 100 && !isGone(status) && status !== 503
    }
    case 'bye': {
      const { doubt } = callOf(world, leg) ?? {}
      return !event.isOurs && doubt !== undefined && now - doubt.since >= COPIES_MS
    }
    default:
      return false
  }
}

/** The peer does not know the dialog (RFC 3261 §12.2.2), or does not answer. */
const isGone = (status: number): boolean => status === 481 || status === 408

function heard(ctx: StepContext, leg: Leg): void {
  leg.isUnheard = undefined
  const partner = partnerOf(ctx, leg)
  for (const each of partner ? [leg, partner] : [leg]) {
    const call = callOf(ctx.world, each)
    if (call) settle(ctx, call)
  }
}

/** The call goes on if all who take part in it are there. */
function settle(ctx: StepContext, call: Call): void {
  const { doubt } = call
  if (doubt === undefined || call.end !== undefined) return
  for (const legId of [call.legs.caller, call.legs.callee]) {
    const leg = legOf(ctx.world, legId)
    const partner = leg && partnerOf(ctx, leg)
    if (leg?.isUnheard === true || partner?.isUnheard === true) return
  }
  if (doubt.isUnpaid === true && waitsForGrant(ctx, call, doubt)) return
  goOn(ctx, call)
  if (doubt.isUnpaid === true) resumeGrant(ctx, call)
}

/** The answer to a question, or why there is none. */
export function questionEnded(
  ctx: StepContext,
  leg: Leg,
  event: Extract<LegEventData, { readonly type: 'response' | 'requestFailed' }>,
): void {
  const isOver = event.type === 'response' ? isGone(event.response.status) : event.isUnknownDialog
  const { doubt } = callOf(ctx.world, leg) ?? {}
  if (leg.isUnheard !== true || doubt === undefined) return
  if (isOver || ctx.now - doubt.since >= ASKED_FOR_MS)
    return void ctx.signals.push({ type: 'dead', legId: leg.id })
  const timer = { kind: 'question', legId: leg.id } as const
  ctx.commands.push({ type: 'startTimer', timer, at: ctx.now + ASK_AGAIN_MS })
}
