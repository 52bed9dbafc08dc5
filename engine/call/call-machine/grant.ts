/**
 * Keeps a call within its grant: requests an extension in time, and ends the call when there is
 * none.
 */
import { cause, type End } from '../cdr/end-reason.ts'
import type { StepContext } from './protocol.ts'
import type { Call, Doubt } from './state.ts'

/** An extension is requested this long before the grant ends, or after half of a shorter grant. */
const GRANT_LEAD_MS = 10_000

/** The call is answered, or has got more. */
export function startGrant({ commands, now }: StepContext, call: Call): void {
  const { grantedSeconds, answeredAt, start } = call
  if (grantedSeconds === null) return
  if (isLimited(call)) return endWithGrant({ commands, now }, call, grantedSeconds)
  const grantedMs = grantedSeconds * 1_000
  const leadMs = Math.min(GRANT_LEAD_MS, grantedMs / 2)
  const timer = { kind: 'grant', callUuid: start.callUuid } as const
  commands.push({ type: 'startTimer', timer, at: (answeredAt ?? now) + grantedMs - leadMs })
}

/** The time in which the OCS has to extend a grant that ran out while no process was running. */
const RESUME_MS = 2_000

/** Resumes the grant of a call of the last run. */
export function resumeGrant(ctx: StepContext, call: Call): void {
  const { now, commands } = ctx
  const { grantedSeconds, answeredAt, start } = call
  if (grantedSeconds === null || answeredAt === null) return
  const usedMs = now - answeredAt
  if (usedMs < grantedSeconds * 1_000 || isLimited(call)) return startGrant(ctx, call)
  if (isPutOff(call)) return
  const { callUuid } = start
  const timer = { kind: 'grant-end', callUuid } as const
  commands.push({ type: 'startTimer', timer, at: now + RESUME_MS })
  commands.push({ type: 'extend', callUuid, grantedSeconds: Math.ceil(usedMs / 1_000) })
}

/**
 * Nobody is asked to pay for more of a call of the last process before its parties are heard
 * (`doubt.ts`).
 */
export function isPutOff(call: Call): boolean {
  if (call.doubt === undefined || call.doubt.isAsking === true || isLimited(call)) return false
  call.doubt.isUnpaid = true
  return true
}

/** Nobody is asked any more whether the parties are there. */
export function stopQuestions({ commands }: StepContext, { doubt, start }: Call): void {
  if (doubt === undefined) return
  commands.push({ type: 'stopTimer', timer: { kind: 'question', callUuid: start.callUuid } })
}

/** The parties are heard: the call is one of this process. */
export function goOn(ctx: StepContext, call: Call): void {
  const { commands } = ctx
  stopQuestions(ctx, call)
  call.doubt = undefined
  commands.push({ type: 'goesOn', callUuid: call.start.callUuid })
}

/**
 * The parties are heard, but the grant has run out meanwhile. Nothing beyond it is reserved: should
 * the call end before it gets more, it ends with its grant.
 */
export function waitsForGrant(ctx: StepContext, call: Call, doubt: Doubt): boolean {
  const { grantedSeconds, answeredAt } = call
  if (grantedSeconds === null || answeredAt === null) return false
  const grantEndsAt = answeredAt + grantedSeconds * 1_000
  if (grantEndsAt > ctx.now) return false
  doubt.aliveAt = Math.max(doubt.aliveAt, grantEndsAt)
  if (doubt.isAsking === true) return true
  doubt.isAsking = true
  resumeGrant(ctx, call)
  return true
}

export function stopGrant(
  { commands }: StepContext,
  { grantedSeconds, start, answeredAt }: Call,
): void {
  if (grantedSeconds === null || answeredAt === null) return
  const { callUuid } = start
  for (const kind of ['grant', 'grant-end'] as const)
    commands.push({ type: 'stopTimer', timer: { kind, callUuid } })
}

/** The end of the grant stays set until the OCS answers: a late answer ends the call, too. */
export function askForMore(ctx: StepContext, call: Call): void {
  const { grantedSeconds, start } = call
  if (grantedSeconds === null || isPutOff(call)) return
  endWithGrant(ctx, call, grantedSeconds)
  ctx.commands.push({ type: 'extend', callUuid: start.callUuid, grantedSeconds })
}

function endWithGrant(
  { commands, now }: Pick<StepContext, 'commands' | 'now'>,
  { answeredAt, start }: Call,
  grantedSeconds: number,
): void {
  const timer = { kind: 'grant-end', callUuid: start.callUuid } as const
  commands.push({ type: 'startTimer', timer, at: (answeredAt ?? now) + grantedSeconds * 1_000 })
}

const TIME_LIMIT = 'time_limit'
/** The OCS has answered without an extension. */
const NO_MORE = 'insufficient_funds'
/** The OCS has not answered: the record must not blame the funds. */
const UNANSWERED = 'ocs_unreachable'

/**
 * Limits the call to `maxSeconds`, whatever the payer has. Both fields are saved: the limit
 * survives a restart.
 */
export function limitGrant(call: Call, maxSeconds: number): void {
  call.grantedSeconds = Math.min(call.grantedSeconds ?? maxSeconds, maxSeconds)
  call.grantDenial = TIME_LIMIT
}

const isLimited = ({ grantDenial }: Pick<Call, 'grantDenial'>): boolean =>
  grantDenial === TIME_LIMIT

/**
 * The grant has run out. Both legs get the Reason for missing funds, whatever the cause
 * (SPECIFICATION.md §13.2).
 */
export function grantEnd(call: Call): End {
  const { grantDenial: code = UNANSWERED } = call
  return { kind: 'cut', by: 'system', code, cause: isLimited(call) ? cause.normal : cause.noCredit }
}

export function extended(ctx: StepContext, call: Call, grantedSeconds: number): void {
  if (isLimited(call)) return
  if (call.phase !== 'answered') return
  if (grantedSeconds <= (call.grantedSeconds ?? Infinity)) {
    call.grantDenial = NO_MORE
    return
  }
  call.grantDenial = undefined
  stopGrant(ctx, call)
  call.grantedSeconds = grantedSeconds
  if (call.doubt?.isAsking === true) goOn(ctx, call)
  startGrant(ctx, call)
}
