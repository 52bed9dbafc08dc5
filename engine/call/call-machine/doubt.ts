/**
 * Calls of the last process, until their parties are heard. Either may have hung up while no
 * process was there, and has sent its BYE to nobody. Each is asked in its dialog; one that does not
 * know it (481) or is silent ends the call at the last moment at which it was known to go on, as
 * does everything else that ends it meanwhile (`cdr/cdr.ts`).
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

/** A party that cannot be asked now, or has not been heard, is asked again after this time. */
const ASK_AGAIN_MS = 4_000
/**
 * A peer that could not be asked for so long is gone: longer than a phone takes to connect again.
 */
const ASKED_FOR_MS = 64_000
/**
 * A call that is in doubt for so long ends, whatever is under way in it: nothing of it is charged
 * meanwhile. The last question is answered by then, or has timed out (64·T1, RFC 3261 §17.1.2.2).
 */
const IN_DOUBT_MS = ASKED_FOR_MS + 32_000

/**
 * A request by UDP is repeated every 4 s at the latest (T2 of RFC 3261 §17.1.2.2). One that comes
 * for the first time later than that was not sent before this process was there.
 */
const COPIES_MS = 4_000

/**
 * Asks the parties of a call that have not been heard, again and again until the call goes on or is
 * over.
 */
export function askParties(ctx: StepContext, call: Call): void {
  // A party that has not been heard may have left since.
  settle(ctx, call)
  const { doubt, end } = call
  if (doubt === undefined || doubt.isAsking === true || end !== undefined) return
  const { callUuid } = call.start
  if (ctx.now - doubt.since >= IN_DOUBT_MS)
    return void ctx.signals.push({ type: 'stop', callUuid, end: endedUnseen })
  for (const legId of [call.legs.caller, call.legs.callee]) {
    const leg = legOf(ctx.world, legId)
    if (leg) askLeg(ctx, leg)
  }
  const timer = { kind: 'question', callUuid } as const
  ctx.commands.push({ type: 'startTimer', timer, at: ctx.now + ASK_AGAIN_MS })
}

/** The response to a request that is under way may say as much. */
function askLeg({ commands }: StepContext, leg: Leg): void {
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
      // 100 comes from the next hop.
      return status < 300 ? status > 100 : ofParty.has(status)
    }
    case 'bye': {
      const { doubt } = callOf(world, leg) ?? {}
      return !event.isOurs && doubt !== undefined && now - doubt.since >= COPIES_MS
    }
    default:
      return false
  }
}

/**
 * Refusals of a party that has the dialog, and that keep it (RFC 5057 §5.1). Others may come from a
 * proxy, or be our own, like the 503 for a request that did not leave (RFC 3261 §8.1.3.1): the
 * party is asked again.
 */
const ofParty: ReadonlySet<number> = new Set([
  401, 405, 406, 407, 415, 420, 422, 486, 488, 491, 501, 600, 603, 606,
])

/**
 * The party does not know the dialog (RFC 3261 §12.2.2), does not answer, or is nowhere (RFC 5057
 * §5.1).
 */
const gone: ReadonlySet<number> = new Set([404, 408, 410, 481, 604])

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
  const isOver = event.type === 'response' ? gone.has(event.response.status) : event.isUnknownDialog
  const { doubt } = callOf(ctx.world, leg) ?? {}
  if (leg.isUnheard !== true || doubt === undefined) return
  if (isOver || ctx.now - doubt.since >= ASKED_FOR_MS)
    ctx.signals.push({ type: 'dead', legId: leg.id })
}
